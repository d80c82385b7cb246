"""What a command gives, what it may use, and that nothing of it is left."""

from __future__ import annotations

import asyncio
import json
import os
import select
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield import call_tool
from jackfield.errors import ToolArgumentError, ToolServiceError
from jackfield.plugins import PluginHost
from jackfield.settings import Settings
from jackfield.tools import ToolContext, Workspace
from jackfield_shell import running
from jackfield_shell.plugin import MOST_COMMAND
from jackfield_shell.running import Ended, Output, run
from jackfield_shell.tool import Shell

PATIENCE_S = 60  # for what hangs; nothing waits for its end


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


def ran(root: Path, command: str, *, cfg: dict[str, Any] | None = None, **more: Any) -> str:
    tool = Shell({"sandbox": "none", **(cfg or {})})
    result = call_tool(tool, {"command": command, **more}, context=ToolContext(workspace=Workspace(root)))
    assert isinstance(result.content, str)
    return result.content


def test_output_and_errors_come_in_their_order_with_the_exit_code(root: Path) -> None:
    assert ran(root, "echo 1; echo 2 >&2; echo 3") == "1\n2\n3"
    assert ran(root, "false") == "[exit code 1]"
    assert ran(root, "true") == "[no output]"
    assert ran(root, "printf '\n  a \n\n'") == "\n  a "
    assert ran(root, "kill -9 $$") == "[exit code 137]"
    assert "not found" in ran(root, "no-such-program")
    assert ran(root, "if").endswith("[exit code 2]")


def test_a_workspace_is_made_with_its_folders_and_reached_through_links(root: Path) -> None:
    root.mkdir()
    root.with_name("link").symlink_to(root)
    assert ran(root.with_name("link") / "a/b", "echo $HOME; pwd") == f"{root}/a/b\n{root}/a/b"


def test_a_command_that_the_system_refuses_is_an_error_for_the_model(root: Path) -> None:
    with pytest.raises(ToolServiceError, match=r"cannot run the command: .*too long"):
        ran(root, "true", cfg={"env": {"LONG": "x" * 200_000}})


def test_only_files_stay_for_the_next_command(root: Path) -> None:
    assert ran(root, "pwd") == str(root)
    ran(root, "mkdir a; cd a; x=1; export x; echo text > file")
    assert ran(root, "pwd; echo $x; cat a/file") == f"{root}\n\ntext"


def test_there_is_no_input_and_no_secret(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "SECRET-OF-THE-HOST")
    (root.parent / "input").write_text("INPUT-OF-THE-HOST")
    stdin = os.dup(0)
    with (root.parent / "input").open() as file:
        os.dup2(file.fileno(), 0)
        try:
            assert ran(root, "cat") == "[no output]"
        finally:
            os.dup2(stdin, 0)
            os.close(stdin)
    shown = ran(root, "env; set", cfg={"env": {"MINE": "yes"}})
    assert "MINE=yes" in shown
    assert "SECRET-OF-THE-HOST" not in shown


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("-rf; echo on", "on"),
        ("--help; echo on", "on"),
        ("echo \"$0\" '$x' `echo b`", "$x b"),
        ("# nothing", "[no out"),
    ],
)
def test_a_command_is_one_text_whatever_it_looks_like(root: Path, command: str, output: str) -> None:
    assert output in ran(root, command)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("a\0b", "null character"),
        ("echo \ud83d", "a lone surrogate"),
        ("echo " + "x" * 10_000_000, "at most 100,000 bytes long, got 10,000,005"),
    ],
)
def test_a_command_that_cannot_be_passed_on_is_refused(root: Path, command: str, says: str) -> None:
    with pytest.raises(ToolArgumentError, match=says):
        ran(root, command)


@pytest.mark.parametrize(
    "arguments",
    [
        '{"command": "true", "timeout_s": NaN}',
        '{"command": "true", "timeout_s": -1}',
        '{"command": "true", "timeout_s": 1e999}',
        '{"command": ["true"]}',
        '{"command": ' + "[" * 50_000 + "]" * 50_000 + "}",
        '{"command": ""}',
    ],
    ids=["NaN", "negative", "infinite", "list", "deep", "empty"],
)
def test_arguments_that_do_not_fit_are_refused(root: Path, arguments: str) -> None:
    with pytest.raises(ToolArgumentError):
        call_tool(Shell(sandbox="none"), arguments, context=ToolContext(workspace=Workspace(root)))
    assert not root.exists()


def test_of_ten_megabytes_the_beginning_and_the_end_are_kept(root: Path) -> None:
    shown = ran(
        root, "echo first; head -c 10000000 /dev/zero | tr '\\0' x; echo; echo last", cfg={"max_output_bytes": 200}
    )
    assert shown.startswith("first\nxxx")
    assert shown.endswith("xxx\nlast")
    assert "[… 9,999,812 bytes omitted …]" in shown


@given(st.lists(st.binary(max_size=9), max_size=9), st.integers(2, 20))
def test_what_is_kept_of_an_output_does_not_depend_on_its_pieces(pieces: list[bytes], most: int) -> None:
    in_pieces, at_once = Output(most), Output(most)
    for piece in pieces:
        in_pieces.add(piece)
    at_once.add(b"".join(pieces))
    assert in_pieces.text == at_once.text


