"""What a command can do in the best sandbox of this machine, and what it cannot."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield import call_tool
from jackfield.errors import SandboxError
from jackfield.plugins import default_host
from jackfield.sandboxes import RISKS, ProgramSandbox, choose_sandbox
from jackfield.tools import ToolContext, Workspace
from jackfield_shell.tool import Shell

SECRET = "SECRET-OF-THE-HOST"
Ran = Callable[..., str]


@pytest.fixture(scope="module")
def sandbox() -> ProgramSandbox:
    try:
        made = choose_sandbox("auto", ProgramSandbox, host=default_host())
    except SandboxError as error:
        pytest.skip(str(error))
    assert made is not None
    if made.protection().covers != set(RISKS):
        pytest.skip(f"the best sandbox here does not cover all: {made.protection()}")
    return made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


@pytest.fixture
def ran(sandbox: ProgramSandbox, root: Path) -> Ran:
    def run(command: str, **cfg: Any) -> str:
        result = call_tool(Shell(**cfg), {"command": command}, context=ToolContext(workspace=Workspace(root)))
        assert result.metadata["sandbox"] == str(sandbox.protection())
        return str(result.content)

    return run


def test_it_works_in_the_workspace_where_files_stay(ran: Ran, root: Path) -> None:
    assert ran("pwd; mkdir -p notes; echo twice > notes/tides; ls") == f"{root}\nnotes"
    assert (root / "notes/tides").read_text() == "twice\n"
    (root / "notes/tides").write_text("once\n")
    (root / "mine").write_text("by the host")
    assert ran("cat notes/tides mine; echo more >> mine; python3 -c 'print(6 * 7)'") == "once\nby the host42"
    assert (root / "mine").read_text() == "by the hostmore\n"


@pytest.mark.parametrize(
    "command",
    [
        "cat ../secret",
        "cat {folder}/secret",
        "ln -s {folder}/secret link; cat link",
        "ln {folder}/secret link; cat link",
        "cd ..; cat secret; ls -la",
        "cat /proc/1/environ /proc/*/environ",
        "env",
        "echo x > ../secret; echo x > {folder}/made",
        "rm -rf {folder}/secret {folder}/made",
        "chmod 777 ..; mv ../secret .",
        "cat /proc/*/root{folder}/secret /proc/*/cwd/../secret",
        "cat ~root/.bashrc {home}/.bashrc; ls {home}",
        "kill -9 {pid}; kill -9 -1; true",
        "mount --bind {folder} .; cat secret",
        "unshare -r -m cat {folder}/secret",
        "mknod zero c 1 5 && head -c1 zero | wc -c; true",
        "(exec 3<>/dev/tcp/127.0.0.1/{port}) && echo {secret}",
        "touch /usr/made /etc/made && echo {secret}",
    ],
)
def test_nothing_leads_out(ran: Ran, root: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", SECRET)
    folder = root.parent
    (folder / "secret").write_text(SECRET)
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = {"folder": folder, "home": Path.home(), "pid": os.getpid(), "port": server.getsockname()[1]}
        shown = ran(command.format(**words, secret=SECRET))
    assert SECRET not in shown
    assert (folder / "secret").read_text() == SECRET
    assert not (folder / "made").exists()
    assert (root / "zero").exists() is False or not (root / "zero").is_char_device()


def test_the_network_is_there_where_the_settings_say_so(ran: Ran) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = f"(exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}) && echo reached"
        assert ran(command, network=True) == "reached"
        assert "reached" not in ran(command)


def test_too_many_processes_and_too_much_memory_end_in_words(ran: Ran) -> None:
    assert "[exit code" in ran("python3 -c 'x = bytes(600 << 20)'", memory_mb=400)
    # dash gives up at once, where bash tries again for a while.
    shown = ran("sh -c 'for i in $(seq 60); do sleep 600 & done; echo all'", processes=20)
    assert "all" not in shown.splitlines()
