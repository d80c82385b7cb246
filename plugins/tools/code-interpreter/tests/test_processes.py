"""No process outlives what it belongs to: the call, the run, the host; and nothing hangs at its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from jackfield_confine import barriers
from jackfield_confine.barriers import NONE

BARRIERS = ("namespaces", "landlock", "none")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

IsRunning = Callable[[int], bool]
WaitUntil = Callable[[Callable[[], bool]], None]

# One child in the kernel's group, one that left for a session of its own, one that was orphaned on purpose.
START_CHILDREN = """
import os, subprocess
same = subprocess.Popen(["sleep", "600"]).pid
own = subprocess.Popen(["sleep", "600"], start_new_session=True).pid
orphan = subprocess.check_output("setsid sleep 600 > /dev/null 2>&1 & echo $!", shell=True, text=True)
print("started")
"""

FORK_BOMB = """
import os, time
pids = []
for _ in range(90):
    pid = os.fork()
    if pid == 0:
        os.setsid()
        time.sleep(600)
        os._exit(0)
    pids.append(pid)
print("started")
"""

HOST = """
import sys
from jackfield import sync
from jackfield_code_interpreter.tool import CodeInterpreter
tool = CodeInterpreter({"sandbox": "none"})
def run(code):
    return sync.run(tool.call({"code": code})).content
"""


PRINT_PIDS = """
from pathlib import Path
pids = [tool._own._kernel.process.pid]
for pid in pids:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        pids += map(int, task.read_text().split())
print(*pids)
"""


def host(script: str, **more: Any) -> subprocess.Popen[str]:
    # A socket that is left to the garbage collector can make the process wait for ever: here it surely does.
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", HOST + script]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **more)


def test_closing_leaves_no_descendant(
    barrier: str, make_interpreter: Callable[..., Any], is_running: IsRunning
) -> None:
    one = make_interpreter()
    for code, started in ((START_CHILDREN, 5), (FORK_BOMB, 95)):
        assert one.run(code).stdout == "started", barrier
        pids = one.processes()
        assert len(pids) >= started
    one.close()
    assert [pid for pid in pids if is_running(pid)] == []


def test_a_kernel_that_ends_itself_leaves_no_descendant(
    make_interpreter: Callable[..., Any], is_running: IsRunning, wait_until: WaitUntil
) -> None:
    one = make_interpreter()
    one.run(START_CHILDREN)
    pids = one.processes()
    one.run("os._exit(0)")
    wait_until(lambda: not any(map(is_running, pids)))


def test_a_host_that_is_killed_takes_its_kernels_along(
    is_running: IsRunning, wait_until: WaitUntil, processes_below: Callable[[int], list[int]]
) -> None:
    script = f"""
kept = []
for sandbox in ("none", "auto"):
    tool = CodeInterpreter({{"sandbox": sandbox}})
    kept.append(tool)
    run({START_CHILDREN!r})
    print(tool._own.work_dir, flush=True)
sys.stdin.read()
"""
    process = host(script, stdin=subprocess.PIPE)
    assert process.stdout is not None
    work_dirs = [process.stdout.readline().strip() for _ in range(2)]
    pids = processes_below(process.pid)[1:]
    assert len(pids) >= 10
    assert all(map(is_running, pids))
    process.kill()
    process.communicate()
    wait_until(lambda: not any(map(is_running, pids)))
    wait_until(lambda: not any(Path(work_dir).parent.exists() for work_dir in work_dirs))


def test_a_host_that_ends_without_closing_does_not_hang_and_leaves_nothing(is_running: IsRunning) -> None:
    process = host(f"run({START_CHILDREN!r})\n{PRINT_PIDS}\nprint(run('os.getcwd()'))")
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    pids = list(map(int, said.partition("\n")[0].split()))
    assert len(pids) >= 5
    assert [pid for pid in pids if is_running(pid)] == []
    folder = Path(said.rpartition("```\n'")[2].partition("'")[0])
    assert folder.name == "work"
    assert not folder.parent.exists()


def test_a_tool_nobody_holds_any_more_ends_its_kernel() -> None:
    script = f"""
import asyncio, gc
for loop_was_closed in (False, True):
    tool = CodeInterpreter({{"sandbox": "none"}})
    run({START_CHILDREN!r})
    {PRINT_PIDS.strip().replace(chr(10), chr(10) + "    ")}
    if loop_was_closed:
        asyncio.run(tool.call({{"code": "1"}}))
    del tool
    gc.collect()
    print([pid for pid in pids if Path(f"/proc/{{pid}}").exists()], len(pids) >= 5)
"""
    said, _ = host(script).communicate(timeout=60)
    assert said.splitlines()[1::2] == ["[] True", "[] True"]


def test_a_forked_child_has_a_kernel_of_its_own_and_leaves_its_parents_alone() -> None:
    script = """
