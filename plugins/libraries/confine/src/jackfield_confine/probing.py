"""Determine which risks a sandbox covers on this machine by trying each from inside."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

from jackfield.errors import SandboxError
from jackfield.sandboxes import RISKS, Limits, Program, ProgramSandbox, Risk
from jackfield_confine.interpreters import this_python

_PROBE_S = 60
_MB = 1 << 20
_LIMITS = Limits(memory_bytes=96 * _MB, cpu_s=30, processes=20, file_bytes=8 * _MB)
_KILLED = 128 + 9

# Each line of its output is a risk that the sandbox covers. The last risk may end in the program's being killed.
_CODE = """
import ctypes, json, mmap, os, resource, socket, sys
asked = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
sys.stdout.write("started\\n")

def refused(*attempts):
    for attempt in attempts:
        try:
            if attempt() == -1:
                continue
        except (OSError, AttributeError):
            continue
        return False
    return True

def held(risk, is_held):
    if is_held:
        sys.stdout.write(risk + "\\n")
        sys.stdout.flush()

def connected(family, kind, address, protocol=0):
    with socket.socket(family, kind, protocol) as one:
        one.connect(address)
        one.send(b"x")

TCP, UDP, LOCAL = socket.SOCK_STREAM, socket.SOCK_DGRAM, ("127.0.0.1", asked["port"])
held("files", refused(
    lambda: open(asked["note"]).read(),
    lambda: open(asked["note"], "a"),
    lambda: os.chmod(asked["note"], 0o600),
    lambda: os.utime(asked["note"], (1, 1)),
    lambda: connected(socket.AF_UNIX, TCP, asked["socket"]),
))
held("network", refused(
    lambda: connected(socket.AF_INET, TCP, LOCAL),
    lambda: connected(socket.AF_INET, TCP, LOCAL, 262),
    lambda: connected(socket.AF_UNIX, TCP, chr(0) + asked["abstract"]),
))
refused(lambda: connected(socket.AF_INET, UDP, ("127.0.0.1", asked["udp"])))  # the host sees if it arrives
held("processes", refused(
    lambda: os.kill(asked["pid"], 0),
    lambda: open("/proc/%d/stat" % asked["pid"]).read(),
))
limits = {"cpu": (resource.RLIMIT_CPU, asked["cpu_s"]), "file_size": (resource.RLIMIT_FSIZE, asked["file_bytes"])}
for risk, (which, value) in limits.items():
    held(risk, resource.getrlimit(which)[0] == value)
held("memory", resource.getrlimit(resource.RLIMIT_AS)[0] == asked["memory_bytes"] and refused(
    lambda: os.memfd_create("probe"),
    lambda: libc.shmget(0, 4096, 0o1600),
))

children = []
def fork(act):
    child = os.fork()
    if child == 0:
        try:
            act()
        finally:
            os._exit(0)
    children.append(child)

def end_all():
    while children:
        os.kill(children[-1], 9)
        os.waitpid(children.pop(), 0)

waiting, ended = os.pipe()
try:
    for _ in range(asked["processes"] + 4):
        fork(lambda: (os.close(ended), os.read(waiting, 1)))
except OSError:
    pass
held("process_count", len(children) < asked["processes"])
end_all()

# Each fits into its limit, and all of them do not.
readable, writable = os.pipe()
def fill():
    room = mmap.mmap(-1, asked["memory_bytes"] // 3)
    for at in range(0, len(room), 4096):
        room[at] = 1
    os.write(writable, b"x")
    os.read(waiting, 1)
filled = 0
for _ in range(4):
    fork(fill)
os.close(writable)
os.set_blocking(readable, False)
import select, time
until = time.monotonic() + 20
while filled < 4 and time.monotonic() < until and all(os.waitpid(one, os.WNOHANG) == (0, 0) for one in children):
    if select.select([readable], [], [], 0.02)[0]:
        filled += len(os.read(readable, 4))
held("total_memory", filled < 4)
sys.stdout.write("done\\n")
"""


def probe_protection(sandbox: ProgramSandbox) -> frozenset[Risk]:
    """Return the risks that a sandbox demonstrably stops on this machine. Blocks for a few tenths of a second.

    A program in the sandbox tries to read and change a file of this process, to reach its sockets and to see it. The
    program also reads its limits, and requests more memory and processes than allowed.

    Raises:
        SandboxError: The program does not run in the sandbox; the message is the program's output.
    """
    with ExitStack() as stack:
        outside = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        work = stack.enter_context(tempfile.TemporaryDirectory())
        # Only the sandbox keeps the program from these, even where it runs as another user.
        outside.chmod(0o755)
        note = outside / "note"
        note.write_text("of the host", encoding="ascii")
        note.chmod(0o666)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        named, abstract = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
        named.bind(str(outside / "s"))
        (outside / "s").chmod(0o777)
        abstract_name = f"jackfield-probe-{os.getpid()}-{os.urandom(8).hex()}"
        abstract.bind(f"\0{abstract_name}")
        for one in (named, abstract):
            one.listen()
        asked = {
            "note": str(note),
            "socket": str(outside / "s"),
            "abstract": abstract_name,
            "port": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "pid": os.getpid(),
            "memory_bytes": _LIMITS.memory_bytes,
            "cpu_s": _LIMITS.cpu_s,
            "processes": _LIMITS.processes,
            "file_bytes": _LIMITS.file_bytes,
        }
        argv = (this_python(), "-I", "-S", "-c", _CODE, json.dumps(asked))
        program = Program(argv=argv, work_dir=work, limits=_LIMITS)
        try:
            done = subprocess.run(  # noqa: S603 - our own command
                sandbox.command(program),
                env={},
                cwd=work,
                capture_output=True,
                text=True,
                timeout=_PROBE_S,
                check=False,
            )
        except OSError as error:
            raise SandboxError(str(error)) from error
        except subprocess.TimeoutExpired:
            raise SandboxError(f"a test program did not exit within {_PROBE_S} s") from None
        reached = _has_datagram(udp)
    said = done.stdout.split()
    if said[:1] != ["started"] or ("done" not in said and done.returncode != _KILLED):
        raise SandboxError(f"{done.stderr.strip()[-300:] or f'exit code {done.returncode}'}")
    covered = {risk for risk in RISKS if risk in said and not (risk == "network" and reached)}
    # The system may kill the whole program if its total memory exceeds the limit.
    return frozenset(covered | ({"total_memory"} if "done" not in said else set()))


def _has_datagram(one: socket.socket) -> bool:
    one.setblocking(False)
    try:
        return bool(one.recv(1))
    except BlockingIOError:
        return False
