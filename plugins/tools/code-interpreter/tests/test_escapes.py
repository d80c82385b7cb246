"""What code in a sandbox tries in order to get out of it, or to take more than its share: all of it fails.

One kernel for each sandbox, and one without: there, what is harmless must succeed, else it would show nothing here.
"""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jackfield import sync
from jackfield.errors import SandboxError
from jackfield.plugins import default_host
from jackfield.sandboxes import ProgramSandbox, choose_sandbox
from jackfield.tools import ToolResult
from jackfield_bubblewrap import landlock
from jackfield_code_interpreter import launch
from jackfield_code_interpreter.tool import CodeInterpreter

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sandboxes are Linux's")

SECRET = "SECRET-OF-THE-HOST"
X86 = platform.machine() == "x86_64"
SHM_KEY = 0x4A46_0000 + os.getpid() % 0xFFFF


@dataclass(frozen=True)
class Attempt:
    """Code that raises an error if it is kept from what it tries.

    Attributes:
        works_outside: It succeeds without a sandbox, and does no harm there.
        only: The sandbox that is asked to stop it; '' for both.
    """

    code: str
    works_outside: bool = False
    only: str = ""


def harmless(code: str, *, only: str = "") -> Attempt:
    return Attempt(code, works_outside=True, only=only)


LIBC = "libc = ctypes.CDLL(None, use_errno=True)\n"
CHECKED = "if result < 0: raise OSError(ctypes.get_errno(), 'refused')"
FILL = """
try:
    for number in range(200):
        with open(f"{folder}/fill-{number}", "wb") as file:
            file.write(bytes(3 << 20))
finally:
    for path in Path(folder).glob("fill-*"):
        path.unlink()
"""