run("x = 5")
import os
child = os.fork()
if child == 0:
    print("child:", run("print('x' in globals())").split()[2], flush=True)
    sync.run(tool.aclose())
    sys.exit(0)
_, status = os.waitpid(child, 0)
print("parent:", run("print(x)").split()[2], status)
"""
    process = host(script)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert said.splitlines() == ["child: False", "parent: 5 0"]


def test_ctrl_c_at_the_host_interrupts_the_code_and_ends_the_kernel(
    tmp_path: Path, is_running: IsRunning, wait_until: WaitUntil, processes_below: Callable[[int], list[int]]
) -> None:
    code = f"import time\nopen({str(tmp_path / 'begun')!r}, 'w').close()\ntime.sleep(600)"
    # A runner in the background leaves SIGINT ignored to its children.
    heard = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    process = host(f"{heard}run({code!r})", stderr=subprocess.DEVNULL)
    wait_until((tmp_path / "begun").exists)
    pids = processes_below(process.pid)[1:]
    assert len(pids) >= 2
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode in (1, -signal.SIGINT)
    assert [pid for pid in pids if is_running(pid)] == []


# --- code that goes for what guards it ---

# Run by the code in a process that has left the kernel: every ancestor that is not the host, in one order or the other.
HUNT = """
import os, signal, sys
def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
pid, host, outermost_first = map(int, sys.argv[1:])
hunted = []
while pid not in (0, host):
    hunted.append(pid)
    pid = parent(pid)
for pid in reversed(hunted) if outermost_first else hunted:
    for number in (signal.SIGSTOP, signal.SIGKILL):
        try:
            os.kill(pid, number)
        except OSError:
            pass
"""

START_AND_HUNT = """
import os, subprocess, sys, time
for _ in range(3):
    subprocess.Popen(["sh", "-c", f"setsid sh -c 'sleep 600; : {MARK}' >/dev/null 2>&1 &"]).wait()
time.sleep(0.3)
hunter = [sys.executable, "-c", HUNT, str(os.getppid()), str(HOST), str(ORDER)]
subprocess.Popen(hunter, start_new_session=True)
time.sleep(600)
"""


@pytest.mark.slow
def test_code_that_kills_what_guards_it_leaves_nothing_and_hurts_nobody(
    tmp_path: Path, barrier: str, make_interpreter: Callable[..., Any], wait_until: WaitUntil
) -> None:
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    one = make_interpreter(timeout=2)
    for outermost_first in (0, 1):
        assert one.run("print(6 * 7)").stdout == "42"
        guard = one.processes()[0]
        names = f"MARK, HOST, ORDER, HUNT = {mark!r}, {os.getpid()}, {outermost_first}, {HUNT!r}"
        told = one.run(f"{names}\n{START_AND_HUNT}")
        if barrier == "none":
            assert told.metadata["state"] == "lost"
        else:
            assert Path(f"/proc/{guard}").exists(), "the guard could be killed"
            assert told.metadata["state"] == "kept"
            assert len(marked(mark)) >= 3, "the code started nothing"
        one.close()
        wait_until(lambda: not marked(mark))
    assert one.run("print(6 * 7)").stdout == "42"


def marked(mark: str) -> list[int]:
    """The processes with a text in their command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


LOOK_FOR_A_KEY = """
from pathlib import Path
found, read = [], 0
for environ in Path("/proc").glob("[0-9]*/environ"):
    try:
        text = environ.read_bytes()
    except OSError:
        continue
    read += 1
    if KEY.encode() in text:
        found.append(str(environ))
print(found, read > 0)
"""


def test_the_key_of_the_host_is_in_no_environment_that_code_can_read(tmp_path: Path) -> None:
    # Without a barrier, an ordinary user's processes can read each other's environment: results say so.
    asked = [name for name in BARRIERS if name != NONE or os.getuid() == 0]
    there = [name for name in asked if barriers.best_barrier([name]) == name]
    key = f"sk-{tmp_path.name}-{os.getpid()}"
    script = f"""
from jackfield_code_interpreter import launch
for barrier in {there!r}:
    launch.BARRIERS = (barrier,)
    tool = CodeInterpreter({{"sandbox": "none"}})
    print(run({f"KEY = {key!r}{LOOK_FOR_A_KEY}"!r}))
"""
    said, _ = host(script, env={**os.environ, "OPENAI_API_KEY": key}).communicate(timeout=100)
    assert said.count("[] True") == len(there)


def test_kernels_that_were_started_ahead_end_with_the_process(is_running: IsRunning) -> None:
    script = """
tool = CodeInterpreter({"sandbox": "none", "warm_kernels": 2})
sync.run(tool.warm_up())
print(*[session._kernel.process.pid for session in tool._warm._ready], tool._warm._ready[0].work_dir)
"""
    process = host(script)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    *pids, folder = said.split()
    assert len(pids) == 2
    assert [pid for pid in map(int, pids) if is_running(pid)] == []
    assert not Path(folder).parent.exists()
