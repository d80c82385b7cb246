"""The filter of system calls: decided by reading its program for both machines, and by trying it on this one."""

from __future__ import annotations

import errno
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from jackfield_confine import syscalls
from jackfield_confine.syscalls import AARCH64, LAST_KNOWN, X86_64, build_filter

ALLOWED = 0
_AUDIT = {X86_64: 0xC000003E, AARCH64: 0xC00000B7}


def decide(program: bytes, number: int, *arguments: int, arch: int) -> int:
    """Run a filter as the kernel does; the error it gives, 0 if it allows the call."""
    packet = struct.pack("=IIQ6Q", number, arch, 0, *arguments, *([0] * (6 - len(arguments))))
    code = list(struct.iter_unpack("=HBBI", program))
    register, at = 0, 0
    while True:
        operation, jump_true, jump_false, value = code[at]
        at += 1
        match operation:
            case 0x20:
                (register,) = struct.unpack_from("=I", packet, value)
            case 0x54:
                register &= value
            case 0x15:
                at += jump_true if register == value else jump_false
            case 0x25:
                at += jump_true if register > value else jump_false
            case 0x06:
                return ALLOWED if value == 0x7FFF0000 else value - 0x00050000
            case _:
                raise AssertionError(f"no such operation: {operation:#x}")


@pytest.fixture(params=[X86_64, AARCH64])
def machine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


class Filter:
    def __init__(self, machine: str, *, shares_machine: bool) -> None:
        self._machine = machine
        self._program = build_filter(machine, shares_machine=shares_machine)

    def __call__(self, name: str, *arguments: int) -> int:
        number = syscalls._NUMBERS[name][(X86_64, AARCH64).index(self._machine)]
        assert number is not None
        return decide(self._program, number, *arguments, arch=_AUDIT[self._machine])

    def of_number(self, number: int, *, arch: int | None = None) -> int:
        return decide(self._program, number, arch=_AUDIT[self._machine] if arch is None else arch)


@pytest.fixture
def own(machine: str) -> Filter:
    """The filter of a program with namespaces of its own."""
    return Filter(machine, shares_machine=False)


@pytest.fixture
def shared(machine: str) -> Filter:
    return Filter(machine, shares_machine=True)


HEADERS = {X86_64: "x86_64-linux-gnu/asm/unistd_64.h", AARCH64: "asm-generic/unistd.h"}


def test_the_numbers_are_those_of_the_systems_headers(machine: str) -> None:
    header = Path("/usr/include", HEADERS[machine])
    if not header.exists():
        pytest.skip(f"needs {header}, of linux-libc-dev")
    pairs = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text(encoding="ascii"))
    known = {name: int(number) for name, number in pairs}
    known.setdefault("fchmodat2", 452)  # Linux 6.6: newer than some headers
    column = (X86_64, AARCH64).index(machine)
    assert {name: numbers[column] for name, numbers in syscalls._NUMBERS.items()} == {
        name: known.get(name) for name in syscalls._NUMBERS
    }


def test_every_call_of_the_table_has_a_rule(own: Filter) -> None:
    named = {rule.name for rule in syscalls._rules(shares_machine=True)}
    assert named == set(syscalls._NUMBERS)
    assert own.of_number(0) == ALLOWED


# Written out a second time: a call that is dropped from the module's lists, or given another error, is missed here.
MISSING = """
    clone3 fchmodat2 io_uring_enter io_uring_register io_uring_setup memfd_create memfd_secret mq_open mq_unlink msgctl
    msgget msgrcv msgsnd openat2 semctl semget semop semtimedop shmat shmctl shmdt shmget userfaultfd
"""
REFUSED = """
    acct add_key bpf clock_adjtime clock_settime delete_module fanotify_init finit_module fsconfig fsmount fsopen fspick
    init_module ioperm iopl kcmp kexec_file_load kexec_load keyctl mount mount_setattr move_mount name_to_handle_at
    open_by_handle_at open_tree perf_event_open pidfd_getfd pivot_root process_madvise process_mrelease process_vm_readv
    process_vm_writev ptrace quotactl quotactl_fd reboot request_key setns settimeofday swapoff swapon syslog umount2
    uselib vhangup
"""
ATTRIBUTES_SET = """
    chmod chown fchmod fchmodat fchown fchownat fremovexattr fsetxattr futimesat lchown lremovexattr lsetxattr
    removexattr setxattr utime utimensat utimes
"""
ATTRIBUTES_READ = "fgetxattr flistxattr getxattr lgetxattr listxattr llistxattr"
ONLY_X86 = "chmod chown creat futimesat ioperm iopl lchown mknod open uselib utime utimes"
ERRORS = (
    dict.fromkeys(MISSING.split(), errno.ENOSYS)
    | dict.fromkeys(REFUSED.split(), errno.EPERM)
    | dict.fromkeys(("socket", "socketpair"), errno.EAFNOSUPPORT)  # of family 0
)
ERRORS_WHERE_SHARED = (
    ERRORS
    | dict.fromkeys(ATTRIBUTES_SET.split(), errno.EPERM)
    | dict.fromkeys(ATTRIBUTES_READ.split(), errno.EOPNOTSUPP)
    | {"connect": errno.EACCES, "inotify_add_watch": errno.EACCES}
)


