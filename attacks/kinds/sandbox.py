"""Sandboxed programs that make arbitrary system calls."""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from attacks.kind import Attempt, Kind, law
from jackfield.plugins import default_host
from jackfield.sandboxes import Finished, Limits, Program, ProgramSandbox, choose_sandbox

SECRET = "what only the host may read"
MB = 1 << 20
WALL_S = 15.0
LIMITS = Limits(memory_bytes=200 * MB, cpu_s=5, processes=20, file_bytes=4 * MB, wall_s=WALL_S)

# Numbers and arguments that are often valid, and some that never are. The alarm ends calls that block.
_ANY_CALL = """
import ctypes, os, random, signal, sys
dice = random.Random(int(sys.argv[1]))
libc = ctypes.CDLL(None, use_errno=True)
room = ctypes.create_string_buffer(sys.argv[2].encode() + bytes(1) + bytes(8192))
here = ctypes.addressof(room)
def argument():
    wide = [dice.getrandbits(bits) for bits in (12, 32, 64)]
    return dice.choice([0, 1, 2, 3, -1, -100, here, here + 4096, *wide])
ends = {"x86_64": {60, 231, 34, 15, 35, 230}, "aarch64": {93, 94, 139, 101, 115}}.get(os.uname().machine, set())
for _ in range(400):
    number = dice.choice([dice.randrange(0, 470), dice.randrange(0, 470), dice.getrandbits(31)])
    if number in ends: continue
    child = os.fork()
    if child == 0:
        signal.alarm(1)
        libc.syscall(ctypes.c_long(number), *(ctypes.c_long(argument()) for _ in range(6)))
        os._exit(0)
    os.waitpid(child, 0)
"""
_HOARDS = {
    "memory without a name": "import os\nwhile True: os.write(os.memfd_create('x'), bytes(1 << 20))",
    "pipes": "import os\nkept = []\nwhile True:\n    r, w = os.pipe(); os.set_blocking(w, False); kept += [r, w]\n"
    "    try: os.write(w, bytes(1 << 20))\n    except BlockingIOError: pass",
    "sockets": "import socket\nkept = []\nwhile True:\n    pair = socket.socketpair(); kept += pair\n"
    "    pair[0].setblocking(False)\n    try:\n        while True: pair[0].send(bytes(65536))\n"
    "    except BlockingIOError: pass",
    "processes": "import os, time\nwhile True:\n    if os.fork() == 0: time.sleep(600)",
    "traced children": "import ctypes, os, time\nlibc = ctypes.CDLL(None)\n"
    "libc.ptrace(16, 1, 0, 0); libc.ptrace(16, os.getppid(), 0, 0)",
    "links and pipes": "import os\nos.mkfifo('p'); os.symlink('/', 'l'); os.makedirs('/'.join(['d' * 100] * 30))",
}


def _run(name: str, code: str, *arguments: str) -> None:
    """Run code next to a file of the host, in a sandbox that is installed here."""
    sandbox = choose_sandbox(name, ProgramSandbox, host=default_host())
    law(sandbox is not None, "there is no sandbox")
    assert sandbox is not None
    with tempfile.TemporaryDirectory() as base:
        note, work = Path(base, "note"), Path(base, "work")
        note.write_text(SECRET, encoding="ascii")
        work.mkdir()
        before = note.stat()
        program = Program(argv=(sys.executable, "-I", "-S", "-c", code, *arguments), work_dir=str(work), limits=LIMITS)
        done = asyncio.run(_within(sandbox, program))
        after = note.stat()
        law(SECRET.encode() not in done.stdout + done.stderr, "the program read a file of the host")
        law(note.read_text(encoding="ascii") == SECRET, "the program wrote a file of the host")
        facts = [(one.st_mode, one.st_uid, one.st_mtime_ns, one.st_nlink) for one in (before, after)]
        law(facts[0] == facts[1], "the program changed the attributes of a file of the host")
        set_id = [path for path in work.rglob("*") if path.lstat().st_mode & 0o6000]
        law(not set_id, "the program left a file that runs as its owner")


async def _within(sandbox: ProgramSandbox, program: Program) -> Finished:
    async with asyncio.timeout(3 * WALL_S):
        return await sandbox.run(program)


def _attempts(dice: random.Random) -> Iterator[Attempt]:
    for name in ("bubblewrap", "landlock"):
        yield Attempt(f"any system call in {name}", partial(_run, name, _ANY_CALL, "1", "../note"), timeout_s=60)
    for hoard, code in _HOARDS.items():
        for name in ("bubblewrap", "landlock"):
            yield Attempt(f"{hoard} in {name}", partial(_run, name, code), timeout_s=60)
    while True:
        name, seed = dice.choice(["bubblewrap", "landlock"]), dice.getrandbits(32)
        yield Attempt(
            f"any system call in {name}: {seed}", partial(_run, name, _ANY_CALL, str(seed), "../note"), 400, 60
        )


KIND = Kind(
    "Whatever system calls a sandboxed program makes, it ends and changes nothing on the host.",
    _attempts,
    0.8,
    memory_mb=2000,
    quick=2,
)
