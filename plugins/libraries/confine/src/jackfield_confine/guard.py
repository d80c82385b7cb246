"""Run a program within limits, and end every process it started. Run as a script, by any Python, with `-I -S`.

    python -I -S guard.py '{"limits": {"memory_bytes": …}, "barriers": […], …}' program argument …

The script forks. The child applies the limits and becomes the program; the parent stays behind as its guard. When the
host process is gone or requests a stop (SIGTERM), or the program ends, the guard kills the program and all descendants,
including those in sessions of their own. The guard exits with the program's exit code, or with 128 plus the signal
number.

The plan, as JSON, holds the arguments of `guarding.guarded`. With namespaces, a third process sits between the two, as
the first in its namespace. The program can neither signal that process nor see the guard, and nothing in the namespace
outlives it.

Only the standard library and the sibling modules `barriers`, `cgroups` and `syscalls` are imported, which have no other
dependencies either.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jackfield_confine import barriers, cgroups, syscalls
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - as -I leaves it out
    import barriers
    import cgroups
    import syscalls

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LINUX = sys.platform == "linux"
_NOT_STARTED = 126
_MOST_GIVEN = 20_000
_MOST_FILES, _LEAST_FILES = 4096, 256  # open at one time


def main() -> None:
    """Become the guard of a program."""
    plan: dict[str, Any] = json.loads(sys.argv[1])
    host = os.getppid()
    barrier = barriers.best_barrier(plan["barriers"])
    if plan["files"] is not None and barrier != barriers.NAMESPACES:
        host = _stand_behind(host)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    if plan["report"]:
        Path(plan["report"]).write_text(barrier, encoding="ascii")
    if plan["gift"]:
        for folder in plan["gift"]["folders"]:
            give_away(folder, plan["gift"]["user"])
    group = None
    # Blocked until the guard has its handler. Before that, a stop request would end only the guard.
    _hold_requests(signal.SIG_BLOCK)
    try:
        if plan["group"]:
            group = cgroups.ControlGroup(**plan["group"])
        program = _start(barrier, plan, sys.argv[2:], group)
    except OSError as error:
        sys.stderr.write(f"the sandbox cannot be set up: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(_NOT_STARTED)
    code = _guard(program, host)
    if group is not None:
        group.remove()
    if os.getppid() != host and plan["leftovers"]:
        import shutil  # its imports cost more than the rest of this script

        shutil.rmtree(plan["leftovers"], ignore_errors=True)
    os._exit(code)


def _start(barrier: str, plan: dict[str, Any], argv: list[str], group: cgroups.ControlGroup | None) -> int:
    """Start the program behind its barrier, and return the pid to wait for."""
    # This user's processes, counted here, where all are visible.
    others = running_threads() if "processes" in plan["limits"] and os.getuid() != 0 else 0
    if barrier != barriers.NAMESPACES:
        return _fork_program(barrier, plan, argv, others, group)
    files = plan["files"]
    was_needed = barriers.enter_namespaces(leave_network=files is not None and not files["network"])
    if was_needed and barriers.counts_processes_by_namespace():
        others = 0
    return _fork_first(lambda: _fork_program(barrier, plan, argv, others, group), files)


def _stand_behind(host: int) -> int:
    """Continue in a child, while the parent forwards signals to it. Return the parent's pid.

    Without a namespace, killing the guard would leave its processes running. So the process that the host can kill has
    only the guard as a child. The guard notices when that process ends, and the program cannot signal the guard.
    """
    front = os.getpid()
    guard = os.fork()
    if guard == 0:
        return front
    readable = _wake_on_signals()
    signal.signal(signal.SIGTERM, lambda *_: os.kill(guard, signal.SIGTERM))
    while os.getppid() == host:
        _wait_for_signal(readable)
        ended, status = os.waitpid(guard, os.WNOHANG)
        if ended:
            os._exit(_exit_code(status))
    os._exit(1)


def give_away(folder: str, user: int) -> None:
    """Transfer a folder owned by root, and root's files below it, to another user."""
    entries = 0
    for _, folders, files, opened in os.fwalk(folder, follow_symlinks=False):
        if os.fstat(opened).st_uid == 0:
            os.fchown(opened, user, user)
        for name in (*folders, *files):
            entries += 1
            if _is_roots_alone(os.stat(name, dir_fd=opened, follow_symlinks=False)):
                os.chown(name, user, user, dir_fd=opened, follow_symlinks=False)
        if entries > _MOST_GIVEN:
            break


def _is_roots_alone(facts: os.stat_result) -> bool:
    """Return True if only root uses the file. A file with several hard links may also be used elsewhere."""
    return facts.st_uid == 0 and (facts.st_nlink <= 1 or stat.S_ISDIR(facts.st_mode))


# --- the first process of a namespace ---


def _fork_first(fork_program: Callable[[], int], files: dict[str, Any] | None) -> int:
    """Fork the first process of a namespace. When it ends, the kernel kills all other processes in the namespace."""
    readable, writable = os.pipe()
    first = os.fork()
    if first:
        os.close(readable)  # the other end stays open for as long as this process lives
        return first
    os.close(writable)
    _hold_requests(signal.SIG_UNBLOCK)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if select.select([readable], [], [], 0)[0]:  # the guard died before the line above; its number is not seen here
        os._exit(1)
    os.close(readable)
    barriers.show_own_processes_only()
    if files is not None:
        barriers.see_only(readable=files["readable"], writable=files["writable"])
    program = fork_program()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == program:
            os._exit(_exit_code(status))


# --- the program ---


