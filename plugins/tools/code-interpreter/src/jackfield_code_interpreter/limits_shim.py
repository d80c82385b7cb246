"""Start a kernel inside limits, and end whatever it started. Run as a script, by the interpreter that has ipykernel.

    python limits_shim.py '{"memory_bytes": …}' barriers private-folder report-file -f connection.json …

Two processes come of it. The kernel gets the limits and then becomes ipykernel. The other, its guard, waits: when the
host process is gone, asks it to stop (SIGTERM), or the kernel ends, it kills the kernel and all descendants, also those
that made a session of their own. It ends with the kernel's exit code, or 128 and the number of the signal. The private
folder is the host's to remove; only when the host is gone, this process does it.

`barriers` are those that may be tried, the best first, with commas between; which one was found to work is written into
the report file before the kernel starts. With namespaces there is a third process between the two, the first of its
namespace: the kernel cannot signal it, does not see the guard at all, and nothing in the namespace outlives it.

Only the standard library is used, and nothing of this package but `barriers`, which is the same: the interpreter may be
another one.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jackfield_code_interpreter import barriers
else:
    import barriers

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_MESSAGE_CHARS = 1_000_000
_LINUX = sys.platform == "linux"


def main() -> None:
    """Become the guard of a kernel."""
    limits: dict[str, int] = json.loads(sys.argv[1])
    allowed, private, report, *arguments = sys.argv[2:]
    host = os.getppid()
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    barrier = barriers.best_barrier(allowed.split(","))
    Path(report).write_text(barrier, encoding="ascii")
    others = _running_threads()  # of this user: counted here, where all are seen
    if barrier == barriers.NAMESPACES:
        if barriers.enter_namespaces() and barriers.counts_processes_by_namespace():
            others = 0
        kernel = _fork_first(lambda: _fork_kernel(barrier, limits, arguments, others))
    else:
        kernel = _fork_kernel(barrier, limits, arguments, others)
    code = _guard(kernel, host)
    if os.getppid() != host:
        shutil.rmtree(private, ignore_errors=True)
    os._exit(code)


# --- the first process of a namespace ---


def _fork_first(fork_kernel: Callable[[], int]) -> int:
    """Fork the process that holds a namespace together; when it ends, the system kills all others in it."""
    readable, writable = os.pipe()
    first = os.fork()
    if first:
        os.close(readable)  # the other end stays open for as long as this process lives
        return first
    os.close(writable)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if select.select([readable], [], [], 0)[0]:  # the guard died before the line above; its number is not seen here
        os._exit(1)
    os.close(readable)
    barriers.show_own_processes_only()
    kernel = fork_kernel()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == kernel:
            os._exit(_exit_code(status))


# --- the kernel ---


def _fork_kernel(barrier: str, limits: dict[str, int], arguments: list[str], others: int) -> int:
    parent = os.getpid()
    kernel = os.fork()
    if kernel == 0:
        _become_kernel(barrier, limits, arguments, parent=parent, others=others)
        sys.exit()  # and not at once: code may have asked for things to be done at the exit
    return kernel


def _become_kernel(barrier: str, limits: dict[str, int], arguments: list[str], *, parent: int, others: int) -> None:
    os.setsid()  # its own process group: an interrupt of the kernel reaches what it started, and not the guard
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the line above
        os._exit(1)
    # ipykernel leaves when this process is not its parent; it was told the host's, which is not.
    os.environ["JPY_PARENT_PID"] = str(parent)
    apply_limits(limits, others=others)
    barriers.give_up_rights()
    if barrier == barriers.LANDLOCK:
        barriers.forbid_signals_outward()
    # The script's folder: modules beside it must not hide those of the code.
    del sys.path[0], sys.modules["barriers"]
    sys.argv[1:] = arguments
    from ipykernel.kernelapp import launch_new_instance

    _send_output_in_small_messages()
    launch_new_instance()


def _send_output_in_small_messages() -> None:
    """Make printing wait for the sending of what was printed.

    ipykernel collects for a fifth of a second and sends that as one message: a loop that prints could fill the memory
    of the kernel, and of the host, with it.
    """
    from ipykernel.iostream import OutStream

    write = OutStream.write
    waiting: dict[int, int] = {}

    def write_and_wait(stream: OutStream, text: str) -> int | None:
        if not isinstance(text, str):
            return write(stream, text)  # which refuses it
        for start in range(0, len(text), _MESSAGE_CHARS):
            part = text[start : start + _MESSAGE_CHARS]
            write(stream, part)
            waiting[id(stream)] = waiting.get(id(stream), 0) + len(part)
            if waiting[id(stream)] >= _MESSAGE_CHARS:
                waiting[id(stream)] = 0
                stream.flush()  # type: ignore[no-untyped-call]
        return len(text)

    OutStream.write = write_and_wait  # type: ignore[method-assign,assignment]


def apply_limits(limits: dict[str, int], *, others: int) -> None:
    """Lower the limits of this process and of all it will start; `others` are the threads the user has beside them."""
    _lower(resource.RLIMIT_CORE, 0)
    if "memory_bytes" in limits:
        _lower(resource.RLIMIT_AS, limits["memory_bytes"])
    if "cpu_s" in limits:
        _lower(resource.RLIMIT_CPU, limits["cpu_s"], grace=5)
    if "file_bytes" in limits:
        _lower(resource.RLIMIT_FSIZE, limits["file_bytes"])
    if "processes" in limits and os.getuid() != 0:  # the system does not count root's
        # It counts all processes of the user, not those of the kernel alone.
        _lower(resource.RLIMIT_NPROC, limits["processes"] + others)


def _lower(which: int, value: int, *, grace: int = 0) -> None:
    """Set a limit; after `grace` more (of CPU time, the signal having been caught) the system kills."""
    _, hard = resource.getrlimit(which)
    ceiling = value + grace if hard == resource.RLIM_INFINITY else min(value + grace, hard)
    with suppress(ValueError, OSError):  # macOS knows limits that it does not let be set
        resource.setrlimit(which, (min(value, ceiling), ceiling))


def _running_threads() -> int:
    """How many threads the user has; 0 where this cannot be known."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it may have ended meanwhile
            if process.stat().st_uid == os.getuid():
                count += sum(1 for _ in (process / "task").iterdir())
    return count


# --- the guard ---


def _guard(kernel: int, host: int) -> int:
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: asked.append(number))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    status = None
    while status is None and not asked and os.getppid() == host:
        select.select([readable], [], [], 0.5)
        with suppress(BlockingIOError):
            os.read(readable, 512)
        status = _reap(kernel)
    with suppress(ProcessLookupError, PermissionError):
        if status is None:
            os.kill(kernel, signal.SIGKILL)
        os.killpg(kernel, signal.SIGKILL)
    left = _end_descendants(kernel)
    return _exit_code(left if status is None else status)


def _reap(kernel: int) -> int | None:
    """The kernel's wait status if it has ended. Orphans that came to us and ended are reaped on the way."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == kernel:
            return status
        if pid == 0:
            return None


def _end_descendants(kernel: int) -> int:
    """Kill until no child is left; those of killed ones become ours. The kernel's wait status, if it was among them."""
    status = 0
    give_up = time.monotonic() + 5
    while time.monotonic() < give_up:
        for child in _children():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        try:
            pid, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == kernel:
            status = ended
        elif pid == 0:
            time.sleep(0.005)
    return status


def _children() -> list[int]:
    """The children of this process; [] where only the process group can be known."""
    try:
        return list(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()))
    except OSError:
        return []


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _prctl(option: int, value: int) -> None:
    if _LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()
