"""`jackfield plugins doctor`, as a person runs it: what it prints, counts and returns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield_manage.judging.news import Memory, Seen
from tests.support.site import light

GUARD = """
from jackfield.plugins import ProcessorSpec, hook
import {}

@hook.processors
def processors():
    return [ProcessorSpec(name="guard", target="guard_heavy:Guard")]
"""
ACME = [
    "acme 1.0 ok tool.weather",
    "not set: A_KEY, B_KEY",
    "→ set the key for each service that you use",
]
BROKEN = [
    "broken 1.0 broken tool.search",
    "broken is broken, broken_light cannot be imported (ValueError: bad). Try: pip install --upgrade broken; "
    "everything else works without it",
    "installed as a requirement of bundle",
    "→ pip install --upgrade broken, or pip uninstall broken",
    "also: it requires gone, which is not installed → pip install --upgrade broken",
]
GONE = ["gone vanished", "is no longer installed", "→ pip install gone"]


def lines_of(text: str) -> list[str]:
    """The lines that a command has printed, without times and spaces that only align."""
    return [" ".join(re.sub(r"\d+\.\d ms", "", line).split()) for line in text.splitlines()]


@pytest.fixture(autouse=True)
def _plugins(command_line: Any, site: Any, bare_python: str) -> None:
    acme = light("weather", "acme_light:make", ", secrets=('A_KEY', 'B_KEY'), check='acme_light:check'")
    acme += "def make(cfg=None): ...\ndef check(): return ['no \\x1b[31mcompiler']\n"
    site.add("acme", {"tool.weather": "acme_light"}, modules={"acme_light": acme})
    source = "raise ValueError('bad')"
    site.add("broken", {"tool.search": "broken_light"}, modules={"broken_light": source}, requires=["gone"])
    site.add("bundle", requires=["acme", "broken"])
    state = Path(command_line.env["XDG_STATE_HOME"]) / "jackfield" / "seen.json"
    Memory(state, str(Path(bare_python).parents[1])).keep({"gone": Seen("1.0", "", (1, 2), asked=True)})
    command_line.config.mkdir(parents=True)


@pytest.mark.parametrize(
    ("names", "code", "lines"),
    [
        ("acme", 0, [*ACME, "1 package, none with a fault"]),
        ("Acme gone", 0, [*ACME, *GONE, "2 packages, none with a fault"]),
        ("broken acme", 1, [*ACME, *BROKEN, "2 packages, 1 with a fault"]),
        ("jackfield", 0, ["1 package, none with a fault"]),
    ],
)
def test_only_the_packages_that_are_named_are_shown_and_counted(
    command_line: Any, names: str, code: int, lines: list[str]
) -> None:
    done = command_line("plugins", "doctor", *names.split())
    assert (lines_of(done.stdout), done.returncode, done.stderr) == (lines, code, "")
    done = command_line("plugins", "doctor", "--json", *names.split())
    assert done.returncode == code
    assert [finding["distribution"] for finding in json.loads(done.stdout)] == [
        line.split()[0] for line in lines if line.endswith((" tool.weather", " tool.search", " vanished"))
    ]


def test_a_package_that_is_not_installed_is_answered_with_those_that_are(command_line: Any) -> None:
    done = command_line("plugins", "doctor", "acne", "acme")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "jackfield: no plugin package 'acne' is installed; did you mean 'acme'?\n"


def test_the_files_of_the_user_and_the_project_are_examined_with_everything_and_not_counted(
    command_line: Any, site: Any
) -> None:
    site.add("guard", {"processor.guard": "guard_light"}, modules={"guard_light": GUARD.format("json")})
    tables = [f'"processor.{name}" = {{ size = 1 }}\n' for name in ("guard", "guard/guard", "guard/gard")]
    (command_line.config / "config.toml").write_text("[settings]\n" + "".join(tables))
    (command_line.folder / "pyproject.toml").write_text('[tool.jackfield]\norder = ["guard"]\n')
    lines = lines_of(command_line("plugins", "doctor").stdout)
    project = lines.index("(the project's file) inactive order")
    assert lines[project + 2 :] == [
        "→ jackfield trust",
        "(settings) inactive processor.guard/gard",
        "settings for 'processor.guard/gard' are ignored: no such component is installed; did you mean "
        "'processor.guard/guard' or 'processor.guard'?",
        "→ correct the name in your config.toml, or remove the settings",
        "6 packages, 1 with a fault",
    ]
    assert lines_of(command_line("plugins", "doctor", "acme").stdout)[len(ACME) :] == ["1 package, none with a fault"]


def test_an_enabled_processor_that_is_broken_is_reported_once(command_line: Any, site: Any) -> None:
    source = GUARD.format("json").replace("guard_heavy:Guard", "not_there:Guard")
    site.add("guard", {"processor.guard": "guard_light"}, modules={"guard_light": source})
    enabled = {"JACKFIELD_PLUGINS_ENABLED": "processor.guard", "JACKFIELD_PLUGINS_BLOCK": "broken"}
    done = command_line("plugins", "doctor", **enabled)
    assert done.returncode == 1
    assert lines_of(done.stdout)[-4:] == [
        "(enabled processors) broken processor.guard/guard",
        "guard is broken, not_there cannot be imported (ModuleNotFoundError: No module named 'not_there'). Try: "
        "pip install --upgrade guard; everything else works without it",
        "→ disable one of them: jackfield plugins disable NAME",
        "6 packages, 1 with a fault",
    ]
    assert "(enabled processors)" not in command_line("plugins", "doctor", "--deep", **enabled).stdout


def test_a_time_limit_and_a_deep_look_hold_for_every_plugin(command_line: Any, site: Any) -> None:
    site.add("slow", {"tool.slow": "slow_light"}, modules={"slow_light": "import time; time.sleep(600)"})
    slow = command_line("plugins", "doctor", "slow", "--timeout", "0.5").stdout
    assert "loading timed out after 0.5 s" in slow
    deep = command_line("plugins", "doctor", "acme", "--deep").stdout
    assert deep.splitlines()[1:4] == [
        r"    no \x1b[31mcompiler",
        "    installed as a requirement of bundle",
        "    → fix this, then run the check again",
    ]


def test_lines_are_wrapped_at_the_width_of_a_terminal_only(
    command_line: Any, open_terminal: Callable[..., Any]
) -> None:
    assert max(map(len, command_line("plugins", "doctor", "broken").stdout.splitlines())) > 100
    terminal = open_terminal(["plugins", "doctor", "broken"], command_line.folder, {**command_line.env, "CI": "1"})
    terminal.wait_for("[d]etails: ")
    terminal.type("y\n")
    assert terminal.end() == 1
    lines = terminal.seen.replace("\r", "").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("broken 1.0"))
    assert max(map(len, lines[start:])) <= 100
    assert lines[start + 2].startswith(" " * 6)
