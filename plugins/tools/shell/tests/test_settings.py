"""Settings reach the sandbox and the editor."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from jackfield.config import Config
from jackfield.errors import ConfigError, SandboxError, ToolServiceError
from jackfield.plugins import PluginHost, SandboxSpec, hook
from jackfield.runs import RunResources
from jackfield.sandboxes import RISKS, Limits, Program, ProgramSandbox, Protection
from jackfield.settings import Settings
from jackfield.tools import CommandEnd, ToolContext, ToolResult, Workspace
from jackfield_shell.config import ShellConfig
from jackfield_shell.tool import Shell


class JailConfig(Config):
    """One setting."""

    walls: int = 4


class Jail(ProgramSandbox):
    """Notes the programs that it gets, and runs others in their place."""

    config_class = JailConfig
    config: JailConfig
    programs: list[Program] = []  # noqa: RUF012 - of all its instances
    made: list[int] = []  # noqa: RUF012 - as above
    reason = ""

    def protection(self) -> Protection:
        return Protection(f"jail with {self.config.walls} walls", frozenset(RISKS))

    def command(self, program: Program) -> list[str]:
        if self.reason:
            raise SandboxError(self.reason)
        self.programs.append(program)
        self.made.append(id(self))
        return ["/bin/echo", "in jail"]


class Offers:
    @hook.sandboxes
    def sandboxes(self) -> list[SandboxSpec]:
        return [SandboxSpec(name="jail", target=f"{__name__}:Jail", config=f"{__name__}:JailConfig")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "workspace"


@pytest.fixture(autouse=True)
def _empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Jail, "programs", [])
    monkeypatch.setattr(Jail, "made", [])


def shell(**settings: Any) -> Shell:
    made = Shell({"sandbox": "jail", **settings})
    made.host = PluginHost(Settings(), paths=())
    made.host.register(Offers())
    return made


def result(tool: Shell, root: Path, *, editor: Any = None, **arguments: Any) -> ToolResult:
    context = ToolContext(
        run_id="run-1", call_id="call-1", workspace=Workspace(root), resources=RunResources(editor)
    )  # fmt: skip
    return asyncio.run(tool.call({"command": "true", **arguments}, context=context))


MB = 1 << 20


@pytest.mark.parametrize(
    ("settings", "limits"),
    [
        ({}, Limits(memory_bytes=2048 * MB, cpu_s=600, processes=256, file_bytes=1024 * MB)),
        (
            {"memory_mb": 64, "cpu_s": 1, "processes": 16, "file_mb": 1},
            Limits(memory_bytes=64 * MB, cpu_s=1, processes=16, file_bytes=MB),
        ),
        (dict.fromkeys(("memory_mb", "cpu_s", "processes", "file_mb")), Limits()),
    ],
    ids=["defaults", "least", "none"],
)
def test_each_limit_of_the_settings_is_the_programs(root: Path, settings: dict[str, Any], limits: Limits) -> None:
    result(shell(**settings), root)
    assert Jail.programs[0].limits == limits


def test_a_program_gets_its_folder_paths_variables_and_network(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/srv/home")
    monkeypatch.setenv("ACME_API_KEY", "secret")
    result(shell(), root)
    result(shell(network=True, readable=["~/data", "/srv/./more"], env={"MINE": "1", "TERM": "vt100"}), root)
    first, second = Jail.programs
    # A shell whose input is a socket, as in some editors, would read `.bashrc`, which is in the workspace.
    own_files = ("/bin/bash", "--noprofile", "--norc") if Path("/bin/bash").exists() else ("/bin/sh",)
    assert first.argv == (*own_files, "-c", "--", "true")
    assert (first.work_dir, first.writable, first.readable, first.network) == (str(root), (), (), False)
    path = f"{Path(sys.prefix, 'bin')}:/usr/local/bin:/usr/bin:/bin"
    plain = {"PATH": path, "HOME": str(root), "LANG": "C.UTF-8", "TERM": "dumb", "PYTHONDONTWRITEBYTECODE": "1"}
    assert first.env == plain
    assert (second.readable, second.network) == (("/srv/home/data", "/srv/more"), True)
    assert second.env == plain | {"MINE": "1", "TERM": "vt100"}


def test_the_named_sandbox_gets_its_settings_and_is_made_once(root: Path) -> None:
    tool = shell(sandbox_cfg={"walls": 5})
    for _ in range(2):
        done = result(tool, root)
        assert done.content == "in jail"
        assert done.metadata["sandbox"].startswith("jail with 5 walls: the code cannot reach files")
    assert len({*Jail.made}) == 1


def test_a_sandbox_that_refuses_a_program_says_why_and_nothing_is_run(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Jail, "reason", "it is full")
    with pytest.raises(ToolServiceError, match="cannot run the command: it is full"):
        result(shell(), root)


@pytest.mark.parametrize(
    ("settings", "asked", "timeout_s"),
    [({}, {}, 120), ({"timeout": 7}, {}, 7), ({}, {"timeout_s": 9}, 9), ({}, {"timeout_s": 601}, 600),
     ({"max_timeout": 5}, {}, 5)],
)  # fmt: skip
def test_a_command_has_the_time_of_the_settings_or_what_a_model_asks_for_within_its_limit(
    root: Path, settings: dict[str, Any], asked: dict[str, Any], timeout_s: float
) -> None:
    editor = Editor()
    result(shell(**settings), root, editor=editor, **asked)
    assert editor.calls[0]["timeout_s"] == timeout_s


# --- in an editor ---


class Editor:
    """Runs nothing, and notes what it is asked for."""

    reads = writes = False

    def __init__(self, end: CommandEnd | None = None, *, runs_commands: bool = True) -> None:
        self.runs_commands = runs_commands
        self.end = end or CommandEnd(output="in the terminal\r\n", exit_code=0)
        self.calls: list[dict[str, Any]] = []

    async def run_command(self, argv: Sequence[str], *, env: Mapping[str, str], **more: Any) -> CommandEnd:
        self.calls.append({"argv": list(argv), "env": dict(env), **more})
        return self.end


def test_a_command_runs_in_the_terminal_of_an_editor_in_its_sandbox(root: Path) -> None:
    editor = Editor()
    assert result(shell(max_output_bytes=500, env={"MINE": "1"}), root, editor=editor).content == "in the terminal"
    (call,) = editor.calls
    assert call["argv"][-2:] == ["/bin/echo", "in jail"]
    assert call["env"] == Jail.programs[0].env
    assert {name: call[name] for name in ("folder", "output_bytes", "run_id", "call_id")} == {
        "folder": str(root), "output_bytes": 500, "run_id": "run-1", "call_id": "call-1"
    }  # fmt: skip


def test_an_editor_without_a_terminal_runs_no_command(root: Path) -> None:
    editor = Editor(runs_commands=False)
    assert result(shell(), root, editor=editor).content == "in jail"
    assert editor.calls == []


def test_a_command_sees_no_variable_of_the_terminal(root: Path) -> None:
    editor = Editor()
    result(Shell(sandbox="none", env={"MINE": "1"}), root, editor=editor, command="env")
    (root / "json.py").write_text("raise SystemExit('code of the workspace runs outside of the sandbox')")
    (call,) = editor.calls
    env = {**os.environ, **call["env"], "ACME_API_KEY": "secret-of-the-editor"}
    done = subprocess.run(call["argv"], env=env, cwd=root, capture_output=True, text=True, check=True)
    names = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert names - {"PWD", "SHLVL", "_", "OLDPWD"} == {*call["env"]}, "the shell itself adds some"


@pytest.mark.parametrize(
    ("end", "text", "exit_code"),
    [
        (CommandEnd(output="a\r\nb\r\n", exit_code=0), "a\nb", 0),
        (CommandEnd(output="", exit_code=3), "[exit code 3]", 3),
        (CommandEnd(output="x\ud83d", exit_code=0), "x?", 0),
        (CommandEnd(output="end", exit_code=0, is_cut=True), "[… beginning omitted …]\nend", 0),
        (
            CommandEnd(output="half", exit_code=143, timed_out=True),
            "half\n[terminated after 120 s, along with everything it started]",
            143,
        ),
    ],
    ids=["lines", "code", "surrogate", "cut", "time"],
)
def test_the_end_of_a_command_in_a_terminal_is_told_as_any_other(
    root: Path, end: CommandEnd, text: str, exit_code: int
) -> None:
    done = result(shell(), root, editor=Editor(end))
    assert (done.content, done.metadata["exit_code"]) == (text, exit_code)


def test_output_of_a_terminal_is_cut_to_the_limit_of_the_settings(root: Path) -> None:
    done = result(shell(max_output_bytes=200), root, editor=Editor(CommandEnd(output="x" * 1000, exit_code=0)))
    assert "[… 800 bytes omitted …]" in str(done.content)


def test_variables_are_not_printed_and_times_are_more_than_none() -> None:
    assert "a-secret" not in repr(ShellConfig(env={"TOKEN": "a-secret"}))
    for name in ("timeout", "max_timeout"):
        with pytest.raises(ConfigError, match=name):
            ShellConfig.parse({name: 0})


def test_the_tool_has_the_safety_facts_of_its_descriptor() -> None:
    safety = Shell().safety()
    assert (safety.needs_approval, safety.concurrent, safety.read_only) == (True, False, False)
    assert (safety.effects, safety.timeout_s) == ({"files", "network", "processes"}, 4000)
