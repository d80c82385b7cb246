"""No process outlives what it belongs to: the call, the run, the host; and nothing hangs at its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

IsRunning = Callable[[int], bool]
WaitUntil = Callable[[Callable[[], bool]], None]

# One child in the kernel's group, one that left for a session of its own, one that was orphaned on purpose.
START_CHILDREN = """
import os, subprocess
same = subprocess.Popen(["sleep", "600"]).pid
own = subprocess.Popen(["sleep", "600"], start_new_session=True).pid
orphan = subprocess.check_output("setsid sleep 600 > /dev/null 2>&1 & echo $!", shell=True, text=True)
print(os.getpid(), os.getppid(), same, own, int(orphan))
"""

FORK_BOMB = """
import os, time
pids = []
for _ in range(100):
    pid = os.fork()
    if pid == 0:
        os.setsid()
        time.sleep(600)
        os._exit(0)
    pids.append(pid)
print(*pids)
"""

HOST = """
import sys
from jackfield import sync
from jackfield_code_interpreter.tool import CodeInterpreter
tool = CodeInterpreter()
def run(code):
    return sync.run(tool.call({"code": code})).content
"""


def pids_in(text: str) -> list[int]:
    return [int(word) for word in text.split() if word.isdigit()]


def host(script: str, **more: Any) -> subprocess.Popen[str]:
    # A socket that is left to the garbage collector can make the process wait for ever: here it surely does.
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", HOST + script]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **more)


@pytest.mark.parametrize("code", [START_CHILDREN, FORK_BOMB], ids=["children", "fork bomb"])
def test_closing_leaves_no_descendant(make_interpreter: Callable[..., Any], is_running: IsRunning, code: str) -> None:
    one = make_interpreter()
    pids = pids_in(one.run(code).stdout)
    assert len(pids) >= 5
    assert all(map(is_running, pids))
    one.close()
    assert [pid for pid in pids if is_running(pid)] == []


def test_a_kernel_that_ends_itself_leaves_no_descendant(
    make_interpreter: Callable[..., Any], is_running: IsRunning, wait_until: WaitUntil
) -> None:
    one = make_interpreter()
    pids = pids_in(one.run(START_CHILDREN).stdout)
    one.run("os._exit(0)")
    wait_until(lambda: not any(map(is_running, pids)))


def test_a_host_that_is_killed_takes_its_kernels_along(is_running: IsRunning, wait_until: WaitUntil) -> None:
    process = host(
        f"print(run({START_CHILDREN!r}).split()[2:7], tool._own.work_dir, flush=True)\nsys.stdin.read()",
        stdin=subprocess.PIPE,
    )
    assert process.stdout is not None
    listed, _, work_dir = process.stdout.readline().strip().partition("] ")
    pids = pids_in("".join(char if char.isdigit() else " " for char in listed))
    assert len(pids) == 5
    assert all(map(is_running, pids))
    process.kill()
    process.communicate()
    wait_until(lambda: not any(map(is_running, pids)))
    wait_until(lambda: not Path(work_dir).parent.exists())


def test_a_host_that_ends_without_closing_does_not_hang_and_leaves_nothing(is_running: IsRunning) -> None:
    process = host(f"print(run({START_CHILDREN!r}))\nprint(run('os.getcwd()'))")
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert [pid for pid in pids_in(said) if is_running(pid)] == []
    folder = Path(said.rpartition("```\n'")[2].partition("'")[0])
    assert folder.name == "work"
    assert not folder.parent.exists()


@pytest.mark.parametrize(
    "again", ["", "import asyncio\nasyncio.run(tool.call({'code': '1'}))\n"], ids=["", "closed loop"]
)
def test_a_tool_nobody_holds_any_more_ends_its_kernel(again: str) -> None:
    script = (
        f"pids = [int(word) for word in run({START_CHILDREN!r}).split() if word.isdigit()]\n"
        f"{again}"
        "import gc\ndel tool\ngc.collect()\n"
        "import os\nfrom pathlib import Path\n"
        "print([pid for pid in pids if Path(f'/proc/{pid}').exists()], len(pids))"
    )
    said, _ = host(script).communicate(timeout=60)
    assert said.split() == ["[]", "5"]


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
    tmp_path: Path, is_running: IsRunning, wait_until: WaitUntil
) -> None:
    code = f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()) + '.')\ntime.sleep(600)"
    # A runner in the background leaves SIGINT ignored to its children.
    heard = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    process = host(f"{heard}run({code!r})", stderr=subprocess.DEVNULL)
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("."))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode in (1, -signal.SIGINT)
    pid = int((tmp_path / "pid").read_text().rstrip("."))
    assert pid != os.getpid()
    assert not is_running(pid)
