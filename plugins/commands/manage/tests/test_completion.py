"""`jackfield completion`: real shells complete from the scripts, without starting Python."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from jackfield.plugins import CommandSpec, PluginHost, Settings
from jackfield.settings import models_path
from jackfield_manage.cli import completion
from jackfield_manage.cli.completion import Completions

ASK_BASH = """
source "$1"
COMP_LINE="$2"; COMP_POINT=${#2}
_jackfield
printf '%s\\n' "${COMPREPLY[@]}"
"""

ASK_ZSH = """
compdef() { : }
compadd() { shift; print -l -- "$@" }
_files() { : }
source "$1"
shift
words=("$@")
CURRENT=$#
_jackfield
"""
ASK_FISH = """
source $argv[1]
complete -C $argv[2] | string replace -r "\\t.*" ""; true
"""


@pytest.fixture(scope="module")
def script(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, bare_python: str) -> Path:
    folder = tmp_path_factory.mktemp("it's a \\ folder")
    env = {"HOME": str(folder), "PATH": "/nowhere"}
    for shell in ("bash", "zsh", "fish"):
        done = subprocess.run(
            [bare_python, "-m", "jackfield", "completion", shell], env=env, capture_output=True, text=True, check=True
        )
        (folder / shell).write_text(done.stdout)
    models = folder / ".config/jackfield/models.txt"
    models.parent.mkdir(parents=True, exist_ok=True)
    models.write_text("openai:gpt-4.1\nopenai:o3\nfast\n")
    return folder


def ask_bash(folder: Path, line: str) -> list[str]:
    return run(["/bin/bash", "--norc", "-c", ASK_BASH, "-", str(folder / "bash"), line])


def ask_zsh(folder: Path, line: str) -> list[str]:
    words = line.split(" ")
    offered = run(["zsh", "-f", "-c", ASK_ZSH, "-", str(folder / "zsh"), *words])
    # zsh itself keeps the candidates that begin like the current word.
    return [word for word in offered if word.startswith(words[-1])]


def ask_fish(folder: Path, line: str) -> list[str]:
    return run(["fish", "--no-config", "-c", ASK_FISH, str(folder / "fish"), line])


def run(command: list[str]) -> list[str]:
    return " ".join(run_lines(command)).split()


def run_lines(command: list[str]) -> list[str]:
    with TemporaryDirectory() as empty:  # shells that know nothing else offer files
        env = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere"}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=env, cwd=empty)
    assert done.stderr == ""
    return done.stdout.splitlines()


SHELLS: dict[str, Callable[[Path, str], list[str]]] = {"bash": ask_bash, "zsh": ask_zsh, "fish": ask_fish}

LINES = {
    "jackfield ke": ["keys"],
    "jackfield keys ": ["set", "remove", "list"],
    "jackfield keys --h": ["--help"],
    "jackfield keys list --j": ["--json"],
    "jackfield keys remove --j": [],
    "jackfield plugins list --ki": ["--kind"],
    "jackfield plugins install --dr": ["--dry-run"],
    "jackfield pipeline -m fa": ["fast"],
    "jackfield pipeline --model openai:": ["openai:gpt-4.1", "openai:o3"],
    "jackfield --pl": ["--plugins"],
    "jackfield nothing ": [],
    "jackfield keys list keys --j": ["--json"],
    "jackfield keys list remove --j": ["--json"],
}


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_commands_actions_options_agents_and_models(script: Path, shell: str, line: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}: make system")
    words = LINES[line]
    if shell == "bash":  # which has what is before the last colon already
        words = [word.rpartition(":")[2] if ":" in line else word for word in words]
    if shell != "fish" and line.endswith("keys "):  # fish offers options only after a hyphen
        words = [*words, "--help"]
    assert sorted(SHELLS[shell](script, line)) == sorted(words)


@pytest.mark.parametrize("words", ["ask --agent fn", "ask --agent=fn", "do it --agent fn"])
@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_agents_after_an_option_of_a_command_or_an_action(
    shell: str, words: str, tmp_path: Path
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}: make system")
    if "=" in words and shell != "fish":
        pytest.skip("only fish splits at =")
    options = ("--agent", "--help")
    commands = {"": Completions(("--help",)), "ask": Completions(options), "do": Completions((), {"it": options})}
    (tmp_path / shell).write_text(completion._SCRIPTS[shell](commands, ["fncall", "other"]))
    offered = SHELLS[shell](tmp_path, f"jackfield {words}")
    assert [word.removeprefix("--agent=") for word in offered] == ["fncall"]


@pytest.mark.parametrize("shell", SHELLS)
def test_options_of_a_command_are_not_those_of_its_actions(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}: make system")
    do = Completions(("--all", "--help"), {"it": ("--each", "--help"), "so-be-it": ()})
    (tmp_path / shell).write_text(completion._SCRIPTS[shell]({"": Completions(), "do": do}, []))
    assert SHELLS[shell](tmp_path, "jackfield do --a") == ["--all"]
    assert SHELLS[shell](tmp_path, "jackfield do --e") == []
    assert SHELLS[shell](tmp_path, "jackfield do it --e") == ["--each"]
    assert SHELLS[shell](tmp_path, "jackfield do i --a") == ["--all"]  # no action, although one begins like this
    assert SHELLS[shell](tmp_path, "jackfield do so-") == ["so-be-it"]
    if shell != "fish":  # which also offers the options of the command
        assert SHELLS[shell](tmp_path, "jackfield do it --a") == []


@pytest.mark.parametrize("shell", SHELLS)
def test_models_with_several_colons_are_completed_and_a_missing_list_has_none(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}: make system")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    commands = {"": Completions(), "ask": Completions(("--model",))}
    (tmp_path / shell).write_text(completion._SCRIPTS[shell](commands, []))
    assert SHELLS[shell](tmp_path, "jackfield ask --model a:b:") == []
    models_path().parent.mkdir(exist_ok=True)
    models_path().write_text("a:b:c\na:b:d\na:e\n")
    offered = SHELLS[shell](tmp_path, "jackfield ask --model a:b:")
    assert [word.rpartition(":")[2] for word in offered] == ["c", "d"]
    assert all(word in ("c", "d") for word in offered) is (shell == "bash")


def test_options_and_actions_are_found_in_any_help() -> None:
    text = """usage: x [--dry-run]
  {a}
    a                 of the command; see a--b and ---c
    so-be-it
    other-1 --every-2
      no-action       --a9
"""
    assert completion._options_in(text) == ("--a9", "--dry-run", "--every-2", "--help")
    assert completion._ACTION.findall(text) == ["a", "so-be-it", "other-1"]


def test_bash_completes_files_where_it_knows_no_words(script: Path) -> None:
    (line,) = run_lines(["/bin/bash", "--norc", "-c", 'source "$1"; complete -p jackfield', "-", str(script / "bash")])
    assert line == "complete -o bashdefault -o default -F _jackfield jackfield"


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh: make system")
def test_zsh_may_load_its_script_as_a_function(script: Path, tmp_path: Path) -> None:
    shutil.copy(script / "zsh", tmp_path / "_jackfield")
    autoloaded = ASK_ZSH.replace('source "$1"', 'fpath=("$1"); autoload -U _jackfield')
    words = ["jackfield", "keys", "li"]
    assert "list" in run(["zsh", "-f", "-c", autoloaded, "-", str(tmp_path), *words])


def test_the_actions_in_descriptors_are_those_in_the_help() -> None:
    host = PluginHost(Settings())
    by_help = {name: found.actions for name, found in completion.find_completions(host).items() if name}
    by_descriptor = {row.name: host.spec_of(row, CommandSpec).actions for row in host.policy.rows("command")}
    assert {name: set(actions) for name, actions in by_help.items()} == {
        name: set(actions) for name, actions in by_descriptor.items()
    }


def test_the_kinds_of_agents_of_the_core_are_offered(script: Path) -> None:
    for shell in ("bash", "zsh"):
        assert "fncall" in (script / shell).read_text()


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_value_of_an_option_before_the_command_is_no_command(script: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}: make system")
    for option in ("--plugins", "--block"):
        assert SHELLS[shell](script, f"jackfield {option} keys plugins wh") == ["why"]
    assert SHELLS[shell](script, "jackfield --safe keys li") == ["list"]
    assert SHELLS[shell](script, "jackfield plugins --block list --ki") == ["--kind"], "a value only before the command"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_parses_its_script(script: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}: make system")
    subprocess.run([shell, "-n", str(script / shell)], check=True)


def test_the_cursor_decides_and_not_the_end_of_the_line(script: Path) -> None:
    command = ASK_BASH.replace("COMP_POINT=${#2}", "COMP_POINT=12")
    assert run(["/bin/bash", "--norc", "-c", command, "-", str(script / "bash"), "jackfield ke list"]) == ["keys"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh: make system")
def test_zsh_offers_files_where_it_knows_no_words(script: Path) -> None:
    nothing = ASK_ZSH.replace('print -l -- "$@"', "(( $# ))").replace("_files() { : }", "_files() { print files }")
    assert run(["zsh", "-f", "-c", nothing, "-", str(script / "zsh"), "jackfield", "nothing", ""]) == ["files"]


def test_a_name_that_no_shell_could_take_is_left_out(command_line: Any, site: Any) -> None:
    site.add("acme", {"command.$(touch x)": "acme_cli", "agent.`touch y`": "acme_cli"}, modules={"acme_cli": ""})
    for shell in ("bash", "zsh", "fish"):
        assert "touch" not in command_line("completion", shell).stdout


def test_kinds_of_agents_of_plugins_are_offered_too(command_line: Any, site: Any) -> None:
    site.add("acme", {"agent.of-acme": "acme"}, modules={"acme": "raise SystemExit('it was loaded')\n"})
    for shell in ("bash", "zsh", "fish"):
        done = command_line("completion", shell)
        assert done.returncode == 0, done.stderr
        assert " of-acme" in done.stdout


@pytest.mark.parametrize("name", ["greet", "eval"])  # the second is one of ours, which is not installed here
def test_a_foreign_command_is_named_and_not_run(command_line: Any, site: Any, name: str) -> None:
    site.add("acme", {f"command.{name}": "acme_cli"}, modules={"acme_cli": "raise SystemExit('it was loaded')\n"})
    done = command_line("completion", "bash")
    assert done.returncode == 0, done.stderr
    assert f" {name}" in done.stdout
    assert "it was loaded" not in done.stdout + done.stderr
