"""Isolate a process from others, from files and from the network: namespaces, Landlock, fewer privileges. Linux only.

This module imports only the standard library, because `guard` runs without site-packages. Every function that fails
raises `OSError`.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

NAMESPACES = "namespaces"
LANDLOCK = "landlock"
NONE = "none"

_LINUX = sys.platform == "linux"
_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWPID = 0x00020000, 0x10000000, 0x20000000
_CLONE_NEWIPC, _CLONE_NEWNET = 0x08000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 8, 0x1000, 0x4000, 0x40000
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1  # on every architecture
_MNT_DETACH = 2
_OLD_ROOT = ".old-root"
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION = 0x20080522
# Root's rights over files and users: CHOWN, DAC_OVERRIDE, FOWNER, SETGID, SETUID. FSETID is left out: with it, a setuid
# file would stay setuid after the code has written to it.
_KEPT_CAPABILITIES = sum(1 << number for number in (0, 1, 3, 6, 7))
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446  # on every architecture
_LANDLOCK_VERSION_FLAG = 1
_LANDLOCK_SCOPE_ABSTRACT_SOCKET, _LANDLOCK_SCOPE_SIGNAL = 1, 2
_LANDLOCK_ABI_WITH_TRUNCATE, _LANDLOCK_ABI_WITH_NETWORK, _LANDLOCK_ABI_WITH_SIGNALS = 3, 4, 6
_LANDLOCK_CONNECT_TCP = 2
_LANDLOCK_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE, _IOCTL = 1, 2, 4, 8, 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL  # the rest concern folders
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_KEYCTL_JOIN_SESSION = 1
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _LandlockRuleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


def best_barrier(allowed: list[str]) -> str:
    """Return the first of `allowed` that works on this machine, or `NONE`."""
    works = {NAMESPACES: _namespaces_work, LANDLOCK: _landlock_works}
    return next((name for name in allowed if _LINUX and name in works and works[name]()), NONE)


def enter_namespaces(*, leave_network: bool = False) -> bool:
    """Give the next child its own PID namespace, where it is process 1 and sees only itself and its children.

    Args:
        leave_network: Also move this process and its children into a new network with only a loopback device.

    Returns:
        True if a user namespace was needed, as for every user except root.
    """
    new = _CLONE_NEWPID | (_CLONE_NEWNET | _CLONE_NEWIPC if leave_network else 0)
    was_needed = _enter(new)
    if leave_network:
        _start_loopback()
    return was_needed


def _enter(new: int) -> bool:
    try:
        _unshare(new)
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        _unshare(_CLONE_NEWUSER | new)
        own = Path("/proc/self")
        with suppress(FileNotFoundError):  # Linux before 3.19
            (own / "setgroups").write_text("deny", encoding="ascii")
        (own / "uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        (own / "gid_map").write_text(f"{group} {group} 1", encoding="ascii")
        return True
    return False


def _start_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def show_own_processes_only() -> None:
    """Mount a /proc that shows only the namespace's processes. Must be called in process 1 of the namespace."""
    _unshare(_CLONE_NEWNS)
    _checked(_libc().mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))
    _checked(_libc().mount(b"proc", b"/proc", b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, None))


def see_only(*, readable: Sequence[str], writable: Sequence[str]) -> None:
    """Replace the root folder with one that has only these files and folders and the current /proc.

    Must be called in a separate mount namespace. A readable path stays read-only even below a writable one. The working
    directory is kept if it is still visible.
    """
    paths = {*readable, *writable}
    here = os.getcwd()  # noqa: PTH109 - light
    # Links in the system's root (/bin) stay links; all others are followed.
    sources = {path: os.path.realpath(path) for path in paths if os.path.exists(path)}  # noqa: PTH110 - light
    links = {path: os.readlink(path) for path in sources if path.count("/") == 1 and os.path.islink(path)}  # noqa: PTH114, PTH115
    libc = _libc()
    _checked(libc.mount(b"tmpfs", b"/tmp", b"tmpfs", _MS_NOSUID | _MS_NODEV, b"size=1m,mode=755"))
    old = f"/{_OLD_ROOT}"
    os.mkdir(f"/tmp{old}")  # noqa: PTH102, S108
    _checked(libc.pivot_root(b"/tmp", f"/tmp{old}".encode()))  # noqa: S108
    os.chdir("/")
    os.mkdir("/proc")  # noqa: PTH102
    _checked(libc.mount(f"{old}/proc".encode(), b"/proc", None, _MS_BIND | _MS_REC, None))
    for path in sorted(sources, key=lambda path: path.count("/")):
        if path in links:
            os.symlink(links[path], path)  # noqa: PTH211
        elif path != "/proc":
            _bind(old + sources[path], path)
            if path not in writable:
                _make_read_only(path)
    _checked(libc.umount2(old.encode(), _MNT_DETACH))
    os.rmdir(old)  # noqa: PTH106
    with suppress(FileNotFoundError):
        os.chdir(here)


def _make_read_only(path: str) -> None:
    """Make a mount and all mounts below it read-only, because Landlock does not cover file modes and times."""
    attributes = struct.pack("=QQQQ", _MOUNT_ATTR_RDONLY, 0, 0, 0)
    _checked(_syscall(_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(path), _AT_RECURSIVE, attributes, len(attributes)))


