"""Contract tests for sandboxes that run programs."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from jackfield.errors import SandboxError
from jackfield.sandboxes import Finished, Limits, Program, ProgramSandbox, Risk
from jackfield_testkit.suites.any_sandbox import AnySandboxSuite

PATIENCE_S = 60.0  # for programs that hang; nothing waits for this limit
SECRET = "SECRET-OF-THE-HOST"  # noqa: S105 - not a real one
MB = 1 << 20


@dataclass(frozen=True)
class Places:
    """The directories of one test. Their paths contain spaces and look like options."""

    work: Path
    writable: Path
    readable: Path
    outside: Path


# One child in the program's group, one in its own session, and one that was orphaned on purpose.
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
    """Contract of sandboxes that run programs. Risks that a sandbox does not claim to cover are not tested.

    ```python
    class TestAcme(SandboxSuite):
        component = "jackfield-acme/acme"
    ```

    A sandbox that reports that it is unusable here fails, unless `unusable_because` gives a reason.

    Attributes:
        component: The sandbox to test, as `distribution/name`, or only the name if it is unique.
        config: The sandbox's settings.
        unusable_because: The reason why the sandbox may be unusable on some machines, or '' if there is none.
        patience_s: How long to wait for something that should happen immediately, in seconds.
    """

    ability = ProgramSandbox
    patience_s: ClassVar[float] = 30.0

    @pytest.fixture
    def places(self, tmp_path: Path) -> Places:
        """Create the directories of this test."""
        names = ("-work 'of' it", "--writable", "-readable it", "outside")
        for name in names:
            (tmp_path / name).mkdir()
            (tmp_path / name / "note").write_text(SECRET, encoding="ascii")
        (tmp_path / names[0] / "note").unlink()
        return Places(*(tmp_path / name for name in names))

    # --- running programs ---

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
        made = [place / "made" for place in (places.work, places.writable)]
        assert [file.read_text() for file in made if file.exists()] == ["x", "x"]

    def test_a_program_that_takes_too_long_is_ended(self, sandbox: ProgramSandbox, places: Places) -> None:
        done = _run(sandbox, places, "import time; time.sleep(4)", limits=Limits(wall_s=0.3))
        assert done.timed_out

    # --- barriers ---

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

    def test_attributes_of_files_elsewhere_cannot_be_changed(self, sandbox: ProgramSandbox, places: Places) -> None:
        _needs(sandbox, "files")
        notes = [places.outside / "note", places.readable / "note"]
        before = [_attributes(note) for note in notes]
        for attempt in ("os.chmod(path, 0o604)", "os.utime(path, (1, 1))", "os.fchmod(os.open(path, 0), 0o604)"):
            for note in notes:
                _run(sandbox, places, f"import os, sys; path = sys.argv[1]; {attempt}", str(note))
        assert [_attributes(note) for note in notes] == before

    def test_sockets_in_folders_elsewhere_cannot_be_reached(self, sandbox: ProgramSandbox, places: Places) -> None:
        _needs(sandbox, "files")
        with _listening(socket.AF_UNIX, str(places.outside / "s")) as server:
            (places.outside / "s").chmod(0o777)
            _run(sandbox, places, "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])",
                 str(places.outside / "s"))  # fmt: skip
            assert not _was_reached(server)

    def test_no_file_that_it_leaves_runs_as_its_owner(self, sandbox: ProgramSandbox, places: Places) -> None:
        _needs(sandbox, "files")
        code = """
import os
open("later", "w").close()
for attempt in (
    lambda: os.chmod("later", 0o4755),
    lambda: os.open("at once", os.O_CREAT | os.O_WRONLY, 0o6755),
    lambda: os.mknod("node", 0o104755),
):
    try: attempt()
    except OSError: pass
"""
        _run(sandbox, places, code)
        assert [path.name for path in places.work.iterdir() if path.stat().st_mode & 0o6000] == []

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
            try:
                assert b"reached" in _run(sandbox, places, code, port, network=True).stdout
            except SandboxError as error:  # the sandbox may reject a program that needs the network
                if not str(error):
                    raise
            _needs(sandbox, "network")
            assert b"reached" not in _run(sandbox, places, code, port).stdout

    @pytest.mark.parametrize("way", ["UDP", "MPTCP", "abstract socket", "raw socket"])
    def test_no_other_way_leads_to_the_network(self, sandbox: ProgramSandbox, places: Places, way: str) -> None:
        _needs(sandbox, "network")
        family, kind, protocol, connects = {
            "UDP": (socket.AF_INET, socket.SOCK_DGRAM, 0, True),
            "MPTCP": (socket.AF_INET, socket.SOCK_STREAM, 262, True),
            "abstract socket": (socket.AF_UNIX, socket.SOCK_STREAM, 0, True),
            "raw socket": (socket.AF_INET, socket.SOCK_RAW, 1, False),
        }[way]
        code = """
import socket, sys
family, kind, protocol, port = map(int, sys.argv[1:5])
with socket.socket(family, kind, protocol) as one:
    one.connect(chr(0) + sys.argv[5] if family == socket.AF_UNIX else ("127.0.0.1", port))
    one.send(b"x")
