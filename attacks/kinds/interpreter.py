"""Code that attacks its guards: it kills, hides, links, floods, and reads what it should not."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from attacks.kind import Attempt, Kind, law
from jackfield import sync
from jackfield.plugins import default_host
from jackfield.tools import ToolContext, ToolResult

KEY = "sk-host-4711-MARK"
MOST_CHARS = 60_000  # for one result: three times the tool's own limit
SECRET = "what only the host may read"


class _Session:
    """A tool with its own kernel, closed at the end."""

    def __init__(self, **settings: Any) -> None:
        self.tool = default_host().load("tool", "code_interpreter")({"timeout": 8, **settings})

    def __enter__(self) -> _Session:
        return self

    def __exit__(self, *_: object) -> None:
        sync.run(self.tool.aclose())

    def run(self, code: str, **context: Any) -> str:
        result = sync.run(self.tool.call({"code": code}, context=ToolContext(**context)))
        content = result.content if isinstance(result, ToolResult) else result
        return content if isinstance(content, str) else "\n".join(item.value for item in content)


def _bounded(code: str, **settings: Any) -> None:
    with _Session(**settings) as session:
        session.run("mark = 1")
        text = session.run(code)
        law(len(text) <= MOST_CHARS, f"a result has {len(text):,} characters")
        law("4" in session.run("print(2 + 2)"), "the next call does not work")


def _survivors(code: str) -> None:
    """Check that no process outlives the session, whatever happens to its guards.

    Processes are identified by a marker on their command line, because the ids that the code sees may belong to a
    namespace.
    """
    mark = f"attack-{uuid.uuid4().hex}"
    with tempfile.TemporaryDirectory() as folder:
        begun = Path(folder) / "begun"
        try:
            with _Session(work_dir=folder) as session, suppress(Exception):  # the code may have killed its own kernel
                session.run(code.replace("BEGUN", repr(str(begun))).replace("MARK", repr(mark)))
            ends_at = time.monotonic() + 5
            while (left := _marked(mark)) and time.monotonic() < ends_at:
                time.sleep(0.1)
            law(begun.exists(), "the attack itself did not begin")
            law(not left, f"{len(left)} processes run on")
        finally:
            for pid in _marked(mark):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _marked(mark: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_bytes().endswith(f"\0{mark}\0".encode()):
                found.append(int(path.parent.name))
    return found


_SPAWN = """
import os, signal, subprocess, sys, time
def spawn(code="import time; time.sleep(60)", **how):
    process = subprocess.Popen([sys.executable, "-c", code, MARK], **how)
    open(BEGUN, "w").close()
    return process
"""
_KILL_GUARDS = """
def parents():
    pid, found = os.getpid(), []
    while pid > 1:
        pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1]); found.append(pid)
    return found
host = [pid for pid in parents() if b"attacks.worker" in open(f"/proc/{pid}/cmdline", "rb").read()]
group = host[0] if host else 0
for name in os.listdir("/proc"):
    if name.isdigit() and int(name) not in (os.getpid(), *host):
        try:
            stat = open(f"/proc/{name}/stat").read().rpartition(")")[2].split()
            line = open(f"/proc/{name}/cmdline", "rb").read()
        except OSError:
            continue
        if int(stat[1]) in (group, os.getppid()) or int(name) == os.getppid():
            if b"guard" in line or b"ipykernel" in line:
                if host and int(name) not in parents()[parents().index(group):]:
                    os.kill(int(name), signal.SIGKILL)
"""
_TWICE = "import os, time; os.fork() and os._exit(0); time.sleep(1)"
_DEAF = """import signal, time
for number in range(1, 32):
    try: signal.signal(number, signal.SIG_IGN)
    except Exception: pass
