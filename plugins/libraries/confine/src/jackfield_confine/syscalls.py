"""Build and install a sandbox's seccomp filter. Linux on x86-64 and ARM64.

The kernel runs a filter on every system call of a process and its children, and a filter cannot be removed. The
sandbox's filter refuses what namespaces, Landlock and limits leave open: memory that no limit counts, other ways to
files and sockets, tracing, further namespaces, and parts of the kernel that sandboxed programs do not need. It is a
classic BPF program of about 400 instructions, assembled here because libseccomp would be a system package and
bubblewrap takes bytes.

This module imports only the standard library, because `guard` runs without site-packages.

Sources: seccomp(2); Linux, `Documentation/userspace-api/seccomp_filter.rst`. The numbers are from
`arch/x86/entry/syscalls/syscall_64.tbl` and `include/uapi/asm-generic/unistd.h`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Iterator
from typing import NamedTuple

LAST_KNOWN = 462
"""The largest system call number covered by the table: `mseal`, Linux 6.10. Later calls return ENOSYS in a sandbox."""

X86_64, AARCH64 = "x86_64", "aarch64"
_AUDIT_ARCH = {X86_64: 0xC000003E, AARCH64: 0xC00000B7}

_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    # name: its number on x86-64 and on ARM64, None where it does not exist
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chmod": (90, None),
    "chown": (92, None),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "connect": (42, 203),
    "creat": (85, None),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "fcntl": (72, 25),
    "fgetxattr": (193, 10),
    "finit_module": (313, 273),
    "flistxattr": (196, 13),
    "fremovexattr": (199, 16),
    "fsconfig": (431, 431),
    "fsetxattr": (190, 7),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "futimesat": (261, None),
    "getxattr": (191, 8),
    "init_module": (175, 105),
    "inotify_add_watch": (254, 27),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, None),
    "iopl": (172, None),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lchown": (94, None),
    "lgetxattr": (192, 9),
    "listxattr": (194, 11),
    "llistxattr": (195, 12),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "msgctl": (71, 187),
    "msgget": (68, 186),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "name_to_handle_at": (303, 264),
    "open": (2, None),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "openat": (257, 56),
    "openat2": (437, 437),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "prlimit64": (302, 261),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "removexattr": (197, 14),
    "request_key": (249, 218),
    "semctl": (66, 191),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "settimeofday": (164, 170),
    "setxattr": (188, 5),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmdt": (67, 197),
    "shmget": (29, 194),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "utime": (132, None),
    "utimensat": (280, 88),
    "utimes": (235, None),
    "vhangup": (153, 58),
}

# On ENOSYS, programs assume an older kernel and use their fallback. glibc then starts threads with `clone`, whose flags
# a filter can read; the flags of `clone3` and the mode of `openat2` are in memory, which a filter cannot read.
_MISSING = (  # noqa: SIM905 - as below
    "clone3 fchmodat2 io_uring_enter io_uring_register io_uring_setup memfd_create memfd_secret openat2 userfaultfd "
    # System V shared memory and queues and POSIX queues outlive a process, and no process limit counts them.
    "mq_open mq_unlink msgctl msgget msgrcv msgsnd semctl semget semop semtimedop shmat shmctl shmdt shmget"
).split()
_REFUSED = (  # noqa: SIM905 - one name a line would be 50 lines
    "acct add_key bpf clock_adjtime clock_settime delete_module fanotify_init finit_module fsconfig fsmount "
    "fsopen fspick init_module ioperm iopl kcmp kexec_file_load kexec_load keyctl mount mount_setattr move_mount "
    "name_to_handle_at open_by_handle_at open_tree perf_event_open pidfd_getfd pivot_root process_madvise "
    "process_mrelease process_vm_readv process_vm_writev ptrace quotactl quotactl_fd reboot request_key setns "
    "settimeofday swapoff swapon syslog umount2 uselib vhangup"
).split()
# These take paths, and Landlock has no rules for them, so a program that sees the machine's files may use none of them.
_ATTRIBUTES_SET = (  # noqa: SIM905 - one name a line would be 50 lines
    "chmod chown fchmod fchmodat fchown fchownat fremovexattr fsetxattr futimesat lchown lremovexattr lsetxattr "
    "removexattr setxattr utime utimensat utimes"
).split()
_ATTRIBUTES_READ = (  # noqa: SIM905 - one name a line would be 50 lines
    "fgetxattr flistxattr getxattr lgetxattr listxattr llistxattr"
).split()

_CLONE_NEW = 0x7E020000  # every CLONE_NEW… flag of `clone`
_CLONE_NEWTIME = 0x80  # of `unshare` only
_SET_ID_BITS = 0o6000
_O_CREAT, _O_TMPFILE = 0o100, 0o20000000
_MODE_OF = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "creat": 1, "mknod": 1, "mknodat": 2}
_F_SETLEASE = 1024
_IOCTLS_REFUSED = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX type into a terminal
_IOCTLS_OF_ATTRIBUTES = (0x40086602, 0x40046602, 0x401C5820)  # FS_IOC_SETFLAGS, its 32-bit form, FS_IOC_FSSETXATTR
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_SOCK_STREAM, _SOCK_DGRAM, _SOCK_SEQPACKET, _SOCK_TYPE_MASK = 1, 2, 5, 0xF
_IPPROTO_TCP, _IPPROTO_UDP = 6, 17

_LD, _AND, _JEQ, _JGT, _RET = 0x20, 0x54, 0x15, 0x25, 0x06  # of words; AND, JEQ and JGT with a constant
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
_EVERY_BIT = 0xFFFFFFFF

_SECCOMP = {X86_64: 317, AARCH64: 277}
_SECCOMP_SET_MODE_FILTER = 1
_SECCOMP_FILTER_FLAG_TSYNC = 1


class _Test(NamedTuple):
    """A test on the low half of an argument. For an `int`, the kernel also ignores the high half."""

    argument: int
    value: int
    mask: int = _EVERY_BIT
    is_equal: bool = True


class _Rule(NamedTuple):
    """Refuses a system call with an error if all tests pass."""

    name: str
    error: int
    tests: tuple[_Test, ...] = ()


def filters_this_machine() -> bool:
    """Return True if filters can be built for this machine."""
    return sys.platform == "linux" and os.uname().machine in _AUDIT_ARCH and sys.byteorder == "little"


def build_filter(machine: str, *, shares_machine: bool) -> bytes:
    """Assemble the filter.

    Args:
        machine: `x86_64` or `aarch64`.
        shares_machine: True if the program has no namespaces of its own and sees the machine's files, sockets and
            processes. The program may then not change file attributes or connect to anything, and may open only UNIX
            and netlink sockets.

    Returns:
        An array of `struct sock_filter`, the format of bubblewrap's `--seccomp`.
    """
    column = (X86_64, AARCH64).index(machine)
    enosys = (_RET, 0, 0, _ERRNO | errno.ENOSYS)
    code = [
        (_LD, 0, 0, _ARCH_AT),
        (_JEQ, 1, 0, _AUDIT_ARCH[machine]),
        enosys,  # the calls of another architecture, such as 32-bit x86, have other numbers
        (_LD, 0, 0, _NUMBER_AT),
        (_JGT, 0, 1, LAST_KNOWN),  # also those of x32, whose numbers begin at 2**30
        enosys,
    ]
    for rule in _rules(shares_machine=shares_machine):
        number = _NUMBERS[rule.name][column]
        if number is not None:
            code += _assemble(rule, number)
    code.append((_RET, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *one) for one in code)


def install_filter(program: bytes) -> None:
    """Install a filter for this process and its future children. Requires `no_new_privs` or CAP_SYS_ADMIN.

    Raises:
        OSError: The kernel lacks seccomp, or refuses the filter.
    """
    held = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("=HxxxxxxQ", len(program) // 8, ctypes.addressof(held))
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = (_SECCOMP[os.uname().machine], _SECCOMP_SET_MODE_FILTER, _SECCOMP_FILTER_FLAG_TSYNC)
    if libc.syscall(*map(ctypes.c_long, arguments), header) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"the seccomp filter cannot be installed: {os.strerror(number)}")


def _assemble(rule: _Rule, number: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield a rule's instructions. If the rule does not apply, they leave the system call number in the register."""
    block: list[tuple[int, int, int, int]] = [(_RET, 0, 0, _ERRNO | rule.error)]
    if rule.tests:
        block.append((_LD, 0, 0, _NUMBER_AT))  # a test that fails jumps here
    for test in reversed(rule.tests):
        skip = len(block) - 1
        jump = (_JEQ, 0, skip, test.value) if test.is_equal else (_JEQ, skip, 0, test.value)
        mask = [] if test.mask == _EVERY_BIT else [(_AND, 0, 0, test.mask)]
        block = [(_LD, 0, 0, _ARGUMENTS_AT + 8 * test.argument), *mask, jump, *block]
    yield (_JEQ, 0, len(block), number)
    yield from block