print("opened")
"""
        address: Any = f"\0{places.work.parent.name}-{os.getpid()}" if family == socket.AF_UNIX else ("127.0.0.1", 0)
        host_kind = socket.SOCK_DGRAM if kind == socket.SOCK_DGRAM else socket.SOCK_STREAM
        with _listening(family, address, host_kind) as server:
            port = 0 if family == socket.AF_UNIX else server.getsockname()[1]
            name = address[1:] if family == socket.AF_UNIX else ""
            done = _run(sandbox, places, code, *map(str, (int(family), int(kind), protocol, port)), name)
            assert not _was_reached(server)
            assert connects or b"opened" not in done.stdout

    def test_other_processes_cannot_be_seen(self, sandbox: ProgramSandbox, places: Places) -> None:
        _needs(sandbox, "processes")
        done = _run(sandbox, places, "import sys; print(open(f'/proc/{sys.argv[1]}/cmdline').read())", str(os.getpid()))
        assert done.exit_code == 1, done.stdout

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

    @pytest.mark.parametrize("place", ["memory without a name", "shared memory"])
    def test_memory_that_is_no_address_space_is_limited(
        self, sandbox: ProgramSandbox, places: Places, place: str
    ) -> None:
        _needs(sandbox, "memory")
        code = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
held = 0
if sys.argv[1] == "memory without a name":
    file = os.memfd_create("held")
while held < 600 << 20:
    if sys.argv[1] == "memory without a name":
        held += os.write(file, bytes(1 << 20))
    else:
        segment = libc.shmget(0, 50 << 20, 0o1600)
        at = libc.shmat(segment, None, 0)
        if segment < 0 or at == ctypes.c_void_p(-1).value: sys.exit(1)
        ctypes.memset(at, 1, 50 << 20)
        libc.shmdt(ctypes.c_void_p(at))
        libc.shmctl(segment, 0, None)
        held += 50 << 20
print("had it")
"""
        done = _run(sandbox, places, code, place, limits=Limits(memory_bytes=400 * MB))
        assert b"had it" not in done.stdout
        assert done.exit_code != 0

    def test_the_memory_of_all_processes_is_limited(self, sandbox: ProgramSandbox, places: Places) -> None:
        _needs(sandbox, "total_memory")
        code = """
import mmap, os, time
readable, writable = os.pipe()
for _ in range(4):
    if os.fork() == 0:
        room = mmap.mmap(-1, 60 << 20)
        for at in range(0, len(room), 4096): room[at] = 1
        os.write(writable, b"x")
        time.sleep(600)
os.close(writable)
had = b""
while len(had) < 4 and os.waitpid(-1, os.WNOHANG) == (0, 0):
    os.set_blocking(readable, False)
    try: had += os.read(readable, 4)
    except BlockingIOError: time.sleep(0.01)
print(len(had) == 4 and "had it", flush=True)
os.killpg(0, 9)
"""
        done = _run(sandbox, places, code, limits=Limits(memory_bytes=150 * MB))
        assert b"had it" not in done.stdout

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

    def test_tracing_its_first_process_does_not_keep_it_alive(self, sandbox: ProgramSandbox, places: Places) -> None:
        code = """
import ctypes, os
libc = ctypes.CDLL(None)
for pid in {1, os.getppid()} - {0}:
    libc.ptrace(16, pid, 0, 0)
"""
        _needs(sandbox, "processes")
        assert not _run(sandbox, places, code, limits=Limits(wall_s=self.patience_s)).timed_out

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
    def test_ending_it_ends_all_that_it_started(
        self, sandbox: ProgramSandbox, places: Places, number: signal.Signals
    ) -> None:
        program = _program(places, _FAMILY)
        command = sandbox.command(program)
        with _Family(command, program) as family:
            family.process.send_signal(number)
            assert family.has_ended(self.patience_s), "a process started by the program is still running"

    def test_it_ends_with_the_process_that_started_it(self, sandbox: ProgramSandbox, places: Places) -> None:
        program = _program(places, _FAMILY)
        with _Family([sys.executable, "-I", "-c", _HOST, *sandbox.command(program)], program) as family:
            family.process.kill()
            assert family.has_ended(self.patience_s), "a process started by the program is still running"


class _Family:
    """A program whose children all hold its standard output, which ends when the last of them exits."""

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
        if not self._ended.is_set():  # if the sandbox fails, leave nothing behind
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
        except OSError:  # owned by another user, or already ended
            continue
        if wanted in held and int(folder.name) != os.getpid():
            os.kill(int(folder.name), signal.SIGKILL)


@contextmanager
def _listening(family: int, address: Any, kind: int = socket.SOCK_STREAM) -> Iterator[socket.socket]:
    with socket.socket(family, kind) as server:
        server.bind(address)
        if kind == socket.SOCK_STREAM:
            server.listen()
        yield server


def _was_reached(server: socket.socket) -> bool:
    server.settimeout(0)
    try:
        if server.type == socket.SOCK_STREAM:
            server.accept()[0].close()
        else:
            server.recv(1)
    except BlockingIOError:
        return False
    return True


def _attributes(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_mode, facts.st_mtime_ns


def _needs(sandbox: ProgramSandbox, risk: Risk) -> None:
    if risk not in sandbox.protection().covers:
        pytest.skip(f"the sandbox does not cover {risk} here")


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