ATTEMPTS: dict[str, Attempt] = {
    # --- the network ---
    "TCP to the machine": harmless("socket.create_connection(('127.0.0.1', PORT), 20)"),
    "TCP to the machine over IPv6": Attempt("socket.create_connection(('::1', PORT), 20)"),
    "TCP to the outside": Attempt("socket.create_connection(('192.0.2.1', 80), 20)"),
    "UDP to the machine": harmless(
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('127.0.0.1', UDP_PORT))\n"
        "for _ in range(20): s.send(b'x'); time.sleep(0.01)"
    ),
    "a name of the network": Attempt("socket.getaddrinfo('example.com', 80)"),
    "a raw socket": Attempt("socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)"),
    "a packet socket": Attempt("socket.socket(socket.AF_PACKET, socket.SOCK_RAW)"),
    "interfaces of the machine": Attempt(
        "if [name for _, name in socket.if_nameindex()] == ['lo']: raise OSError('its own only')", only="processes"
    ),
    "switching the loopback device off": Attempt(
        "import fcntl, struct\n"
        "fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh14x', b'lo', 0))"
    ),
    "an abstract socket of the host": harmless("socket.socket(socket.AF_UNIX).connect('\\0' + ABSTRACT)"),
    "a socket in a folder of the host": harmless("socket.socket(socket.AF_UNIX).connect(SOCKET)"),
    "Multipath TCP to the machine": Attempt("socket.socket(proto=262).connect(('127.0.0.1', PORT))"),
    "a datagram to a socket of the host": harmless(
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.sendto(b'x', DATAGRAMS)"
    ),
    "a datagram from a pair of sockets": harmless(
        "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b'x', DATAGRAMS)"
    ),
    "sockets of virtual machines": Attempt("socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).connect((2, 1))"),
    "cryptography of the kernel": Attempt("socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)"),
    "the socket of Docker": Attempt("socket.socket(socket.AF_UNIX).connect('/var/run/docker.sock')"),
    # --- other processes ---
    "a signal to the host": harmless("os.kill(HOST, signal.SIGCONT)"),
    "a signal to any other process": Attempt(
        "others = [int(name) for name in os.listdir('/proc') if name.isdigit() and int(name) not in OWN]\n"
        "if not others: raise OSError('there is none')",
        only="processes",
    ),
    "the end of its parents": Attempt(
        "for pid in {1, os.getppid()} - {os.getpid()}:\n"
        "    try: os.kill(pid, signal.SIGKILL)\n"
        "    except OSError: pass\n"
        "time.sleep(0.2); raise OSError('they live')"
    ),
    "the environment of the host": Attempt("open(f'/proc/{HOST}/environ').read()"),
    "a key in any environment": Attempt(
        "found = []\n"
        "for path in Path('/proc').glob('[0-9]*/environ'):\n"
        "    try: found.append(SECRET in path.read_bytes().decode(errors='replace'))\n"
        "    except OSError: pass\n"
        "if not any(found): raise OSError('none')"
    ),
    "the memory of the host": Attempt("open(f'/proc/{HOST}/mem', 'rb').read(1)"),
    "the command line of the host": harmless("open(f'/proc/{HOST}/cmdline').read()", only="processes"),
    "tracing the host": Attempt(f"{LIBC}result = libc.ptrace(16, HOST, 0, 0)\n{CHECKED}"),
    "tracing its first process": Attempt(
        f"if os.getppid() == 0: raise OSError('it is the first')\n{LIBC}result = libc.ptrace(16, 1, 0, 0)\n{CHECKED}",
        only="root",
    ),
    "reading memory of the host": Attempt(
        f"{LIBC}class Part(ctypes.Structure): _fields_ = (('at', ctypes.c_void_p), ('size', ctypes.c_size_t))\n"
        "room = ctypes.create_string_buffer(8); here = Part(ctypes.addressof(room), 8); there = Part(ADDRESS, 8)\n"
        f"result = libc.process_vm_readv(HOST, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)\n{CHECKED}"
    ),
    "a handle of the host's process": harmless("os.pidfd_open(HOST)", only="processes"),
    "the priority of the host": Attempt("os.setpriority(os.PRIO_PROCESS, HOST, 19)"),
    "shared memory of the host": harmless(f"{LIBC}result = libc.shmget(SHM_KEY, 0, 0)\n{CHECKED}"),
    "shared memory of the host by its name": harmless("open(SHM_FILE).read()"),
    "keys that the kernel keeps for the host": Attempt(
        f"{LIBC}result = libc.syscall(249, b'user', KEY.encode(), None, 0)\n{CHECKED}", only="x86_64"
    ),
    "limits of the host": harmless("resource.prlimit(HOST, resource.RLIMIT_NOFILE)"),
    "the order of ends when memory runs out": Attempt("open('/proc/self/oom_score_adj', 'w').write('0')"),
    "asynchronous requests": Attempt(f"{LIBC}result = libc.syscall(425, 8, bytes(120))\n{CHECKED}"),
    "handling faults of pages": Attempt(f"{LIBC}result = libc.syscall(323 if X86 else 282, 1)\n{CHECKED}"),
    "a key for later": Attempt(
        f"{LIBC}result = libc.syscall(248 if X86 else 217, b'user', b'k', b'v', 1, -3)\n{CHECKED}"
    ),
    "programs in the kernel": Attempt(f"{LIBC}result = libc.syscall(321 if X86 else 280, 5, bytes(72), 72)\n{CHECKED}"),
    "counters of the machine": Attempt(
        f"{LIBC}result = libc.syscall(298 if X86 else 241, bytes(128), 0, -1, -1, 0)\n{CHECKED}"
    ),
    "calls of x32": Attempt(f"{LIBC}result = libc.syscall(0x40000000 + 39)\n{CHECKED}", only="x86_64"),
    "calls of 32-bit programs": Attempt(
        "import mmap; room = mmap.mmap(-1, 4096, prot=7); room.write(bytes.fromhex('b814000000cd80c3'))\n"
        "start = ctypes.addressof(ctypes.c_char.from_buffer(room))\n"
        "result = ctypes.CFUNCTYPE(ctypes.c_int)(start)()\n"
        "if result < 0: raise OSError(-result, 'refused')",
        only="x86_64",
    ),
    "calls of a later kernel": Attempt(f"{LIBC}result = libc.syscall(463 + 3, -100, b'.', 0, 0)\n{CHECKED}"),
    # --- files ---
    "permissions of a file of the host": harmless("os.chmod(NOTE, 0o666)"),
    "the owner of a file of the host": harmless("os.chown(NOTE, os.getuid(), os.getgid())"),
    "the times of a file of the host": harmless("os.utime(NOTE, (1, 1))"),
    "attributes of a file of the host": Attempt("os.setxattr(NOTE, 'user.x', b'x')"),
    "changes in a folder of the host": harmless(
        f"{LIBC}result = libc.inotify_add_watch(libc.inotify_init(), OUTSIDE.encode(), 2)\n{CHECKED}"
    ),
    "permissions of what it may read": Attempt("os.chmod(START, 0o600)"),
    "the same through an open file": Attempt("os.fchmod(os.open(START, os.O_RDONLY), 0o600)"),
    "times of what it may read": Attempt("os.utime(START, (1, 1))"),
    "flags of what it may read": Attempt(
        "import fcntl, struct\nfcntl.ioctl(os.open(START, os.O_RDONLY), 0x40086602, struct.pack('l', 0x80))"
    ),
    "a file that runs as its owner": harmless("open('set-id', 'w').close(); os.chmod('set-id', 0o4755)"),
    "the same from its start": harmless("os.open('set-id-2', os.O_CREAT | os.O_WRONLY, 0o4755)"),
    "the same through an open file, too": harmless("os.fchmod(os.open('set-id-3', os.O_CREAT), 0o2755)"),
    "the same without a name": Attempt("os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o4755)"),
    "the same as a node": harmless("os.mknod('set-id-4', stat.S_IFREG | 0o4755)"),
    "the same by another call": Attempt(
        f"import struct\n{LIBC}how = struct.pack('QQQ', os.O_CREAT | os.O_WRONLY, 0o4755, 0)\n"
        f"result = libc.syscall(437, -100, b'set-id-5', how, 24)\n{CHECKED}"
    ),
    "a lease of a file": harmless(
        "import fcntl; open('leased', 'w').close(); fcntl.fcntl(os.open('leased', os.O_RDONLY), 1024, fcntl.F_RDLCK)"
    ),
    "a file of the host": harmless("open(NOTE).read()"),
    "the same through a link": harmless("os.symlink(NOTE, 'link-1'); open('link-1').read()"),
    "the same by a second name": Attempt("os.link(NOTE, 'second-name')"),
    "the same through the folders above": harmless("open('../' * 20 + NOTE[1:]).read()"),
    "the same through the root of a process": harmless("open(f'/proc/self/root{NOTE}').read()"),
    "the same through the root of the first process": Attempt("open(f'/proc/1/root{NOTE}').read()"),
    "a file that the host has open": Attempt(
        "for link in Path('/proc/self/fd').iterdir():\n"
        "    if os.path.exists(link) and os.readlink(link) == OPEN: break\n"
        "else: raise OSError('it is not handed on')"
    ),
    "writing beside its folder": harmless("open(f'{OUTSIDE}/new', 'w').write('x')"),
    "writing through a link": harmless("os.symlink(OUTSIDE, 'link-2'); open('link-2/other', 'w').write('x')"),
    "the home of the user": Attempt(  # Python may be installed there
        "python = f'{sys.prefix}:{sys.base_prefix}'\n"
        "if not [name for name in os.listdir(HOME) if f'{HOME}/{name}' not in python]: raise OSError('empty')"
    ),
    "SSH keys": Attempt("os.listdir(f'{HOME}/.ssh')"),
    "password hashes": Attempt("open('/etc/shadow').read()"),
    "the packages of Python": Attempt("open(f'{sys.prefix}/planted', 'w')"),
    "the kernel's own start": Attempt("open(START, 'a')"),
    "the programs of the system": Attempt("open('/usr/bin/planted', 'w')"),
    "a configuration of the system": Attempt("open('/etc/planted', 'w')"),
    "a file in the root": Attempt("open('/planted', 'w')"),
    "files of another run": harmless("os.listdir(OTHER)"),
    "a file of another run": harmless("open(f'{OTHER}/result').read()"),
    "the key of another kernel": harmless("open(OTHER_KEY).read()"),
    "the sockets of another kernel": harmless("socket.socket(socket.AF_UNIX).connect(OTHER_SOCKET)"),
    # --- rights ---
    "becoming root": Attempt("os.setuid(0)", only="bubblewrap"),
    "another root folder": Attempt("os.chroot('.')"),
    "a user namespace": Attempt(f"{LIBC}result = libc.unshare(0x10000000)\n{CHECKED}"),
    "a user namespace of a child": Attempt(
        f"{LIBC}result = libc.syscall(56 if X86 else 220, 0x10000000 | 17, 0, 0, 0, 0)\n"
        f"if result == 0: os._exit(0)\n{CHECKED}"
    ),
    "mounting": Attempt(f"{LIBC}result = libc.mount(b'tmpfs', b'.', b'tmpfs', 0, None)\n{CHECKED}"),
    "mounting anew, to write": Attempt(f"{LIBC}result = libc.mount(None, b'/usr', None, 0x1020, None)\n{CHECKED}"),
    "unmounting": Attempt(f"{LIBC}result = libc.umount2(b'/proc', 2)\n{CHECKED}"),
    "a namespace of the first process": Attempt(
        f"{LIBC}result = libc.setns(os.open('/proc/1/ns/mnt', os.O_RDONLY), 0)\n{CHECKED}"
    ),
    "making a device": Attempt("os.mknod('disk', stat.S_IFBLK | 0o666, os.makedev(254, 0))"),
    "memory of the machine": Attempt("open('/dev/mem', 'rb').read(1)"),
    "the log of the system": Attempt("open('/dev/kmsg').read(1)"),
    "the terminal": Attempt("open('/dev/tty', 'w')"),
    "settings of the system": Attempt("open('/proc/sys/kernel/domainname', 'w').write('x')"),
    "the emergency keys": Attempt("open('/proc/sysrq-trigger', 'w').write('h')"),
    "control groups": Attempt("if not os.listdir('/sys/fs/cgroup'): raise OSError('nothing there')"),
    "the name of the machine": Attempt("socket.sethostname('planted')"),
    "the clock": Attempt("time.clock_settime(time.CLOCK_REALTIME, time.time())"),
    "a higher priority": Attempt("os.nice(-5)"),
    "rights from a set-uid program": Attempt(
        "if 'NoNewPrivs:\\t1' in open('/proc/self/status').read(): raise OSError('it would give none')"
    ),
    # --- more than its share ---
    "more memory": Attempt("x = bytearray(3 << 30)"),
    "more memory by a mapping": Attempt("import mmap; mmap.mmap(-1, 3 << 30)"),
    "memory in a file without a name": harmless("os.write(os.memfd_create('planted'), b'x' * 4096)"),
    "memory that is secret": Attempt(f"{LIBC}result = libc.syscall(447, 0)\n{CHECKED}"),
    "memory of System V": harmless(
        f"{LIBC}result = libc.shmget(0, 4096, 0o1600)\n{CHECKED}\nlibc.shmctl(result, 0, None)"
    ),
    "a queue of System V": harmless(f"{LIBC}result = libc.msgget(0, 0o1600)\n{CHECKED}\nlibc.msgctl(result, 0, None)"),
    "a queue of POSIX": Attempt(
        f"{LIBC}result = libc.syscall(240 if X86 else 180, b'planted', os.O_CREAT | os.O_RDWR, 0o600, None)\n{CHECKED}"
    ),
    "a higher limit": Attempt("resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)"),
    "a larger file": Attempt("open('large', 'wb').write(bytes(5 << 20))"),
    "a larger file of nothing": Attempt("open('sparse', 'wb').truncate(1 << 40)"),
    "filling the folder of temporary files": Attempt(f"folder = '/tmp'{FILL}"),
    "filling the memory with shared files": Attempt(f"folder = '/dev/shm'{FILL}"),
    "a bomb of processes": Attempt(
        "children = []\n"
        "try:\n"
        "    for _ in range(300):\n"
        "        child = os.fork()\n"
        "        if child == 0: time.sleep(600); os._exit(0)\n"
        "        children.append(child)\n"
        "finally:\n"
        "    for child in children: os.kill(child, signal.SIGKILL); os.waitpid(child, 0)",
        only="process_count",
    ),
    "a bomb of threads": Attempt(
        "import threading\n"
        "go = threading.Event()\n"
        "try:\n"
        "    for _ in range(300): threading.Thread(target=go.wait, daemon=True).start()\n"
        "finally: go.set()",
        only="process_count",
    ),
}  # fmt: skip