def _rules(*, shares_machine: bool) -> Iterator[_Rule]:
    yield from (_Rule(name, errno.ENOSYS) for name in _MISSING)
    yield from (_Rule(name, errno.EPERM) for name in _REFUSED)
    yield _Rule("clone", errno.EPERM, (_has(0, _CLONE_NEW),))
    yield _Rule("unshare", errno.EPERM, (_has(0, _CLONE_NEW | _CLONE_NEWTIME),))
    # A setuid file created by code running as root would run as root for every user of the machine.
    for name, argument in _MODE_OF.items():
        yield _Rule(name, errno.EPERM, (_has(argument, _SET_ID_BITS),))
    for name, flags in (("open", 1), ("openat", 2)):
        yield _Rule(name, errno.EPERM, (_has(flags, _O_CREAT | _O_TMPFILE), _has(flags + 1, _SET_ID_BITS)))
    yield _Rule("fcntl", errno.EPERM, (_Test(1, _F_SETLEASE),))  # opening a leased file waits for its holder
    yield from (_Rule("ioctl", errno.EPERM, (_Test(1, request),)) for request in _IOCTLS_REFUSED)
    yield from _rules_of_sockets(shares_machine=shares_machine)
    if shares_machine:
        yield from (_Rule(name, errno.EPERM) for name in _ATTRIBUTES_SET)
        yield from (_Rule(name, errno.EOPNOTSUPP) for name in _ATTRIBUTES_READ)
        yield from (_Rule("ioctl", errno.EPERM, (_Test(1, request),)) for request in _IOCTLS_OF_ATTRIBUTES)
        yield _Rule("inotify_add_watch", errno.EACCES)  # Landlock lets any file be watched
        yield _Rule("connect", errno.EACCES)  # nor does it cover sockets in folders, such as Docker's
        for name in ("prlimit64", "setpriority", "ioprio_set"):
            yield _Rule(name, errno.EPERM, (_differs(0 if name == "prlimit64" else 1, 0),))