@pytest.mark.parametrize(("shares_machine", "errors"), [(False, ERRORS), (True, ERRORS_WHERE_SHARED)])
def test_exactly_these_calls_are_refused_whatever_their_arguments(
    machine: str, shares_machine: bool, errors: dict[str, int]
) -> None:
    column = (X86_64, AARCH64).index(machine)
    names = {numbers[column]: name for name, numbers in syscalls._NUMBERS.items() if numbers[column] is not None}
    decided = Filter(machine, shares_machine=shares_machine)
    refused = {
        names.get(number, number): error for number in range(LAST_KNOWN + 1) if (error := decided.of_number(number))
    }
    here = errors if machine == X86_64 else {name: errors[name] for name in errors if name not in ONLY_X86.split()}
    assert refused == here


@pytest.mark.parametrize("number", [LAST_KNOWN + 1, 470, 1000, 0x4000_0000 + 39, 2**32 - 1])
def test_calls_that_the_table_does_not_know_do_not_exist(own: Filter, shared: Filter, number: int) -> None:
    assert own.of_number(number) == shared.of_number(number) == errno.ENOSYS


@pytest.mark.parametrize("arch", [0x40000003, 0x40000028, 0])
def test_calls_of_another_architecture_do_not_exist(own: Filter, arch: int) -> None:
    assert own.of_number(1, arch=arch) == errno.ENOSYS


@pytest.mark.parametrize("name", ["memfd_create", "memfd_secret", "shmget", "mq_open", "io_uring_setup", "clone3"])
def test_what_has_a_fallback_is_said_to_be_missing(own: Filter, name: str) -> None:
    assert own(name) == errno.ENOSYS


@pytest.mark.parametrize("name", ["ptrace", "process_vm_readv", "bpf", "keyctl", "mount", "setns", "perf_event_open"])
def test_what_no_program_in_a_sandbox_needs_is_refused(own: Filter, name: str) -> None:
    assert own(name) == errno.EPERM


