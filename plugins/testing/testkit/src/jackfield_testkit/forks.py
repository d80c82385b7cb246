"""Run programs as forks of a process that has already imported their modules.

A test program spends most of its time on imports: a quarter of a second for the core, a hundredth for its actual work.
`Forks` starts one interpreter, which imports the modules and then runs each program in a fork of itself. As usual, each
program has its own process, working directory, environment and exit; only the imports are shared.

    with Forks("import jackfield.agents") as forks:
        done = forks.run("import sys; print(sys.argv)", "a word", cwd=folder, env=environment)

`Forks.write_command` creates a shell command that does this, and `Forks.start_on` starts a program on a terminal. Do
not use forks for programs whose imports are being tested.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import hashlib
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import types
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, ClassVar

CORE = "import jackfield.cli.main, jackfield.agents, jackfield.plugins"
"""The imports of most test programs: only the core, and no HTTP client."""

SIZE = struct.Struct("!I")
# Passes the process's streams to the server, and exits with the status of the fork. Without `site`, the command starts
# in a hundredth of a second.
COMMAND = """#!{python} -IS
import json, os, socket, struct, sys
request = {{"program": {program!r}, "words": sys.argv, "cwd": os.getcwd(), "env": dict(os.environ)}}
body = json.dumps(request).encode()
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [struct.pack("!I", len(body))], [0, 1, 2])
    server.sendall(body)
    server.recv(4)  # its process
    status = server.recv(4)
sys.exit(int(status or 1))
"""


class Fork:
    """A running program, which is killed when its connection closes.

    Attributes:
        pid: The process id.
    """

    def __init__(self, pid: int, server: socket.socket) -> None:
        self.pid = pid
        self._server = server

    def __enter__(self) -> Fork:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait for the program to exit, and return its status like `subprocess`: negative for a signal."""
        self._server.settimeout(timeout_s)
        return int(self._server.recv(4))


class Forks:
    """A process that runs programs as forks of itself.

    Args:
        before: A program that performs the shared imports without starting threads.
        python: The interpreter.
        end: A file descriptor at whose end of file the process exits. By default this is a pipe to its standard input,
            which closes when the current process ends.

    Attributes:
        are_possible: True if the platform supports this. Only Linux can report the end of any process in the required
            way.
    """

    are_possible: ClassVar[bool] = hasattr(os, "pidfd_open")

    def __init__(self, before: str, *, python: str | Path = sys.executable, end: int = subprocess.PIPE) -> None:
        # In a directory that only this user can enter. The server removes it.
        self.address = str(Path(tempfile.mkdtemp(prefix="forks-")) / "server")
        command = [str(python), "-I", "-X", "utf8", __file__, self.address, before]
        # The server exits when its standard input closes, however this process ends.
        self._process = subprocess.Popen(command, stdin=end, stdout=subprocess.PIPE)  # noqa: S603 - ours
        if not self._process.stdout or self._process.stdout.read(1) != b"!":
            raise RuntimeError(f"fork server exited with status {self._process.wait()}")

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the process. Programs that it started continue to run."""
        self._process.communicate()

    def run(
        self,
        program: str,
        *words: str | Path,
        cwd: Path,
        env: Mapping[str, str],
        site: Path | None = None,
        executable: str | Path = "",
        timeout_s: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program until it exits.

        Args:
            program: The program's source.
            words: The program's arguments.
            cwd: The working directory.
            env: The environment. `PYTHONPATH` is the only interpreter variable that takes effect.
            site: A directory to use in place of the server's site-packages.
            executable: The value of `sys.executable` in the program.
            timeout_s: The number of seconds after which the program is stopped.
        """
        arguments = ["-c", *map(str, words)]
        request = {"program": program, "words": arguments, "cwd": str(cwd), "env": dict(env)}
        request |= {"site": str(site or ""), "executable": str(executable)}
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, Path(os.devnull).open() as nothing:
            with self._start(request, nothing.fileno(), out.fileno(), err.fileno()) as fork:
                try:
                    status = fork.wait(timeout_s)
                except TimeoutError as error:
                    raise subprocess.TimeoutExpired(arguments, timeout_s, _text_of(out), _text_of(err)) from error
            return subprocess.CompletedProcess(arguments, status, _text_of(out), _text_of(err))

    def start_on(self, terminal: int, program: str, *words: str, cwd: Path, env: Mapping[str, str]) -> Fork:
        """Start a program with a terminal as its controlling terminal. See `run` for the other arguments.

        Args:
            terminal: The file descriptor of the program's side of the pseudo-terminal.
        """
        request = {"program": program, "words": ["-c", *words], "cwd": str(cwd), "env": dict(env), "on_terminal": True}
        return self._start(request, terminal, terminal, terminal)

    def _start(self, request: Mapping[str, object], *files: int) -> Fork:
        server = socket.socket(socket.AF_UNIX)
        server.connect(self.address)
        body = json.dumps(request).encode()
        socket.send_fds(server, [SIZE.pack(len(body))], files)
        server.sendall(body)
        (pid,) = SIZE.unpack(server.recv(SIZE.size))
        return Fork(pid, server)

    def write_command(self, file: Path, program: str) -> None:
        """Write an executable that runs a program with its own arguments, working directory and streams."""
        file.write_text(COMMAND.format(python=sys.executable, program=program, address=self.address), encoding="utf-8")
        file.chmod(0o755)