def _rules_of_sockets(*, shares_machine: bool) -> Iterator[_Rule]:
    families = (_AF_UNIX, _AF_NETLINK) if shares_machine else (_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK)
    other_family = tuple(_differs(0, family) for family in families)
    types = (_SOCK_STREAM, _SOCK_DGRAM, _SOCK_SEQPACKET)
    other_type = tuple(_differs(1, one, _SOCK_TYPE_MASK) for one in types)
    for name in ("socket", "socketpair"):
        yield _Rule(name, errno.EAFNOSUPPORT, other_family)
        if shares_machine:  # a datagram names its receiver in memory, which may be any socket in a folder
            is_datagram = _Test(1, _SOCK_DGRAM, _SOCK_TYPE_MASK)
            yield _Rule(name, errno.EPROTONOSUPPORT, (_Test(0, _AF_UNIX), is_datagram))
    # Libraries list the machine's addresses over netlink's first protocol, by SOCK_RAW.
    yield _Rule("socket", errno.EPROTONOSUPPORT, (_Test(0, _AF_NETLINK), _differs(2, 0)))
    yield _Rule("socket", errno.ESOCKTNOSUPPORT, (_differs(0, _AF_NETLINK), *other_type))
    # Landlock does not cover Multipath TCP, which needs only another protocol number.
    protocols = (0, _IPPROTO_TCP, _IPPROTO_UDP)
    for family in (_AF_INET, _AF_INET6):
        yield _Rule("socket", errno.EPROTONOSUPPORT, (_Test(0, family), *(_differs(2, one) for one in protocols)))


def _has(argument: int, bits: int) -> _Test:
    """Return a test that passes if any of these bits is set."""
    return _Test(argument, 0, bits, is_equal=False)


def _differs(argument: int, value: int, mask: int = _EVERY_BIT) -> _Test:
    return _Test(argument, value, mask, is_equal=False)
