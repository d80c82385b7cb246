"""A control group limits what a program holds as a whole, and goes with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jackfield.sandboxes import Limits
from jackfield_confine import cgroups
from jackfield_confine.cgroups import MEMORY, PIDS, ControlGroup, find_parents
from jackfield_confine.guarding import guarded

needs_group = pytest.mark.skipif(
    {parent.controller for parent in find_parents()} != {MEMORY, PIDS}, reason="no control group can be had here"
)
MB = 1 << 20


def groups() -> list[Path]:
    """The groups of this library that exist."""
    return [path for parent in find_parents() for path in Path(parent.folder).glob("jackfield-*")]


def run(code: str, **limits: int) -> subprocess.CompletedProcess[str]:
    command = guarded([sys.executable, "-I", "-S", "-c", code], limits=Limits(**limits), is_grouped=True)
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


FILL = """
import mmap, os, time
for _ in range(4):
    if os.fork() == 0:
        room = mmap.mmap(-1, 40 << 20)
        for at in range(0, len(room), 4096): room[at] = 1
        time.sleep(600)
statuses = [os.wait()[1] for _ in range(1)]
print(statuses)
"""


@needs_group
def test_all_processes_together_hold_no_more_than_the_limit() -> None:
    done = run(FILL, memory_bytes=96 * MB)
    assert done.stdout == "[9]\n" or done.returncode == 128 + signal.SIGKILL


FORK = """
import os, time
count = 0
try:
    while count < 40:
        if os.fork() == 0: time.sleep(600)
        count += 1