class _SharedForks(Forks):
    """A server started by one process of a test run and used by all of them."""

    def __init__(self, address: str) -> None:
        self.address = address

    def close(self) -> None:
        """Leave the server running until the last process of the run exits."""


@dataclass(frozen=True)
class _Run:
    """The forks shared by all processes of a test run.

    Attributes:
        folder: The directory in which the processes find each other.
        end: The read end of a pipe whose write end every process keeps open.
        started: The servers that this process started for all.
    """

    folder: Path
    end: int
    started: list[Forks] = field(default_factory=list)

    def forks(self, before: str, python: str) -> Forks:
        file = self.folder / hashlib.sha256(f"{python}\n{before}".encode()).hexdigest()
        with file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # The server has exited if the run had no process left for a moment.
            if not file.exists() or not Path(file.read_text(encoding="utf-8")).exists():
                self.started.append(Forks(before, python=python, end=self.end))
                file.write_text(self.started[-1].address, encoding="utf-8")
        return _SharedForks(file.read_text(encoding="utf-8"))


_run_of_tests: _Run | None = None


def share_forks(folder: Path) -> None:
    """Share the result of `shared_forks` among all processes that name the same directory, such as test workers.

    A shared server exits when the last of these processes does.
    """
    global _run_of_tests  # noqa: PLW0603 - it holds for the whole process
    folder.mkdir(exist_ok=True)
    pipe = folder / "end"
    with contextlib.suppress(FileExistsError):
        os.mkfifo(pipe)
    os.open(pipe, os.O_RDWR)  # open until this process ends; opening it only for writing would wait for a reader
    _run_of_tests = _Run(folder, os.open(pipe, os.O_RDONLY))


@cache
def shared_forks(before: str, python: str = sys.executable) -> Forks | None:
    """Return the `Forks` of this process or run (see `share_forks`), or None if the platform does not support forks."""
    if not Forks.are_possible:
        return None
    if _run_of_tests:
        return _run_of_tests.forks(before, python)
    forks = Forks(before, python=python)
    atexit.register(forks.close)
    return forks