def _fork_program(
    barrier: str, plan: dict[str, Any], argv: list[str], others: int, group: cgroups.ControlGroup | None
) -> int:
    parent = os.getpid()
    program = os.fork()
    if program == 0:
        try:
            _hold_requests(signal.SIG_UNBLOCK)
            if group is not None:
                group.join()
            _become(barrier, plan, argv, parent=parent, others=others)
        except OSError as error:
            sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
            sys.stderr.flush()
        finally:
            os._exit(_NOT_STARTED)
    return program


def _become(barrier: str, plan: dict[str, Any], argv: list[str], *, parent: int, others: int) -> None:
    os.setsid()  # its own process group, so that an interrupt reaches its children but not the guard
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the line above
        return
    if _LINUX:
        with suppress(OSError):  # killed first when memory runs out
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
        barriers.leave_keyring()
    apply_limits(plan["limits"], others=others)
    if plan["filter"] == "bubblewrap" and syscalls.filters_this_machine():
        argv = [argv[0], "--seccomp", str(_pipe_filter()), *argv[1:]]
    if plan["keeps_rights"]:  # for a program that drops them itself
        os.execvp(argv[0], argv)  # noqa: S606 - no shell is wanted
    barriers.give_up_rights()
    if plan["files"] is not None:
        # A network of its own has no way out, so the program may connect to itself there.
        network = plan["files"]["network"] or barrier == barriers.NAMESPACES
        barriers.restrict_files(**{**plan["files"], "network": network})
    elif barrier == barriers.LANDLOCK:
        barriers.forbid_signals_outward()
    if plan["filter"] == "guard" and syscalls.filters_this_machine():
        shares_machine = barrier != barriers.NAMESPACES
        syscalls.install_filter(syscalls.build_filter(os.uname().machine, shares_machine=shares_machine))
    os.execvp(argv[0], argv)  # noqa: S606 - as above


def _pipe_filter() -> int:
    """Write the filter to a pipe for bubblewrap, which installs it last, and return the read end."""
    readable, writable = os.pipe()
    os.write(writable, syscalls.build_filter(os.uname().machine, shares_machine=False))
    os.close(writable)
    os.set_inheritable(readable, True)
    return readable


def apply_limits(limits: dict[str, int], *, others: int) -> None:
    """Lower the limits of this process and its future children. `others` is the number of the user's other threads."""
    _lower(resource.RLIMIT_CORE, 0)
    if "memory_bytes" in limits:
        _lower(resource.RLIMIT_AS, limits["memory_bytes"])
        # Data in sockets is kernel memory, so allow only as many sockets as can hold that much in total.
        files = limits["memory_bytes"] // most_bytes_of_socket()
        _lower(resource.RLIMIT_NOFILE, min(_MOST_FILES, max(_LEAST_FILES, files)))
    if "cpu_s" in limits:
        _lower(resource.RLIMIT_CPU, limits["cpu_s"], grace=5)
    if "file_bytes" in limits:
        _lower(resource.RLIMIT_FSIZE, limits["file_bytes"])
    if "processes" in limits and os.getuid() != 0:  # the system does not count root's processes
        # The limit counts all processes of the user, not only the program's.
        _lower(resource.RLIMIT_NPROC, limits["processes"] + others)


def most_bytes_of_socket() -> int:
    """Return a UNIX socket's capacity: twice the largest buffer, plus one more message once that is full."""
    try:
        return 4 * int(Path("/proc/sys/net/core/wmem_max").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 4 * 212_992  # Linux's default


def _lower(which: int, value: int, *, grace: int = 0) -> None:
    """Set a soft limit, with the hard limit `grace` above it. The kernel kills processes at the hard CPU time limit."""
    _, hard = resource.getrlimit(which)
    ceiling = value + grace if hard == resource.RLIM_INFINITY else min(value + grace, hard)
    with suppress(ValueError, OSError):  # macOS has limits that cannot be set
        resource.setrlimit(which, (min(value, ceiling), ceiling))


def running_threads() -> int:
    """Return the number of threads that the user is running, or 0 if unknown."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it may have ended meanwhile
            if process.stat().st_uid == os.getuid():
                count += sum(1 for _ in (process / "task").iterdir())
    return count


# --- the guard ---


def _guard(program: int, host: int) -> int:
    asked: list[int] = []
    readable = _wake_on_signals()
    signal.signal(signal.SIGTERM, lambda number, _frame: asked.append(number))
    _hold_requests(signal.SIG_UNBLOCK)
    status = None
    while status is None and not asked and os.getppid() == host:
        _wait_for_signal(readable)
        status = _reap(program)
    with suppress(ProcessLookupError, PermissionError):
        if status is None:
            os.kill(program, signal.SIGKILL)
        os.killpg(program, signal.SIGKILL)
    left = _end_descendants(program)
    return _exit_code(left if status is None else status)


def _hold_requests(how: int) -> None:
    """Block (SIG_BLOCK) or deliver (SIG_UNBLOCK) stop requests. Child processes inherit the mask, even across exec."""
    signal.pthread_sigmask(how, {signal.SIGTERM})


def _wake_on_signals() -> int:
    """Return the read end of a pipe that becomes readable after a signal, including the end of a child."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return readable


def _wait_for_signal(readable: int) -> None:
    """Wait for a signal, but at most half a second, because the end of the parent sends none."""
    select.select([readable], [], [], 0.5)
    with suppress(BlockingIOError):
        os.read(readable, 512)


def _reap(program: int) -> int | None:
    """Return the program's wait status, or None while it is running. Ended orphans are reaped on the way."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == program:
            return status
        if pid == 0:
            return None


def _end_descendants(program: int) -> int:
    """Kill children and adopted orphans until none are left. Return the program's wait status if it was among them."""
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
        if pid == program:
            status = ended
        elif pid == 0:
            time.sleep(0.005)
    return status


def _children() -> list[int]:
    """Return the pids of this process's children, or [] if the system does not list them."""
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
