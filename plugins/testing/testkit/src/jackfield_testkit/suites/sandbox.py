"""The tests of a sandbox that runs programs."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from jackfield_confine.sandboxes import Finished, Limits, Program, ProgramSandbox, Risk
from jackfield_testkit.suites.any_sandbox import AnySandboxSuite

PATIENCE_S = 60.0  # for what hangs; nothing waits for its end
SECRET = "SECRET-OF-THE-HOST"  # noqa: S105 - of nobody
MB = 1 << 20


@dataclass(frozen=True)
class Places:
    """The folders of one test. All of their paths have spaces, and look like options."""

    work: Path
    writable: Path
    readable: Path
    outside: Path


# One child in the group of the program, one that left for a session of its own, one that was orphaned on purpose.
_FAMILY = """
import subprocess, sys, time
sleep = [sys.executable, "-I", "-c", "import time; time.sleep(600)"]
subprocess.Popen(sleep)
subprocess.Popen(sleep, start_new_session=True)
subprocess.run([sys.executable, "-I", "-c", f"import subprocess; subprocess.Popen({sleep}, start_new_session=True)"])
print("started", flush=True)
time.sleep(600)
"""
_HOST = "import subprocess, sys, time; subprocess.Popen(sys.argv[1:]); time.sleep(600)"


class SandboxSuite(AnySandboxSuite[ProgramSandbox]):
    """What every sandbox must do that runs programs. Risks that it does not claim to cover are not tested.

    ```python
    class TestAcme(SandboxSuite):
        component = "jackfield-acme/acme"
    ```

    Where the sandbox says that it cannot be used, its tests are skipped with that reason.

    Attributes:
        component: The address of the sandbox: `distribution/name`, or its name where that is unique.
        config: Its settings.
        patience_s: How long a test waits, in seconds, for what should happen at once, before it fails.
    """

    ability = ProgramSandbox
    patience_s: ClassVar[float] = 30.0

    @pytest.fixture
    def places(self, tmp_path: Path) -> Places:
        """Folders of this test."""
        names = ("-work 'of' it", "--writable", "-readable it", "outside")
        for name in names:
            (tmp_path / name).mkdir()
            (tmp_path / name / "note").write_text(SECRET, encoding="ascii")
        (tmp_path / names[0] / "note").unlink()
        return Places(*(tmp_path / name for name in names))

    # --- what it runs ---

    def test_a_program_gets_its_arguments_its_folder_and_its_input(
        self, sandbox: ProgramSandbox, places: Places
    ) -> None:
        code = "import os, sys; print(os.getcwd(), sys.argv[1:], sys.stdin.read(), sep='|')"
        done = _run(sandbox, places, code, "a b", "--flag", stdin=b"given")
        assert done.stdout.decode().strip() == f"{places.work}|['a b', '--flag']|given", done.stderr.decode()

    def test_how_a_program_ends_is_known(self, sandbox: ProgramSandbox, places: Places) -> None:
        done = _run(sandbox, places, "import sys; print('out'); sys.exit('trouble')")
        assert (done.stdout, done.stderr.split(), done.exit_code) == (b"out\n", [b"trouble"], 1)
        done = _run(sandbox, places, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
        assert done.exit_code == 128 + signal.SIGSEGV

    def test_its_environment_is_what_it_was_given(
        self, sandbox: ProgramSandbox, places: Places, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ACME_API_KEY", SECRET)
        done = _run(sandbox, places, "import os; print(dict(os.environ))")
        assert "'MINE': 'yes'" in done.stdout.decode()
        assert SECRET not in done.stdout.decode()

    def test_what_it_writes_in_its_folders_stays(self, sandbox: ProgramSandbox, places: Places) -> None:
        done = _run(sandbox, places, "import sys; [open(f'{p}/made', 'w').write('x') for p in ('.', sys.argv[1])]",
                    str(places.writable))  # fmt: skip
        assert done.exit_code == 0, done.stderr.decode()
        assert [(place / "made").read_text() for place in (places.work, places.writable)] == ["x", "x"]

    def test_a_program_that_takes_too_long_is_ended(self, sandbox: ProgramSandbox, places: Places) -> None:
        done = _run(sandbox, places, "import time; time.sleep(4)", limits=Limits(wall_s=0.3))
        assert done.timed_out

    # --- what it keeps from the program ---

    def test_files_elsewhere_cannot_be_read(self, sandbox: ProgramSandbox, places: Places) -> None:
        _needs(sandbox, "files")
        done = _run(sandbox, places, "import sys; print(open(sys.argv[1]).read())", str(places.outside / "note"))
        assert SECRET not in done.stdout.decode()
        assert done.exit_code == 1

    def test_files_elsewhere_cannot_be_written(self, sandbox: ProgramSandbox, places: Places) -> None:
        _needs(sandbox, "files")
        for name in ("note", "new"):
            _run(sandbox, places, "import sys; open(sys.argv[1], 'w').write('x')", str(places.outside / name))
        assert (places.outside / "note").read_text() == SECRET
        assert not (places.outside / "new").exists()

    def test_what_is_readable_can_be_read_and_not_changed(self, sandbox: ProgramSandbox, places: Places) -> None:
        note = places.readable / "note"
        done = _run(sandbox, places, "import sys; print(open(sys.argv[1]).read())", str(note))
        assert SECRET in done.stdout.decode(), done.stderr.decode()
        _needs(sandbox, "files")
        _run(sandbox, places, "import sys; open(sys.argv[1], 'w')", str(note))
        assert note.read_text() == SECRET

    def test_the_network_can_be_used_only_where_that_is_asked_for(
        self, sandbox: ProgramSandbox, places: Places
    ) -> None:
        code = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 30); print('reached')"
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = str(server.getsockname()[1])
            assert b"reached" in _run(sandbox, places, code, port, network=True).stdout
            _needs(sandbox, "network")
            assert b"reached" not in _run(sandbox, places, code, port).stdout

    def test_other_processes_cannot_be_signalled(self, sandbox: ProgramSandbox, places: Places) -> None:
        _needs(sandbox, "processes")
        with subprocess.Popen([sys.executable, "-I", "-c", "import sys; sys.stdin.read()"], stdin=-1) as other:
            _run(sandbox, places, "import os, sys; os.kill(int(sys.argv[1]), 9)", str(other.pid))
            assert other.stdin is not None
            other.stdin.close()
            assert other.wait(PATIENCE_S) == 0

    # --- limits ---

    def test_memory_is_limited(self, sandbox: ProgramSandbox, places: Places) -> None:
        _needs(sandbox, "memory")
        code = "x = bytes(600 << 20); print('had it')"
        done = _run(sandbox, places, code, limits=Limits(memory_bytes=400 * MB))
        assert b"had it" not in done.stdout
        assert done.exit_code != 0

    def test_the_size_of_a_file_is_limited(self, sandbox: ProgramSandbox, places: Places) -> None:
        _needs(sandbox, "file_size")
        code = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); open('big', 'wb').write(bytes(3 << 20))"
        _run(sandbox, places, code, limits=Limits(file_bytes=MB))
        assert (places.work / "big").stat().st_size <= MB

    def test_the_number_of_processes_is_limited(self, sandbox: ProgramSandbox, places: Places) -> None:
        _needs(sandbox, "process_count")
        code = """