def run_program(
    program: str, *words: str | Path, env: Mapping[str, str] | None = None, before: str = CORE, timeout_s: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run a program in its own process, as a fork if possible.

    Args:
        program: The program's source.
        words: The program's arguments.
        env: The program's environment. If None, the current environment is used.
        before: Imports that may be performed in advance.
        timeout_s: The number of seconds after which the program is stopped.
    """
    env = os.environ if env is None else env
    if forks := shared_forks(before):
        return forks.run(program, *words, cwd=Path.cwd(), env=env, timeout_s=timeout_s)
    command = [sys.executable, "-c", program, *map(str, words)]
    return subprocess.run(  # noqa: S603 - the tests' own
        command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, check=False
    )


def output_of(program: str, *words: str | Path, env: Mapping[str, str] | None = None, before: str = CORE) -> str:
    """Run a program that must succeed, and return its output without surrounding white space. See `run_program`."""
    done = run_program(program, *words, env=env, before=before)
    if done.returncode:
        raise AssertionError(f"the program exited with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def outputs_of(program: str, each: Iterable[Sequence[str | Path]], *, before: str = CORE) -> list[str]:
    """Run a program in several processes at once, each with its own arguments, and return their outputs."""
    given = list(each)
    shared_forks(before)  # one for all processes, not one per first request
    with ThreadPoolExecutor(len(given)) as waiting:
        return list(waiting.map(lambda words: output_of(program, *words, before=before), given))


def _text_of(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="surrogateescape")


# --- in the process that forks ---


def _serve(address: str) -> dict[str, object]:
    """Fork for each incoming request. Returns only in the forks, each with its request."""
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as events:
        listener.bind(address)
        listener.listen(64)
        events.register(listener, selectors.EVENT_READ)
        events.register(0, selectors.EVENT_READ)
        os.write(1, b"!")
        while True:
            for key, _ in events.select():
                if key.fileobj is listener:
                    request = _accept(listener, events)
                    if request is not None:
                        return request
                elif key.fileobj == 0:
                    Path(address).unlink()
                    Path(address).parent.rmdir()
                    os._exit(0)
                elif isinstance(key.data, int):
                    _give_up(key.data)
                    events.unregister(key.fileobj)
                else:
                    _report(key, events)


def _accept(listener: socket.socket, events: selectors.BaseSelector) -> dict[str, object] | None:
    asker, _ = listener.accept()
    size, files, _, _ = socket.recv_fds(asker, SIZE.size, 3)
    if len(size) < SIZE.size:  # the client is gone
        asker.close()
        return None
    with asker.makefile("rb") as stream:
        body = stream.read(*SIZE.unpack(size))
    pid = os.fork()
    if pid:
        for file in files:
            os.close(file)
        asker.sendall(SIZE.pack(pid))
        # Only the end of input matters, because the client may have been killed.
        events.register(asker, selectors.EVENT_READ, pid)
        events.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, asker))
        return None
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    asker.close()
    for key in list(events.get_map().values()):
        if isinstance(key.fileobj, socket.socket):
            key.fileobj.close()
        elif key.fd > 2:
            os.close(key.fd)
    request: dict[str, object] = json.loads(body)
    return request


def _give_up(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 9)


def _report(key: selectors.SelectorKey, events: selectors.BaseSelector) -> None:
    """Report the exit of a fork to the process waiting for it."""
    pid, asker = key.data
    events.unregister(key.fileobj)
    os.close(key.fd)
    with contextlib.suppress(KeyError):
        events.unregister(asker)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(OSError):  # the client no longer waits
        asker.sendall(str(status).encode())
    asker.close()


def _become(request: dict[str, object]) -> str:
    """Turn a fork into a fresh interpreter, and return the program's source."""
    environment = {str(name): str(value) for name, value in dict(request["env"]).items()}  # type: ignore[call-overload]
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(str(request["cwd"]))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background test runs ignore SIGINT
    if request.get("on_terminal"):
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.argv = list(map(str, request["words"]))  # type: ignore[call-overload]
    if request.get("site"):
        _use(str(request["site"]))
    if executable := str(request.get("executable") or ""):
        sys.executable, sys.prefix = executable, str(Path(executable).parent.parent)
        sys.exec_prefix = sys.prefix
        sys.modules.pop("sysconfig", None)  # it still has the former prefix
    paths = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:0] = paths
    _forget(paths)
    return str(request["program"])


def _forget(folders: list[str]) -> None:
    """Unload server modules that are shadowed by modules in these directories."""
    there = {
        entry.name.partition(".")[0] for folder in folders if Path(folder).is_dir() for entry in os.scandir(folder)
    }
    for name in [name for name in sys.modules if name.partition(".")[0] in there]:
        del sys.modules[name]


def _use(site: str) -> None:
    """Replace the interpreter's site-packages with a directory."""
    sys.path[:] = [path for path in sys.path if not path.endswith("-packages")] + [site]
    sys.path_importer_cache.clear()


def _main() -> str:
    address, before = sys.argv[1:]
    exec(compile(before, "<before>", "exec"), {})  # noqa: S102 - it is the tests' own
    gc.collect()
    gc.freeze()  # existing objects stay, so that the end of a fork need not scan them
    return _become(_serve(address))


def _run(program: str) -> int:
    """Run a program as `__main__` and return its exit status."""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        exec(compile(program, "<string>", "exec"), main.__dict__)  # noqa: S102
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        sys.stderr.write(f"{error.code}\n")
        return 1
    except BaseException:  # noqa: BLE001  (as an interpreter does, whatever it is)
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


if __name__ == "__main__":
    status = _run(_main())
    # Exit like a normal process, but without tearing down modules, which would take longer than most programs.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 0xFF)
