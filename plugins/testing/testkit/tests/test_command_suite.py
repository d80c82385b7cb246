"""The suite for commands lets a correct one pass, and catches each that is broken in one place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jackfield_testkit.suites import CommandSuite

LIGHT = """
from jackfield.plugins import CommandSpec, hook


@hook.commands
def commands():
    return [CommandSpec(name="{name}", target="{package}.command:main")]
"""
COMMAND = """
import argparse
import time

from jackfield.errors import ConfigError


def main(arguments):
    parser = argparse.ArgumentParser(prog="jackfield {name}", description="Says a word.")
    parser.add_argument("--word", default="hello")
    parser.add_argument("--fail", action="store_true")
    options = parser.parse_args(arguments)
    if options.fail:
        raise ConfigError("there is no such word: choose another")
    print(options.word)
    return 0
"""
OTHER = """
from jackfield.plugins import CommandSpec, hook


@hook.commands
def commands():
    return [CommandSpec(name="other", target="jackfield_other.plugin:main")]
"""


def changed(old: str, new: str) -> str:
    assert old in COMMAND
    return COMMAND.replace(old, new)


def guarded(handler: str, *lines: str) -> str:
    """The command, with what it does when that goes wrong."""
    handling = "".join(f"\n        {line}" for line in lines)
    work = f"    try:\n        return work(arguments)\n    {handler}{handling}"
    return changed("def main(arguments):", f"def main(arguments):\n{work}\n\n\ndef work(arguments):")


PARSE = "options = parser.parse_args(arguments)"
BROKEN = {
    "helpless": (
        changed("parser = ", "if '-h' in arguments:\n        return 3\n    parser = "),
        "test_help_is_printed_and_is_no_error[-h]",
    ),
    "help-on-stderr": (
        changed(PARSE, f"import contextlib, sys\n    with contextlib.redirect_stdout(sys.stderr):\n        {PARSE}"),
        "test_help_is_printed_and_is_no_error[--help]",
    ),
    "anonymous": (changed('prog="jackfield {name}", ', 'prog="tool", '), "test_help_names_the_command_as_it_is_called"),
    "nosy": (changed("import time", "import jackfield_other.plugin"), "test_help_imports_no_other_plugin"),
    "shows-its-environment": (
        changed("print(options.word)", "import os\n    print(options.word, dict(os.environ))"),
        "test_a_key_of_the_environment_is_in_nothing_that_it_prints_or_writes",
    ),
    "fails": (changed("return 0", "return 4"), "test_a_run_ends_with_0"),
    "knows-its-name": (
        changed("import time", "import sys").replace("return 0", "return '/' in ''.join(sys.argv)"),
        "test_it_runs_by_its_whole_address",
    ),
    "returns-nothing": (changed("return 0", "return None"), "test_its_target_returns_an_exit_code"),
    "permissive": (
        changed(PARSE, "options, _ = parser.parse_known_args(arguments)"),
        "test_wrong_usage_ends_with_2_and_says_why",
    ),
    "mute": (
        changed(PARSE, f"import contextlib, io\n    with contextlib.redirect_stderr(io.StringIO()):\n        {PARSE}"),
        "test_wrong_usage_ends_with_2_and_says_why",
    ),
    "crashes": (changed("ConfigError(", "KeyError("), "test_a_users_error_ends_with_1_and_says_what_to_do"),
    "shrugs": (
        changed('raise ConfigError("there is no such word: choose another")', "return 1"),
        "test_a_users_error_ends_with_1_and_says_what_to_do",
    ),
    "stubborn": (guarded("except KeyboardInterrupt:", "return 1"), "test_ctrl_c_ends_it_with_130"),
    "tells-all": (
        guarded("except KeyboardInterrupt:", "import traceback", "traceback.print_exc()", "raise"),
        "test_ctrl_c_ends_it_with_130",
    ),
    "breaks-pipes": (
        guarded("except OSError:", "import traceback", "traceback.print_exc()", "return 1").replace(
            "print(options.word)", "print(options.word, flush=True)"
        ),
        "test_a_reader_that_goes_away_is_no_crash",
    ),
    "pretends": (
        changed('raise ConfigError("there is no such word: choose another")', "return 0"),
        "test_a_users_error_ends_with_1_and_says_what_to_do",
    ),
    "mutters": (
        changed("print(options.word)", "import sys\n    print('Traceback', file=sys.stderr)"),
        "test_a_run_ends_with_0",
    ),
    "shows-its-lines": (
        guarded("except SystemExit:", "import traceback", "traceback.print_exc()", "raise"),
        "test_wrong_usage_ends_with_2_and_says_why",
    ),
    # Nothing of its own runs, so that nothing could be interrupted.
    "borrowed": ("main = len\n", "test_ctrl_c_ends_it_with_130"),
}
"""A command, and the test that is made for its fault."""
ELSEWHERE = {"homeless": "jackfield_nowhere:main", "in-no-package": "shlex:split"}
"""A command whose target is not in the package of its plugin."""

SUITES = """
from jackfield_testkit.suites import CommandSuite

for name in NAMES:
    settings = {"component": name, "arguments": ("--word", "hi"), "user_error": ("--fail",)}
    if name == "faultless":
        del settings["user_error"]
    globals()[f"Test{name}"] = type(f"Test{name}", (CommandSuite,), settings)
"""


def write(folder: Path, name: str, command: str, light: str = LIGHT) -> None:
    package = f"jackfield_{name.replace('-', '_')}"
    (folder / package).mkdir()
    metadata = folder / f"{package}-0.1.0.dist-info"
    metadata.mkdir()
    texts = {
        folder / package / "__init__.py": "",
        folder / package / "plugin.py": light,
        folder / package / "command.py": command,
        metadata / "entry_points.txt": "[jackfield.v1]\ncommand.{name} = {package}.plugin\n",
        metadata / "METADATA": "Metadata-Version: 2.1\nName: jackfield-{name}\nVersion: 0.1.0\n",
    }
    for path, text in texts.items():
        path.write_text(text.replace("{package}", package).replace("{name}", name), encoding="utf-8")


def test_a_correct_command_passes_all_and_each_broken_one_is_caught(
    run_suites: Callable[..., Any], read_checks: Callable[[str], Any], tmp_path: Path
) -> None:
    checks = read_checks("command")
    write(tmp_path, "other", "", OTHER)
    for name in ("fine", "faultless"):
        write(tmp_path, name, COMMAND)
    for name, (command, _) in BROKEN.items():
        write(tmp_path, name, command)
    for name, target in ELSEWHERE.items():
        write(tmp_path, name, COMMAND, LIGHT.replace("{package}.command:main", target))
    broken = {name: law for name, (_, law) in BROKEN.items()}
    pairs = checks.with_laws(broken)
    selected = ["Testfine", *(f"Test{name}::{test}" for name, test in pairs)]
    outcomes = run_suites(f"NAMES = {['fine', *dict(pairs)]}{SUITES}", selected, tmp_path)
    assert outcomes.of("Testfine", "passed") == {name for name in dir(CommandSuite) if name.startswith("test_")}
    assert outcomes.not_caught(broken) == {}
    assert checks.not_failed(outcomes) == {}
    assert checks.unknown() == set()
    assert outcomes.cases("Testfine") == checks.cases.keys()
