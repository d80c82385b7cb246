"""A program under its guard: its limits, what ends it, and what is given to it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from jackfield.sandboxes import Limits
from jackfield_confine import barriers, guard
from jackfield_confine.barriers import LANDLOCK, NAMESPACES, NONE, best_barrier, restricts_files
from jackfield_confine.guarding import GUARD, FileRules, guarded
from jackfield_confine.interpreters import find_python
from jackfield_confine.syscalls import filters_this_machine

HAS_SIGNAL_SCOPES = sys.platform == "linux" and barriers._landlock_abi() >= barriers._LANDLOCK_ABI_WITH_SIGNALS
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces and /proc are Linux's")

FORK_UNTIL_STOPPED = """
import json, os, resource, signal, sys, time
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import guard
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
guard.apply_limits({"processes": 20}, others=guard.running_threads())
children = []
try:
    for _ in range(60):
        pid = os.fork()
        if pid == 0:
            time.sleep(60); os._exit(0)
        children.append(pid)
    print("never stopped")
except BlockingIOError:
    print(len(children))
finally:
    for pid in children:
        os.kill(pid, signal.SIGKILL)
"""


def test_an_ordinary_user_cannot_fork_beyond_the_limit() -> None:
    said = subprocess.run(
        [sys.executable, "-c", FORK_UNTIL_STOPPED, str(GUARD)], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert int(said) <= 20


def test_only_threads_of_this_user_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    is_over = threading.Event()
    threads = [threading.Thread(target=is_over.wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        assert guard.running_threads() >= 4
        monkeypatch.setattr(os, "getuid", lambda: 1_900_000_000)  # nobody's number
        assert guard.running_threads() == 0
    finally:
        is_over.set()


def test_a_socket_holds_its_largest_buffer_and_one_more_message(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**31 - 1)
        largest = one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    assert guard.most_bytes_of_socket() == 2 * largest

    def refuse(*_: object, **__: object) -> str:
        raise PermissionError

    monkeypatch.setattr(Path, "read_text", refuse)
    assert guard.most_bytes_of_socket() == 4 * 212_992


def run(argv: list[str], **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        guarded(argv, limits=Limits(), **more),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,  # type: ignore[arg-type]
    )


def test_a_program_that_is_not_there_is_said_so() -> None:
    done = run(["/no/such/program"])
    assert (done.returncode, done.stderr) == (126, "/no/such/program: No such file or directory\n")


def test_its_exit_code_is_that_of_the_program_or_of_its_signal() -> None:
    assert run(["sh", "-c", "exit 7"]).returncode == 7
    assert run(["sh", "-c", "kill -9 $$"]).returncode == 137


STOPPED_EARLY = """
import os, signal, sys, time
sys.path.insert(0, os.path.dirname(sys.argv.pop(1)))
import guard
wait, started = guard._guard, sys.argv.pop(1)

def wait_late(*args):
    while not os.path.exists(started):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGTERM)
    return wait(*args)

guard._guard = wait_late
guard.main()
"""
STARTS_ANOTHER = """
import subprocess, sys, time
subprocess.Popen(["sleep", "600"], start_new_session=True)
open(sys.argv[1], "w").close()
time.sleep(600)
"""


def test_a_request_to_stop_that_comes_before_the_guard_waits_ends_all(tmp_path: Path) -> None:
    started = tmp_path / "started"
    program = [sys.executable, "-I", "-c", STARTS_ANOTHER, str(started)]
    _, _, _, script, plan, *argv = guarded(program, limits=Limits())
    command = [sys.executable, "-I", "-c", STOPPED_EARLY, script, str(started), plan, *argv]
    # All of them hold standard output: this waits until the last of them has ended.
    ended = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert ended.returncode == 128 + signal.SIGKILL, ended.stderr


@pytest.mark.parametrize("barrier", [NAMESPACES, LANDLOCK, NONE])
def test_the_barrier_that_was_found_is_reported(tmp_path: Path, barrier: str) -> None:
    if best_barrier([barrier]) != barrier:
        pytest.skip(f"no {barrier} on this machine")
    run(["true"], barriers=[barrier], report=tmp_path / "report")
    assert (tmp_path / "report").read_text() == barrier


@pytest.mark.skipif(not restricts_files(), reason="needs Landlock")
def test_rules_for_files_hold_without_namespaces(tmp_path: Path) -> None:
    for name in ("mine", "seen", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "note").write_text(name)
    rules = FileRules(
        readable=("/usr", "/bin", "/lib", "/lib64", str(tmp_path / "seen")), writable=(str(tmp_path / "mine"),)
    )
    script = "cat mine/note; cat seen/note; cat other/note; echo x > seen/note; echo new > mine/note; ls mine"
    done = subprocess.run(
        guarded(["sh", "-c", script], limits=Limits(), files=rules),
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout == "mineseennote\n"
    assert [(tmp_path / name / "note").read_text() for name in ("mine", "seen", "other")] == ["new\n", "seen", "other"]


COPIES = """
import os, shutil
open("a", "w").close()
def attempt(what, *given):
    try:
        what(*given)
    except PermissionError:
        return False
    return True