SETUP = """
import ctypes, os, resource, signal, socket, stat, sys, time
from pathlib import Path
OWN = {{os.getpid(), os.getppid(), 1}}
X86 = os.uname().machine == "x86_64"
{values}
"""
TRIED = """
try:
{code}
except (OSError, ValueError, MemoryError, RuntimeError) as error:
    print("held:", type(error).__name__, error)
else:
    print("ESCAPED")
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the attempts are after, as variables."""
    outside = tmp_path_factory.mktemp("outside")
    outside.chmod(0o777)
    note = outside / "note"
    note.write_text(SECRET)
    shm_file = Path(f"/dev/shm/jackfield-test-{os.getpid()}")
    libc = ctypes.CDLL(None, use_errno=True)
    with ExitStack() as stack:
        monkeypatch = stack.enter_context(pytest.MonkeyPatch.context())
        monkeypatch.setenv("ACME_API_KEY", SECRET)
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0jackfield-test-{os.getpid()}")
        abstract.listen()
        named = stack.enter_context(socket.socket(socket.AF_UNIX))
        named.bind(str(outside / "s"))
        (outside / "s").chmod(0o777)
        named.listen()
        datagrams = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        datagrams.bind(str(outside / "d"))
        (outside / "d").chmod(0o777)
        opened = stack.enter_context(note.open())
        os.set_inheritable(opened.fileno(), True)
        shm_file.write_text(SECRET)
        stack.callback(shm_file.unlink)
        segment = libc.shmget(SHM_KEY, 4096, 0o1666)
        stack.callback(lambda: libc.shmctl(segment, 0, None))
        if X86:
            libc.syscall(248, b"user", f"jackfield-{os.getpid()}".encode(), SECRET.encode(), len(SECRET), -3)
        yield {
            "HOST": os.getpid(),
            "PORT": server.getsockname()[1],
            "UDP_PORT": udp.getsockname()[1],
            "ABSTRACT": f"jackfield-test-{os.getpid()}",
            "SOCKET": str(outside / "s"),
            "DATAGRAMS": str(outside / "d"),
            "SECRET": SECRET,
            "START": str(launch.START_KERNEL),
            "NOTE": str(note),
            "OPEN": str(note),
            "OUTSIDE": str(outside),
            "HOME": str(Path.home()),
            "SHM_KEY": SHM_KEY,
            "SHM_FILE": str(shm_file),
            "KEY": f"jackfield-{os.getpid()}",
            "ADDRESS": id(SECRET),
        }


