"""The `bubblewrap` sandbox: each program gets its own user, mount, process, IPC and network namespaces.

For root, programs run as another user, because the system does not count root's processes, and in a chroot, where no
further user namespaces can be created. For other users, bubblewrap itself forbids further user namespaces.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from jackfield.errors import SandboxError
from jackfield.sandboxes import Limits, Program, ProgramSandbox, Protection, Risk
from jackfield_bubblewrap.config import BubblewrapConfig
from jackfield_bubblewrap.system import SYSTEM, files_of_etc, folders_of_python, parents, program_of_system, resolved
from jackfield_confine.guarding import Gift, guarded
from jackfield_confine.probing import probe_protection

LAYER = "bubblewrap"
_JAIL = "/jail"  # in root's sandboxes, where nothing outside it is reachable
_APART = ("pid", "ipc", "uts", "cgroup-try")
_OWN_PROCESSES = 2  # bwrap outside, and the first process of the namespace
_NOBODY = 65534
_OWN_USERS = (1_879_048_192, 1_946_157_056)  # numbers that no user database assigns
_MB = 1 << 20


class Bubblewrap(ProgramSandbox):
    """Runs programs with `bwrap`, which needs neither a daemon nor root."""

    config_class = BubblewrapConfig
    config: BubblewrapConfig

    def protection(self) -> Protection:
        """Return the protection on this machine. Total memory is limited only if control groups are available.

        Raises:
            SandboxError: bubblewrap is not usable here.
        """
        covers, problem = _probe()
        if problem:
            raise SandboxError(problem)
        return Protection(LAYER, covers)

    def command(self, program: Program) -> list[str]:
        """Return the command: the guard, bubblewrap, the limits and the program.

        If root runs the command, the program runs as the owner of `work_dir`, or as an unused user if that is root. The
        writable folders and their contents are then given to this user.
        """
        program = resolved(program)
        limited = _limited(program.limits)
        if not _is_root():
            inside = [*limited, *program.argv]
            own = ["--unshare-user", *(["--disable-userns"] if _can_disable_namespaces() else [])]
            argv = [*_bwrap(), *own, *self._world("", program), "--chdir", program.work_dir, "--", *inside]
            return _guarded(argv, program)
        user = _user_for(program.work_dir)
        chroot = [program_of_system("chroot"), f"--userspec={user}:{user}", "--groups=", _JAIL]
        inside = [*chroot, *limited, program_of_system("env"), "-C", program.work_dir, *program.argv]
        rights = [word for name in ("SETUID", "SETGID", "SYS_CHROOT") for word in ("--cap-add", f"CAP_{name}")]
        outside = list(_bound(*SYSTEM, prefix=""))
        argv = [*_bwrap(), "--cap-drop", "ALL", *rights, *outside, "--tmpfs", _JAIL]
        argv += [*self._world(_JAIL, program), "--chdir", "/", "--", *inside]
        gift = Gift(user, (program.work_dir, *program.writable))
        return _guarded(argv, program, gift=gift)

    def _world(self, prefix: str, program: Program) -> Iterator[str]:
        """Yield the options that set up the program's file system below a prefix."""
        if not program.network:
            yield "--unshare-net"
        yield from _bound(*SYSTEM, prefix=prefix)
        yield from ("--proc", f"{prefix}/proc", "--dev", f"{prefix}/dev")
        for folder, size_mb in (("/dev/shm", self.config.shm_mb), ("/tmp", self.config.tmp_mb)):  # noqa: S108 - its own
            yield from ("--perms", "1777", "--size", str(size_mb * _MB), "--tmpfs", prefix + folder)
        # In /proc, a program could choose the first process to be killed when memory runs out.
        yield from ("--remount-ro", f"{prefix}/proc", "--remount-ro", f"{prefix}/dev")
        reads = [*files_of_etc(network=program.network), *folders_of_python(), *program.readable]
        writes = (program.work_dir, *program.writable)
        binds = dict.fromkeys(reads, "--ro-bind") | dict.fromkeys(writes, "--bind")
        for parent in parents(list(binds)):
            yield from ("--perms", "0755", "--dir", prefix + parent)
        # The inner ones last, so that they take effect: Python stays read-only even below a writable folder.
        for path in sorted(binds, key=lambda path: len(Path(path).parts)):
            yield from (binds[path], os.path.realpath(path), prefix + path)
        yield from ("--remount-ro", prefix or "/")


def _guarded(argv: list[str], program: Program, *, gift: Gift | None = None) -> list[str]:
    return guarded(
        argv,
        limits=program.limits,
        gift=gift,
        keeps_rights=gift is not None,
        leftovers=program.leftovers,
        filtered_by="bubblewrap",
        is_grouped=True,
        own_processes=_OWN_PROCESSES,
    )


def _bwrap() -> list[str]:
    apart = [f"--unshare-{name}" for name in _APART]
    return [program_of_system("bwrap"), *apart, "--die-with-parent", "--new-session"]


def _bound(*folders: str, prefix: str) -> Iterator[str]:
    for folder in folders:
        if os.path.islink(folder):  # noqa: PTH114 - beside readlink, for its text as it is
            yield from ("--symlink", os.readlink(folder).lstrip("/"), prefix + folder)  # noqa: PTH115 - as above
        elif Path(folder).is_dir():
            yield from ("--ro-bind", folder, prefix + folder)


def _limited(limits: Limits) -> list[str]:
    """Return a command prefix that limits the number of processes.

    The limit is set inside the sandbox, where processes of other namespaces do not count.
    """
    return [] if limits.processes is None else [program_of_system("prlimit"), f"--nproc={limits.processes}", "--"]


def _is_root() -> bool:
    """Return True if programs can run as another user. Some containers have only root."""
    return os.geteuid() == 0 and _is_mapped(_NOBODY)


def _user_for(folder: str) -> int:
    owner = Path(folder).stat().st_uid
    own = random.randrange(*_OWN_USERS)  # noqa: S311 - it need not be secret
    return owner or (own if _is_mapped(own) else _NOBODY)


@cache
def _is_mapped(user: int) -> bool:
    """Return True if this user id exists in the current user namespace."""
    ranges = [line.split() for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()]
    return any(int(first) <= user < int(first) + int(count) for first, _, count in ranges)


@cache
def _can_disable_namespaces() -> bool:
    """Return True if bubblewrap can prevent programs from creating user namespaces, which requires version 0.8."""
    asked = subprocess.run([program_of_system("bwrap"), "--help"], capture_output=True, text=True, check=False)  # noqa: S603
    return "--disable-userns" in asked.stdout + asked.stderr


@cache
def _probe() -> tuple[frozenset[Risk], str]:
    """Determine by trial which risks are covered here, or why the sandbox is unusable."""
    if sys.platform != "linux":
        return frozenset(), "bubblewrap runs on Linux only"
    try:
        program_of_system("bwrap")
    except SandboxError as error:
        return frozenset(), f"{error}: install your system's bubblewrap package (apt-get install bubblewrap)"
    try:
        return probe_protection(Bubblewrap()), ""
    except SandboxError as error:
        return frozenset(), f"bubblewrap does not work here: {error}"