@given(st.binary(max_size=60), st.integers(1, 20))
@example("aéb".encode(), 2)
def test_half_of_the_limit_is_kept_at_each_end_and_the_note_counts_the_rest(data: bytes, half: int) -> None:
    output = Output(2 * half)
    output.add(data)
    whole = data.decode(errors="replace")
    if len(data) <= 2 * half:
        assert output.text == whole
    else:
        head, tail = data[:half].decode(errors="replace"), data[-half:].decode(errors="replace")
        assert output.text == f"{head}\n[… {len(data) - 2 * half:,} bytes omitted …]\n{tail}"


@pytest.mark.parametrize("command", [": " + "x" * (MOST_COMMAND - 2), ": " + "数" * 33_332])
def test_a_command_may_be_as_long_as_the_limit_in_bytes_and_no_longer(root: Path, command: str) -> None:
    size = len(command.encode())
    assert MOST_COMMAND - 3 < size <= MOST_COMMAND
    assert ran(root, command) == "[no output]"
    with pytest.raises(ToolArgumentError, match=f"at most {MOST_COMMAND:,} bytes"):
        ran(root, command + "数")


def test_the_size_of_a_file_is_limited(root: Path) -> None:
    ran(root, "head -c 3000000 /dev/zero > big", cfg={"file_mb": 1})
    assert (root / "big").stat().st_size <= 1 << 20


# --- its end ---


@pytest.fixture
def alive(root: Path) -> Iterator[int]:
    """The reading end of a named pipe `alive` in the workspace: it ends when all processes that hold it have."""
    root.mkdir()
    os.mkfifo(root / "alive")
    reading = os.open(root / "alive", os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reading, True)
    yield reading
    os.close(reading)


FAMILY = "exec 3> alive; sleep 600 & setsid sleep 600 & (setsid sleep 600 & ); echo started >&3; echo on; "


def test_what_a_command_leaves_behind_ends_with_it(root: Path, alive: int) -> None:
    assert ran(root, FAMILY) == "on"
    assert os.read(alive, 100) == b"started\n"
    assert os.read(alive, 100) == b"", "something still holds the pipe"


def test_a_command_whose_time_is_over_ends_with_all_it_has_started(root: Path, alive: int) -> None:
    shown = ran(root, f"{FAMILY} sleep 600", timeout_s=1)
    assert shown.endswith("[terminated after 1 s, along with everything it started]")
    while os.read(alive, 100):  # on a slow machine it may not have come that far
        pass


def test_a_model_may_not_ask_for_more_time_than_the_settings_allow(root: Path) -> None:
    assert "terminated after 0.3 s" in ran(root, "sleep 600", cfg={"max_timeout": 0.3}, timeout_s=3000)


def test_a_cancelled_command_ends_with_all_it_has_started(root: Path, alive: int) -> None:
    async def cancelled() -> None:
        tool = Shell(sandbox="none")
        context = ToolContext(workspace=Workspace(root))
        task = asyncio.ensure_future(tool.call({"command": f"{FAMILY} sleep 600"}, context=context))
        await asyncio.to_thread(select.select, [alive], [], [], PATIENCE_S)
        assert os.read(alive, 100) == b"started\n"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(os.read, alive, 100) == b""

    asyncio.run(cancelled())


def run_alone(root: Path, command: str, *, timeout_s: float = PATIENCE_S) -> Ended:
    """Run a command without the guard that ends what it starts, as in a sandbox that is itself ended."""
    shell = ["/bin/sh", "-c", command]

    async def run_and_count() -> Ended:
        ended = await run(shell, env={}, folder=str(root), timeout_s=timeout_s, output_bytes=1000)
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}, "something still reads its output"
        return ended

    return asyncio.run(run_and_count())


def test_a_program_is_asked_to_end_then_killed_and_out_of_reach_of_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_END_S", 0.2)
    assert run_alone(tmp_path, "kill -9 $$").exit_code == 137
    assert run_alone(tmp_path, "kill $$").exit_code == 143
    ended = run_alone(tmp_path, "trap '' TERM; while :; do sleep 0.05; done", timeout_s=0.2)
    assert (ended.exit_code, ended.timed_out) == (137, True)
    is_leader = f"{sys.executable} -c 'import os; print(os.getsid(0) == os.getppid())'; true"
    assert run_alone(tmp_path, is_leader).output.text == "True\n", "Ctrl-C in a terminal reaches it"


# --- sandboxes ---


def test_without_a_sandbox_nothing_is_run_and_the_model_learns_why(root: Path) -> None:
    tool = Shell()
    tool.host = PluginHost(Settings(allow=frozenset({"jackfield-shell"})))
    with pytest.raises(ToolServiceError, match="cannot run commands: no sandbox is available"):
        call_tool(tool, {"command": "touch made"}, context=ToolContext(workspace=Workspace(root)))
    assert not (root / "made").exists()


def test_each_command_needs_a_yes_unless_the_settings_say_otherwise() -> None:
    assert Shell().safety().needs_approval
    assert not Shell(approval="never").safety().needs_approval
    assert Shell().safety().effects == {"files", "network", "processes"}


def test_the_result_names_the_sandbox(root: Path) -> None:
    context = ToolContext(workspace=Workspace(root))
    result = call_tool(Shell(sandbox="none"), json.dumps({"command": "exit 4"}), context=context)
    assert result.metadata == {"sandbox": "none", "exit_code": 4}