class Shell:
    """One kernel, with the variables of the attempts."""

    def __init__(self, sandbox: str, values: dict[str, Any]) -> None:
        self._tool = CodeInterpreter(sandbox=sandbox, file_mb=4, memory_mb=2048, processes=128, timeout=120)
        self.run(SETUP.format(values="\n".join(f"{name} = {value!r}" for name, value in values.items())))

    def run(self, code: str) -> str:
        result = sync.run(self._tool.call({"code": code}))
        assert isinstance(result, ToolResult)
        assert result.metadata["state"] == "kept", result.content
        return str(result.content)

    def attempt(self, attempt: Attempt) -> str:
        return self.run(TRIED.format(code=textwrap.indent(attempt.code, "    ")))

    def close(self) -> None:
        sync.run(self._tool.aclose())


@pytest.fixture(scope="module")
def values(place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All variables of the attempts; among them what another run has, whose kernel is in no sandbox."""
    tool = CodeInterpreter(sandbox="none")
    sync.run(tool.call({"code": "open('result', 'w').write('x')"}))
    assert tool._own is not None
    folder = tool._own.work_dir
    (connection,) = folder.parent.glob("k*")
    yield {
        **place,
        "OTHER": str(folder),
        "OTHER_KEY": str(connection / "c.json"),
        "OTHER_SOCKET": str(next(path for path in connection.iterdir() if path.is_socket())),
    }
    sync.run(tool.aclose())


@pytest.fixture(scope="module")
def free(values: dict[str, Any]) -> Iterator[Shell]:
    """A kernel that nothing keeps apart."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(launch, "BARRIERS", ())
        made = Shell("none", values)
    yield made
    made.close()


@pytest.fixture(scope="module", params=["bubblewrap", "landlock", "landlock alone"])
def caught(request: pytest.FixtureRequest, values: dict[str, Any]) -> Iterator[tuple[Shell, ProgramSandbox]]:
    """A kernel in a sandbox; the tests are skipped where it does not work. `alone` is without namespaces."""
    name, _, alone = request.param.partition(" ")
    with pytest.MonkeyPatch.context() as monkeypatch, ExitStack() as stack:
        if alone:
            for one in (landlock._probe, landlock._has_namespaces):
                one.cache_clear()
                stack.callback(one.cache_clear)
            monkeypatch.setattr(landlock, "NAMESPACES", "none of them")
        try:
            sandbox = choose_sandbox(name, ProgramSandbox, host=default_host())
        except SandboxError as error:
            pytest.skip(str(error))
        assert sandbox is not None
        made = Shell(name, values)
        yield made, sandbox
        made.close()


@pytest.mark.parametrize("name", ATTEMPTS)
def test_what_is_tried_from_a_sandbox_fails(name: str, caught: tuple[Shell, ProgramSandbox]) -> None:
    shell, sandbox = caught
    attempt = ATTEMPTS[name]
    applies = {
        "": True,
        "root": os.getuid() == 0,
        "x86_64": X86,
        "bubblewrap": sandbox.protection().layer == "bubblewrap",
        "processes": "processes" in sandbox.protection().covers,
        "process_count": "process_count" in sandbox.protection().covers,
    }
    if not applies[attempt.only]:
        pytest.skip(f"for {attempt.only} only")
    said = shell.attempt(attempt)
    assert "ESCAPED" not in said
    assert "held: " in said, said


@pytest.mark.parametrize("name", [name for name, attempt in ATTEMPTS.items() if attempt.works_outside])
def test_what_is_tried_would_succeed_without_a_sandbox(name: str, free: Shell) -> None:
    said = free.attempt(ATTEMPTS[name])
    assert "ESCAPED" in said, said


def test_nothing_has_changed_outside(caught: tuple[Shell, ProgramSandbox], values: dict[str, Any]) -> None:
    shell, _ = caught
    shell.run(f"try: open({values['NOTE']!r}, 'w').write('changed')\nexcept OSError: pass")
    assert Path(values["NOTE"]).read_text() == SECRET
    assert len(ATTEMPTS) >= 40