print(*map(int, (
    attempt(shutil.copyfile, "a", "b"), attempt(shutil.move, "b", "c"), attempt(os.mkdir, "d", 0o700),
    attempt(shutil.copy, "a", "e"), attempt(shutil.copystat, "a", "c"), attempt(os.chmod, "a", 0o600),
    attempt(os.utime, "a"), attempt(os.fchmod, os.open("a", os.O_RDWR), 0o600),
)))
"""


@pytest.mark.skipif(not restricts_files() or not filters_this_machine(), reason="needs Landlock and seccomp")
@pytest.mark.parametrize(("barriers", "shown"), [((), "1 1 1 0 0 0 0 0"), ((NAMESPACES,), "1 1 1 1 1 1 1 1")])
def test_only_without_namespaces_can_no_permissions_and_times_be_set(
    tmp_path: Path, barriers: tuple[str, ...], shown: str
) -> None:
    if barriers and best_barrier([*barriers]) != NAMESPACES:
        pytest.skip("no namespaces on this machine")
    python = find_python()
    rules = FileRules(readable=("/usr", "/lib", "/lib64", "/etc", *python.readable), writable=(str(tmp_path),))
    command = guarded([python.path, "-c", COPIES], limits=Limits(), barriers=barriers, files=rules, filtered_by="guard")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.strip() == shown, done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_what_root_gives_away_is_what_is_in_the_folder_and_nothing_through_links(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.write_text("x")
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "file").write_text("x")
    (folder / "link").symlink_to(outside)
    (folder / "second-name").hardlink_to(outside)
    guard.give_away(str(folder), 12345)
    owners = {path.name: path.lstat().st_uid for path in (folder, *folder.rglob("*"))}
    assert owners == {"folder": 12345, "inner": 12345, "file": 12345, "link": 12345, "second-name": 0}
    assert outside.stat().st_uid == 0


RESTRICTED = """
import os, signal, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import barriers
if sys.argv[2] == "signals":
    barriers.forbid_signals_outward()
else:
    barriers.restrict_files(readable=["/"], writable=[], network=True)
try:
    os.kill(int(sys.argv[3]), 0)
    print("outward")
except PermissionError:
    print("refused")
if os.fork() == 0:
    os.kill(os.getpid(), signal.SIGKILL)
print(os.WTERMSIG(os.wait()[1]))
"""


@pytest.mark.skipif(not HAS_SIGNAL_SCOPES, reason="Landlock restricts signals since Linux 6.12")
@pytest.mark.parametrize("how", ["signals", "files"])
def test_a_restricted_process_signals_only_those_restricted_with_it(how: str) -> None:
    command = [sys.executable, "-c", RESTRICTED, str(GUARD), how, str(os.getpid())]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert said.split() == ["refused", "9"]


@pytest.mark.parametrize(("abi", "rights"), [(1, 13), (2, 14), (3, 15), (4, 15), (5, 16), (7, 16)])
def test_every_right_that_the_kernel_knows_is_restricted(abi: int, rights: int) -> None:
    # https://docs.kernel.org/userspace-api/landlock.html: refer since 2, truncate since 3, ioctl_dev since 5.
    assert barriers.rights_of(abi) == 2**rights - 1


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_root_gives_away_the_files_of_a_huge_folder_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_MOST_GIVEN", 2)
    (tmp_path / "a/b/c").mkdir(parents=True)
    guard.give_away(str(tmp_path), 12345)
    given = [path.name for path in (tmp_path, *tmp_path.rglob("*")) if path.stat().st_uid == 12345]
    assert given == [tmp_path.name, "a", "b", "c"]
    (tmp_path / "a/b/c/d/e").mkdir(parents=True)
    monkeypatch.setattr(guard, "_MOST_GIVEN", 3)
    guard.give_away(str(tmp_path), 12345)
    assert (tmp_path / "a/b/c/d").stat().st_uid == 12345
    assert (tmp_path / "a/b/c/d/e").stat().st_uid == 0