import os, time
for count in range(60):
    try:
        if os.fork() == 0:
            time.sleep(600)
    except OSError:
        break
print(count)
"""
        done = _run(sandbox, places, code, limits=Limits(processes=20))
        assert done.stdout, done.stderr.decode()
        assert int(done.stdout) <= 20

    def test_cpu_time_is_limited(self, sandbox: ProgramSandbox, places: Places) -> None:
        _needs(sandbox, "cpu")
        code = "import time\nwhile time.process_time() < 2.5: pass\nprint('went on')"
        done = _run(sandbox, places, code, limits=Limits(cpu_s=1))
        assert b"went on" not in done.stdout

    # --- its end ---

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
    def test_ending_it_ends_all_that_it_started(
        self, sandbox: ProgramSandbox, places: Places, number: signal.Signals
    ) -> None:
        program = _program(places, _FAMILY)
        command = sandbox.command(program)
        with _Family(command, program) as family:
            family.process.send_signal(number)
            assert family.has_ended(self.patience_s), "something that the program started still runs"

    def test_it_ends_with_the_process_that_started_it(self, sandbox: ProgramSandbox, places: Places) -> None:
        program = _program(places, _FAMILY)
        with _Family([sys.executable, "-I", "-c", _HOST, *sandbox.command(program)], program) as family:
            family.process.kill()
            assert family.has_ended(self.patience_s), "something that the program started still runs"


class _Family:
    """A program with children. All of them hold its standard output: its end is theirs."""

    def __init__(self, command: Sequence[str], program: Program) -> None:
        self.process = subprocess.Popen(  # noqa: S603 - the command of these tests
            command, env=dict(program.env), cwd=program.work_dir, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self.process.stdout is not None
        self._stdout = self.process.stdout
        self._ended = threading.Event()

    def __enter__(self) -> _Family:
        assert self._stdout.readline() == b"started\n"
        threading.Thread(target=self._read, daemon=True).start()
        return self

    def _read(self) -> None:
        self._stdout.read()
        self._ended.set()

    def has_ended(self, timeout_s: float) -> bool:
        return self._ended.wait(timeout_s)

    def __exit__(self, *exc_info: object) -> None:
        if not self._ended.is_set():  # of a sandbox that fails: leave nothing
            _end_all_that_hold(self._stdout.fileno())
        self.process.kill()
        self.process.wait()
        self._ended.wait(PATIENCE_S)
        self._stdout.close()


def _end_all_that_hold(pipe: int) -> None:
    wanted = Path(f"/proc/self/fd/{pipe}").readlink()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            held = {link.readlink() for link in (folder / "fd").iterdir()}
        except OSError:  # another user's, or it has ended
            continue
        if wanted in held and int(folder.name) != os.getpid():
            os.kill(int(folder.name), signal.SIGKILL)


def _needs(sandbox: ProgramSandbox, risk: Risk) -> None:
    if risk not in sandbox.protection().covers:
        pytest.skip(f"it does not cover {risk} here")


def _program(places: Places, code: str, *arguments: str, **more: Any) -> Program:
    return Program(
        argv=(sys.executable, "-I", "-c", code, *arguments),
        work_dir=str(places.work),
        writable=(str(places.writable),),
        readable=(str(places.readable),),
        env={"PATH": os.defpath, "MINE": "yes"},
        **more,
    )


def _run(
    sandbox: ProgramSandbox, places: Places, code: str, *arguments: str, stdin: bytes = b"", **more: Any
) -> Finished:
    async def run() -> Finished:
        async with asyncio.timeout(PATIENCE_S):
            return await sandbox.run(_program(places, code, *arguments, **more), stdin=stdin)

    return asyncio.run(run())