def _bind(source: str, target: str) -> None:
    if os.path.isdir(source):  # noqa: PTH112 - light
        os.makedirs(target, exist_ok=True)  # noqa: PTH103
    elif not os.path.lexists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
    _checked(_libc().mount(os.fsencode(source), os.fsencode(target), None, _MS_BIND | _MS_REC, None))


def forbid_signals_outward() -> None:
    """Let this process and its future children signal and inspect (`/proc/…/environ`) only each other."""
    _restrict(_LandlockRuleset(0, 0, _LANDLOCK_SCOPE_SIGNAL), [])


def restricts_files() -> bool:
    """Return True if the system can restrict a process's file access (Landlock since Linux 6.2)."""
    return _LINUX and _landlock_abi() >= _LANDLOCK_ABI_WITH_TRUNCATE


def restrict_files(*, readable: Sequence[str], writable: Sequence[str], network: bool) -> None:
    """Restrict this process and its future children to the files below these paths. Missing paths are ignored.

    Where the system supports it, they also cannot connect to TCP ports unless `network` is True, or reach abstract
    sockets and processes outside the restricted group.
    """
    abi = _landlock_abi()
    every = rights_of(abi)
    tcp = 0 if network or abi < _LANDLOCK_ABI_WITH_NETWORK else _LANDLOCK_CONNECT_TCP
    scopes = _LANDLOCK_SCOPE_ABSTRACT_SOCKET | _LANDLOCK_SCOPE_SIGNAL if abi >= _LANDLOCK_ABI_WITH_SIGNALS else 0
    rules = [(path, _READ) for path in readable] + [(path, every) for path in writable]
    _restrict(_LandlockRuleset(every, tcp, scopes), rules)


def rights_of(abi: int) -> int:
    """Return all file access rights that a Landlock version can restrict: 13 at first, one more each in 2, 3 and 5."""
    return (1 << 13 + (abi >= 2) + (abi >= 3) + (abi >= 5)) - 1


def _restrict(ruleset: _LandlockRuleset, rules: Sequence[tuple[str, int]]) -> None:
    opened = _checked(_syscall(_LANDLOCK_CREATE_RULESET, ctypes.byref(ruleset), ctypes.sizeof(ruleset), 0))
    try:
        for path, rights in rules:
            with suppress(FileNotFoundError):
                _allow(opened, path, rights & ruleset.files)
        _checked(_syscall(_LANDLOCK_RESTRICT_SELF, opened, 0))
    finally:
        os.close(opened)


def _allow(opened: int, path: str, rights: int) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights if os.path.isdir(path) else rights & _OF_FILES, place)  # noqa: PTH112 - light
        _checked(_syscall(_LANDLOCK_ADD_RULE, opened, _LANDLOCK_BENEATH, rule, 0))
    finally:
        os.close(place)


def give_up_rights() -> None:
    """Drop all capabilities except root's over files and users, and prevent programs from gaining others.

    A process cannot inspect another that has more capabilities. Code that runs as root therefore cannot read the keys
    in the environment of a host that runs as root.
    """
    if not _LINUX:
        return
    _checked(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    header = _CapabilityHeader(_CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable of 0 to 31, then of 32 to 63
    _checked(_libc().capget(ctypes.byref(header), sets))
    kept = _KEPT_CAPABILITIES if os.geteuid() == 0 else 0
    sets[:] = [sets[0] & kept, sets[1] & kept, 0, 0, 0, 0]
    _checked(_libc().capset(ctypes.byref(header), sets))


def leave_keyring() -> None:
    """Detach from the session keyring, so that the host's kernel-held keys are out of reach."""
    number = _KEYCTL.get(os.uname().machine)
    if number is not None:
        _syscall(number, _KEYCTL_JOIN_SESSION, None)  # fails if the kernel has no keys


def counts_processes_by_namespace() -> bool:
    """Return True if the system counts a user's processes per user namespace (since Linux 5.14)."""
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return release is not None and (int(release[1]), int(release[2])) >= (5, 14)


def _namespaces_work() -> bool:
    """Test namespaces in a child process, because a process cannot leave a namespace again."""
    return _succeeds(_try_namespaces)


def _try_namespaces() -> None:
    enter_namespaces()
    if not _succeeds(show_own_processes_only):
        raise OSError("the namespace has no /proc of its own")


def _succeeds(attempt: Callable[[], None]) -> bool:
    """Return True if `attempt` succeeds in a child process."""
    child = os.fork()
    if child == 0:
        failed = 1
        try:
            attempt()
            failed = 0
        finally:
            os._exit(failed)
    _, status = os.waitpid(child, 0)
    return status == 0


def _landlock_works() -> bool:
    return _landlock_abi() >= _LANDLOCK_ABI_WITH_SIGNALS


def _landlock_abi() -> int:
    return _syscall(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_VERSION_FLAG)


def _unshare(flags: int) -> None:
    _checked(_libc().unshare(flags))


def _syscall(number: int, *arguments: object) -> int:
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return int(_libc().syscall(ctypes.c_long(number), *wide))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