def test_threads_and_children_start_and_namespaces_do_not(own: Filter) -> None:
    assert own("clone", 0x3D0F00) == own("clone", 17) == own("unshare", 0x400) == ALLOWED
    for flag in (0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert own("clone", flag | 17) == own("unshare", flag) == errno.EPERM
    assert own("unshare", 0x80) == errno.EPERM


def test_no_file_gets_the_right_to_run_as_its_owner(own: Filter) -> None:
    for mode in (0o4755, 0o2755, 0o6000):
        assert own("fchmod", 3, mode) == own("fchmodat", -100 % 2**64, 0, mode) == errno.EPERM
        assert own("mknodat", 3, 0, 0o100000 | mode) == errno.EPERM
        assert own("openat", 3, 0, os.O_CREAT | os.O_WRONLY, mode) == errno.EPERM
        assert own("openat", 3, 0, 0o20200000, mode) == errno.EPERM  # O_TMPFILE
        assert own("openat", 3, 0, os.O_RDONLY, mode) == ALLOWED  # without a new file, the mode is what was left there
    assert own("fchmod", 3, 0o1777) == own("openat", 3, 0, os.O_CREAT, 0o666) == ALLOWED


def test_no_file_gets_that_right_by_the_older_calls_of_x86() -> None:
    own = Filter(X86_64, shares_machine=False)
    for mode in (0o4755, 0o2755, 0o6000):
        assert own("chmod", 0, mode) == own("creat", 0, mode) == own("mknod", 0, 0o100000 | mode) == errno.EPERM
        assert own("open", 0, os.O_CREAT | os.O_WRONLY, mode) == own("open", 0, 0o20200000, mode) == errno.EPERM
        assert own("open", 0, os.O_RDONLY, mode) == ALLOWED
    assert own("open", 0, os.O_CREAT, 0o666) == own("creat", 0, 0o644) == own("chmod", 0, 0o1777) == ALLOWED


def test_nothing_is_typed_into_a_terminal_and_its_other_orders_pass(own: Filter) -> None:
    orders = (0x5412, 0x541C, 0x5401, 0x5413)  # TIOCSTI, TIOCLINUX, TCGETS, TIOCGWINSZ
    assert [own("ioctl", 0, order) for order in orders] == [errno.EPERM, errno.EPERM, ALLOWED, ALLOWED]


def test_the_high_half_of_an_argument_hides_nothing(own: Filter) -> None:
    high = 0xDEAD << 32
    assert (
        own("fchmod", 3, high | 0o4755) == own("fcntl", 3, high | 1024) == own("ioctl", 0, high | 0x5412) == errno.EPERM
    )
    assert own("socket", high | 17, 3) == errno.EAFNOSUPPORT


def test_a_lease_is_refused_and_other_commands_are_not(own: Filter) -> None:
    assert [own("fcntl", 3, command) for command in (1, 3, 6, 1024, 1031)] == [0, 0, 0, errno.EPERM, 0]


TCP, UDP, STREAM, DGRAM, RAW, SEQPACKET = 6, 17, 1, 2, 3, 5


def test_sockets_of_a_network_of_its_own(own: Filter) -> None:
    flags = 0o2004000  # SOCK_CLOEXEC and SOCK_NONBLOCK
    for family in (2, 10):
        assert own("socket", family, STREAM | flags, TCP) == own("socket", family, DGRAM, UDP) == ALLOWED
        assert own("socket", family, STREAM, 262) == errno.EPROTONOSUPPORT  # MPTCP
        assert own("socket", family, RAW, 1) == errno.ESOCKTNOSUPPORT
    assert own("socket", 1, STREAM) == own("socket", 1, DGRAM) == own("socketpair", 1, SEQPACKET) == ALLOWED
    assert own("socket", 1, RAW) == errno.ESOCKTNOSUPPORT  # Linux makes a datagram socket of it
    assert own("socket", 16, RAW, 0) == ALLOWED
    assert own("socket", 16, RAW, 6) == errno.EPROTONOSUPPORT
    assert own("connect") == ALLOWED
    for family in (17, 38, 40, 44, 3, 0):
        assert own("socket", family, STREAM) == errno.EAFNOSUPPORT


def test_sockets_where_the_network_is_the_machines(shared: Filter) -> None:
    assert shared("socket", 1, STREAM) == shared("socketpair", 1, STREAM) == shared("socket", 16, RAW, 0) == ALLOWED
    for family in (2, 10, 17):
        assert shared("socket", family, STREAM, 0) == errno.EAFNOSUPPORT
    assert shared("socket", 1, DGRAM) == shared("socketpair", 1, DGRAM) == errno.EPROTONOSUPPORT
    assert shared("connect") == errno.EACCES


def test_attributes_of_files_can_be_changed_only_where_the_files_are_its_own(own: Filter, shared: Filter) -> None:
    for name in ("fchmod", "fchownat", "utimensat", "setxattr", "fremovexattr"):
        assert (own(name), shared(name)) == (ALLOWED, errno.EPERM)
    for order in (0x40086602, 0x40046602, 0x401C5820):
        assert (own("ioctl", 3, order), shared("ioctl", 3, order)) == (ALLOWED, errno.EPERM)
    assert (own("getxattr"), shared("getxattr")) == (ALLOWED, errno.EOPNOTSUPP)


def test_limits_of_others_can_be_changed_only_where_others_are_its_own(own: Filter, shared: Filter) -> None:
    assert shared("prlimit64", 0) == shared("setpriority", 0, 0) == ALLOWED
    assert shared("prlimit64", 77) == shared("setpriority", 0, 77) == shared("ioprio_set", 1, 77) == errno.EPERM
    assert own("prlimit64", 77) == ALLOWED


@pytest.mark.parametrize(
    ("platform", "machine", "byteorder", "filters"),
    [
        ("linux", "x86_64", "little", True), ("linux", "aarch64", "little", True), ("linux", "aarch64", "big", False),
        ("linux", "riscv64", "little", False), ("darwin", "x86_64", "little", False),
    ],
)  # fmt: skip
def test_there_is_a_filter_for_two_machines(
    platform: str, machine: str, byteorder: str, filters: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(sys, "byteorder", byteorder)
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("", "", "", "", machine)))
    assert syscalls.filters_this_machine() is filters


TRIED = """
import ctypes, errno, os, sys, threading
sys.path.insert(0, sys.argv[1])
import syscalls
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
syscalls.install_filter(syscalls.build_filter(os.uname().machine, shares_machine=sys.argv[2] == "shared"))
said = []
thread = threading.Thread(target=lambda: said.append("thread"))
thread.start(); thread.join()
if os.fork() == 0:
    os.execv("/bin/true", ["true"])
said.append(os.wait()[1])
for attempt in (lambda: os.memfd_create("x"), lambda: os.chmod(__file__ if "__file__" in dir() else "/", 0o4755)):
    try:
        attempt()
        said.append("passed")
    except OSError as error:
        said.append(errno.errorcode[error.errno])
print(said)
"""


@pytest.mark.skipif(not syscalls.filters_this_machine(), reason="there is no filter for this machine")
@pytest.mark.parametrize("mode", ["own", "shared"])
def test_the_kernel_takes_the_filter_and_programs_run_under_it(mode: str) -> None:
    folder = str(Path(syscalls.__file__).parent)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", TRIED, folder, mode], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "['thread', 0, 'ENOSYS', 'EPERM']\n", done.stderr


def test_a_filter_that_the_kernel_refuses_is_an_error() -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import syscalls; syscalls.install_filter(b'x' * 8)"
    folder = str(Path(syscalls.__file__).parent)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, folder], capture_output=True, text=True, timeout=60, check=False
    )
    assert "the seccomp filter cannot be installed: Invalid argument" in done.stderr