time.sleep(60)"""
ESCAPES = {
    "in the background": "spawn(); spawn(start_new_session=True)",
    "detached twice": f"spawn({_TWICE!r}, start_new_session=True)",
    "that ignore signals": f"spawn({_DEAF!r}, start_new_session=True)",
    "and the guard killed": "spawn(start_new_session=True); spawn()\n" + _KILL_GUARDS + "\nos.kill(os.getpid(), 9)",
    "and the kernel stopped": "spawn(start_new_session=True); os.kill(os.getpid(), signal.SIGSTOP)",
    "without its environment": "spawn(start_new_session=True, env={}); os._exit(3)",
}
_ENVIRON = """
import glob
found = []
for path in glob.glob("/proc/[0-9]*/environ"):
    try: data = open(path, "rb").read()
    except OSError: continue
    if b"4711-" + b"MARK" in data: found.append(path)
print("found", len(found))
"""


def read_environ() -> None:
    """Print the environment that code can find.

    Run this in a process started with an API key, because /proc shows only the initial environment.
    """
    with _Session() as session:
        print(session.run(_ENVIRON))


def _environ() -> None:
    program = [sys.executable, "-c", "from attacks.kinds.interpreter import read_environ; read_environ()"]
    env = {**os.environ, "OPENAI_API_KEY": KEY, "DASHSCOPE_API_KEY": KEY}
    said = subprocess.run(program, env=env, capture_output=True, text=True, timeout=80, check=False)
    law("found 0" in said.stdout, f"the host's key can be read by code: {said.stdout[:200]} {said.stderr[-200:]}")


def _brought(how: str) -> None:
    """Check that a file copied into the session is the file itself, not the target of a link created there."""
    with tempfile.TemporaryDirectory() as base, tempfile.TemporaryDirectory() as work:
        secret, given = Path(base) / "secret.txt", Path(base) / "given.txt"
        secret.write_text(SECRET)
        given.write_text("given")
        with _Session(work_dir=work) as session:
            session.run("1")
            if how == "overwrite":
                session.run(f"import os; os.symlink({str(secret)!r}, 'given.txt')")
                session.run("1", files=(str(given),))
                law(secret.read_text() == SECRET, "bringing a file wrote through a link of the code")
            elif how == "FIFO":
                session.run("import os; os.mkfifo('given.txt')")
                session.run("1", files=(str(given),))
            else:
                endless = Path(base) / "endless.txt"
                endless.symlink_to("/dev/zero")
                session.run("1", files=(str(endless),))
            law("4" in session.run("print(2 + 2)"), "the next call does not work")


FLOODS = {
    "display in a loop": "for _ in range(20_000): display('x' * 1000)",
    "prints": "for _ in range(200_000): print('x' * 100)",
    "many outputs": "from IPython.display import HTML\nfor _ in range(3_000): display(HTML('<b>' + 'y' * 5000))",
    "pictures": "for _ in range(300): display({'image/png': 'iVBORw0KGgo=' * 5000}, raw=True)",
    "both streams in turns": "import sys\nfor _ in range(30_000): print('a'); print('b', file=sys.stderr)",
    "a long error": "raise ValueError('z' * 5_000_000)",
    "forged messages": "s = get_ipython().kernel.session\nsock = get_ipython().kernel.iopub_socket\n"
    "for _ in range(20_000): s.send(sock, 'stream', {'name': 'stdout', 'text': 'f' * 1000}, "
    "parent=get_ipython().kernel.get_parent())",
    "progress": "from IPython.display import clear_output\nfor n in range(20_000): clear_output(); print('p' * 500)",
}


def _attempts(dice: random.Random) -> Iterator[Attempt]:
    yield Attempt("sound code", partial(_bounded, "print('fine')"), timeout_s=60)
    yield Attempt("the key in /proc", _environ, timeout_s=90)
    for name, code in ESCAPES.items():
        yield Attempt(f"processes {name}", partial(_survivors, _SPAWN + code), timeout_s=60)
    for how in ("overwrite", "FIFO", "endless"):
        yield Attempt(f"a file brought over {how}", partial(_brought, how), timeout_s=60)
    for name, code in FLOODS.items():
        yield Attempt(f"a flood: {name}", partial(_bounded, code), timeout_s=60)
    while True:
        name, code = dice.choice(list(FLOODS.items()))
        yield Attempt(f"a flood: {name}, again", partial(_bounded, code), timeout_s=60)


KIND = Kind(
    "Code can harm only its own session, and its results stay within limits.", _attempts, 1.2, memory_mb=4000, quick=2
)