except OSError: pass
print(count)
"""


@needs_group
def test_all_processes_together_are_no_more_than_the_limit() -> None:
    assert int(run(FORK, processes=15).stdout) == 14


@needs_group
def test_without_limits_there_is_no_group() -> None:
    done = run("print(open('/proc/self/cgroup').read())")
    assert done.returncode == 0
    assert "jackfield-" not in done.stdout


@needs_group
def test_the_group_is_removed_with_the_program_and_what_it_left() -> None:
    code = "import subprocess, sys; subprocess.Popen(['sleep', '600'], start_new_session=True)"
    command = guarded(
        [sys.executable, "-I", "-S", "-c", code],
        limits=Limits(memory_bytes=200 * MB, processes=20),
        is_grouped=True,
    )
    with subprocess.Popen(command) as process:
        assert process.wait() == 0
    assert not [path for path in groups() if path.name.startswith(f"jackfield-{process.pid}-")]


DEAF = """
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
sys.stdin.read()
"""


@needs_group
def test_a_process_that_ignores_requests_to_stop_ends_with_its_group() -> None:
    group = ControlGroup(memory_bytes=None, processes=20)
    command = [sys.executable, "-I", "-S", "-c", DEAF]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=group.join,  # noqa: PLW1509 - it only writes to a file
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        group.remove()
    assert process.returncode == -signal.SIGKILL


@needs_group
def test_the_group_of_a_guard_that_was_killed_is_removed_by_the_next() -> None:
    command = guarded(
        [sys.executable, "-I", "-S", "-c", "print('up', flush=True); import time; time.sleep(600)"],
        limits=Limits(processes=20),
        is_grouped=True,
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        mine = [path for path in groups() if path.name.startswith(f"jackfield-{process.pid}-")]
        assert mine
        process.kill()
    until = time.monotonic() + 30
    while any(path.exists() for path in mine) and time.monotonic() < until:
        run("", processes=20)  # the killed one's program ends a moment later than its guard
    assert not any(path.exists() for path in mine)


@needs_group
def test_a_group_that_is_offered_and_refused_stops_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        ControlGroup(memory_bytes=None, processes=-5)
    assert not [path for path in groups() if path.name.startswith(f"jackfield-{os.getpid()}-")]


def test_a_version_2_group_stands_beside_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A group with processes may have no children with controllers.
    own = tmp_path / "user.slice" / "app.scope"
    own.mkdir(parents=True)
    for name, text in (("cgroup.procs", ""), ("cgroup.subtree_control", "cpu memory pids\n")):
        (own.parent / name).write_text(text)
    _fake_proc(monkeypatch, tmp_path, own_line="0::/user.slice/app.scope", mount=f"{tmp_path} rw - cgroup2 cgroup rw")
    assert {(one.controller, one.version, one.folder) for one in find_parents()} == {
        (MEMORY, 2, str(own.parent)),
        (PIDS, 2, str(own.parent)),
    }
    (own.parent / "cgroup.subtree_control").write_text("cpu\n")
    assert find_parents() == []


def test_a_version_1_group_is_below_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "job"
    own.mkdir()
    (own / "cgroup.procs").touch()
    _fake_proc(monkeypatch, tmp_path, own_line="4:memory:/job", mount=f"{tmp_path} rw - cgroup cgroup rw,memory")
    assert find_parents() == [(MEMORY, 1, str(own))]


def test_each_controller_of_version_1_is_where_its_own_hierarchy_has_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("memory/a", "memory/b", "pids/a", "pids/b"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "cgroup.procs").touch()
    lines = "5:pids:/b\n4:cpu,memory:/a"
    mounts = f"{tmp_path}/memory rw - cgroup cgroup rw,memory,cpu\n"
    mounts += f"31 25 0:27 / {tmp_path}/pids rw - cgroup cgroup rw,pids"
    _fake_proc(monkeypatch, tmp_path, own_line=lines, mount=mounts)
    assert find_parents() == [(MEMORY, 1, f"{tmp_path}/memory/a"), (PIDS, 1, f"{tmp_path}/pids/b")]


def test_in_the_root_of_version_2_the_group_is_below_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As in a container, whose own group is the root that it sees.
    for name, text in (("cgroup.procs", ""), ("cgroup.subtree_control", "memory\n")):
        (tmp_path / name).write_text(text)
    _fake_proc(monkeypatch, tmp_path, own_line="0::/", mount=f"{tmp_path} rw - cgroup2 cgroup rw")
    assert find_parents() == [(MEMORY, 2, str(tmp_path))]


def test_a_group_that_a_container_does_not_see_is_its_mount(tmp_path: Path) -> None:
    assert cgroups._below("/sys/fs/cgroup", "/docker/1", "/docker/1/job") == "/sys/fs/cgroup/job"
    assert cgroups._below("/sys/fs/cgroup", "/docker/1", "/") == "/sys/fs/cgroup"
    assert cgroups._below("/sys/fs/cgroup", "/", "/") == "/sys/fs/cgroup"


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_where_nothing_may_be_written_there_is_no_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cgroup.procs").touch()
    tmp_path.chmod(0o555)
    _fake_proc(monkeypatch, tmp_path, own_line="4:memory:/", mount=f"{tmp_path} rw - cgroup cgroup rw,memory")
    assert find_parents() == []


def _fake_proc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, own_line: str, mount: str) -> None:
    files = {"/proc/self/cgroup": own_line, "/proc/self/mountinfo": f"30 25 0:26 / {mount}"}
    real = open

    def opened(path: str, *arguments: object, **more: object) -> object:
        if path in files:
            (tmp_path / "as-proc").write_text(f"{files[path]}\n")
            path = str(tmp_path / "as-proc")
        return real(path, *arguments, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(cgroups, "open", opened, raising=False)


def test_only_empty_groups_of_guards_that_are_gone_are_removed(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    stays = (f"jackfield-{os.getpid()}-a", f"other-{gone.pid}-a", "jackfield-x-a", f"jackfield-{gone.pid}-full")
    for name in (*stays, f"jackfield-{gone.pid}-a"):
        (tmp_path / name).mkdir()
    (tmp_path / f"jackfield-{gone.pid}-full" / "inner").mkdir()
    cgroups._remove_abandoned(str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {*stays}


def test_a_process_joins_the_group_in_each_hierarchy(tmp_path: Path) -> None:
    group = ControlGroup(memory_bytes=None, processes=None)
    paths = [tmp_path / "memory", tmp_path / "pids"]
    group._doors = [os.open(path, os.O_WRONLY | os.O_CREAT) for path in paths]
    group.join()
    group.remove()
    assert [path.read_text() for path in paths] == ["0", "0"]


def test_a_group_that_cannot_be_removed_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "_REMOVE_S", 0.01)
    group = ControlGroup(memory_bytes=None, processes=None)
    (tmp_path / "full" / "inner").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    group._folders = [str(tmp_path / "full")]
    group.remove()
    group._folders = [str(tmp_path / "gone"), str(tmp_path / "empty")]
    group.remove()
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


@pytest.mark.parametrize("closed", ["", "cgroup.procs"])
def test_a_group_is_made_only_where_both_it_and_its_processes_may_be_written(
    closed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, _: path != f"{tmp_path}/{closed}".rstrip("/"))
    _fake_proc(monkeypatch, tmp_path, own_line="4:memory:/", mount=f"{tmp_path} rw - cgroup cgroup rw,memory")
    assert find_parents() == []
    monkeypatch.setattr(os, "access", lambda *_: True)
    assert find_parents() == [(MEMORY, 1, str(tmp_path))]


@pytest.mark.parametrize(
    ("parent", "written"),
    [
        ((MEMORY, 1), {"memory.limit_in_bytes": "7", "memory.memsw.limit_in_bytes": "7"}),
        ((MEMORY, 2), {"memory.max": "7", "memory.swap.max": "0"}),
        ((PIDS, 1), {"pids.max": "7"}),
        ((PIDS, 2), {"pids.max": "7"}),
    ],
    ids=str,
)
def test_a_limit_is_written_to_each_file_that_takes_it(
    parent: tuple[str, int], written: dict[str, str], tmp_path: Path
) -> None:
    for name in written:
        (tmp_path / name).touch()
    (tmp_path / "memory.other").touch()
    cgroups._set_limit(cgroups.Parent(*parent, ""), str(tmp_path), 7)
    assert {path.name: path.read_text() for path in tmp_path.iterdir() if path.stat().st_size} == written
    # Only one of them must be there.
    for needed in (name for name in written if name in ("memory.limit_in_bytes", "memory.max", "pids.max")):
        for other in {*written} - {needed}:
            (tmp_path / other).unlink()
        cgroups._set_limit(cgroups.Parent(*parent, ""), str(tmp_path), 7)
        (tmp_path / needed).unlink()
        with pytest.raises(FileNotFoundError):
            cgroups._set_limit(cgroups.Parent(*parent, ""), str(tmp_path), 7)
