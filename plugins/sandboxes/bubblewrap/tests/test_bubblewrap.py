"""What is particular to these two sandboxes: what they show, whose files are whose, what is said where they fail."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import SandboxError
from jackfield.plugins import default_host
from jackfield.sandboxes import Finished, Limits, Program, ProgramSandbox, Sandbox
from jackfield_bubblewrap import bubblewrap, checks, landlock, system
from jackfield_bubblewrap.bubblewrap import Bubblewrap
from jackfield_bubblewrap.landlock import LandlockSandbox

Run = Callable[..., Finished]


@pytest.fixture(params=[Bubblewrap, LandlockSandbox], ids=["bubblewrap", "landlock"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Runs a script of the shell in a sandbox that works here."""
    sandbox: ProgramSandbox = request.param()
    try:
        if "network" not in sandbox.protection().covers:
            pytest.skip("without namespaces there are only the rules of Landlock, which take nothing back")
    except SandboxError as error:
        pytest.skip(str(error))

    def run(script: str, **more: Any) -> Finished:
        program = Program(
            argv=("sh", "-c", script), **{"work_dir": str(tmp_path), "env": {"PATH": "/usr/bin:/bin"}, **more}
        )
        return asyncio.run(sandbox.run(program))

    return run


def test_python_stays_read_only_in_a_folder_that_can_be_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "project" / ".venv"
    inside.mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(inside))
    done = run("echo x > made; echo x > .venv/planted; ls -A . .venv", work_dir=str(tmp_path / "project"))
    assert (tmp_path / "project" / "made").exists()
    assert not (inside / "planted").exists(), done.stdout


def test_a_mount_below_a_readable_folder_is_read_only(run: Run, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root mounts")
    (tmp_path / "readable" / "inner").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    inner = tmp_path / "readable" / "inner"
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(inner)], check=True)
    try:
        (inner / "note").write_text("of the host")
        (inner / "note").chmod(0o666)
        done = run(
            f"cd {inner}; cat note; chmod 600 note; touch -d @1 note; echo x > note",
            work_dir=str(tmp_path / "work"),
            readable=(str(tmp_path / "readable"),),
        )
        assert done.stdout == b"of the host"
        assert ((inner / "note").stat().st_mode & 0o777, (inner / "note").read_text()) == (0o666, "of the host")
        assert (inner / "note").stat().st_mtime > 1
    finally:
        subprocess.run(["umount", str(inner)], check=True)


def test_a_folder_that_is_named_by_a_link_is_that_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    done = run("echo x > made", work_dir=str(tmp_path / "link"))
    assert (tmp_path / "real" / "made").read_text() == "x\n", done.stderr.decode()


def test_what_is_readable_and_missing_is_left_out(run: Run, tmp_path: Path) -> None:
    done = run("echo hello", readable=(str(tmp_path / "missing"),))
    assert done.stdout == b"hello\n", done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root runs programs as others")
def test_roots_programs_are_a_user_of_their_own_who_gets_the_folder(tmp_path: Path) -> None:
    sandbox = Bubblewrap()
    try:
        sandbox.protection()
    except SandboxError as error:
        pytest.skip(str(error))
    (tmp_path / "file").write_text("given ")
    program = Program(
        argv=("sh", "-c", "id -u; echo taken >> file"), work_dir=str(tmp_path), env={"PATH": "/usr/bin:/bin"}
    )
    first, second = (int(asyncio.run(sandbox.run(program)).stdout) for _ in range(2))
    assert first not in (0, 65534)
    assert first == second == tmp_path.stat().st_uid == (tmp_path / "file").stat().st_uid
    assert (tmp_path / "file").read_text() == "given taken\ntaken\n"


def test_its_own_tmp_has_the_size_of_the_settings(tmp_path: Path) -> None:
    host = default_host()
    sandbox = host.make(host.find("sandbox", "jackfield-bubblewrap/bubblewrap"), {"tmp_mb": 2}, Sandbox)
    try:
        sandbox.protection()
    except SandboxError as error:
        pytest.skip(str(error))
    script = "cd /tmp; head -c 5000000 /dev/zero > big; wc -c < big"
    program = Program(argv=("sh", "-c", script), work_dir=str(tmp_path), env={"PATH": "/usr/bin:/bin"})
    assert int(asyncio.run(sandbox.run(program)).stdout) <= 2 << 20


# --- where they do not work ---


@pytest.fixture
def afresh() -> Any:
    """Nothing is known yet of what works here, before and after."""
    known = (bubblewrap._probe, bubblewrap._can_disable_namespaces, landlock._probe, landlock._has_namespaces)
    for one in known:
        one.cache_clear()
    yield
    for one in known:
        one.cache_clear()


# --- the first process ---

TRACE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for pid in {1, os.getppid()}:
    print(libc.ptrace(16, pid, 0, 0), os.strerror(ctypes.get_errno()))
"""


def test_code_that_traces_the_first_process_and_ends_ends_the_sandbox(run: Run, tmp_path: Path) -> None:
    done = run(f"{sys.executable} -I -S -c '{TRACE}'", limits=Limits(wall_s=20))
    assert not done.timed_out
    assert b"Operation not permitted" in done.stdout


def test_what_ends_first_if_memory_runs_out_stays_the_program(run: Run) -> None:
    done = run("cat /proc/self/oom_score_adj; echo 0 > /proc/self/oom_score_adj; cat /proc/self/oom_score_adj")
    assert done.stdout == b"1000\n1000\n"


def test_files_that_root_s_code_makes_never_run_as_root(run: Run, tmp_path: Path) -> None:
    run("cp /bin/true planted; chmod 4755 planted; chmod u+s,g+s planted; chmod 6755 .")
    assert not any(path.stat().st_mode & 0o6000 for path in (tmp_path, *tmp_path.iterdir()))


@pytest.mark.usefixtures("afresh")
def test_without_bubblewrap_the_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(system, "_SBIN", str(tmp_path))
    with pytest.raises(SandboxError, match="'bwrap' is not installed: install your system's bubblewrap package"):
        Bubblewrap().protection()


@pytest.mark.usefixtures("afresh")
def test_where_bubblewrap_may_not_do_its_work_its_own_words_are_in_the_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refusing = tmp_path / "bwrap"
    refusing.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2; exit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setattr(system, "_SBIN", f"{tmp_path}:{system._SBIN}")
    with pytest.raises(SandboxError, match="does not work here: bwrap: setting up uid map: Permission denied"):
        Bubblewrap().protection()


@pytest.mark.usefixtures("afresh")
def test_without_landlock_the_kernel_that_has_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "restricts_files", lambda: False)
    with pytest.raises(SandboxError, match=r"Linux 6\.2 or later"):
        LandlockSandbox().protection()


@pytest.mark.usefixtures("afresh")
def test_without_namespaces_the_filter_takes_their_place_and_processes_are_not_claimed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(landlock, "NAMESPACES", "none of them")
    sandbox = LandlockSandbox()
    try:
        protection = sandbox.protection()
    except SandboxError as error:
        pytest.skip(str(error))
    assert protection.layer == "landlock"
    assert {"files", "network", "memory"} <= protection.covers
    assert "processes" not in protection.covers
    (tmp_path / "other").write_text("secret")
    (tmp_path / "work").mkdir()
    program = Program(
        argv=("sh", "-c", "cat ../other; echo x > made; cat made"),
        work_dir=str(tmp_path / "work"),
        env={"PATH": "/usr/bin:/bin"},
        limits=Limits(memory_bytes=1 << 30),
    )
    assert asyncio.run(sandbox.run(program)).stdout == b"x\n"


@pytest.mark.usefixtures("afresh")
def test_without_namespaces_a_program_may_not_have_the_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(landlock, "NAMESPACES", "none of them")
    program = Program(argv=("true",), work_dir=str(tmp_path), network=True)
    with pytest.raises(
        SandboxError, match=r"Docker's: install bubblewrap, allow user namespaces, or run the program without"
    ):
        LandlockSandbox().command(program)


@pytest.mark.usefixtures("afresh")
@pytest.mark.parametrize("sandbox", [Bubblewrap, LandlockSandbox], ids=["bubblewrap", "landlock"])
def test_without_a_filter_memory_is_not_claimed(monkeypatch: pytest.MonkeyPatch, sandbox: type[ProgramSandbox]) -> None:
    # As on a machine whose system calls have no table.
    real = landlock.guarded
    for module in (bubblewrap, landlock):
        monkeypatch.setattr(module, "guarded", lambda *given, **more: real(*given, **{**more, "filtered_by": ""}))
    try:
        protection = sandbox().protection()
    except SandboxError as error:
        pytest.skip(str(error))
    assert "memory" not in protection.covers
    assert "files" in protection.covers
    assert "not limited: memory of each process" in str(protection)


@pytest.mark.usefixtures("afresh")
@pytest.mark.parametrize("sandbox", [Bubblewrap, LandlockSandbox], ids=["bubblewrap", "landlock"])
def test_without_a_control_group_the_memory_of_all_processes_is_not_claimed(
    monkeypatch: pytest.MonkeyPatch, sandbox: type[ProgramSandbox]
) -> None:
    real = landlock.guarded
    for module in (bubblewrap, landlock):
        monkeypatch.setattr(module, "guarded", lambda *given, **more: real(*given, **{**more, "is_grouped": False}))
    try:
        protection = sandbox().protection()
    except SandboxError as error:
        pytest.skip(str(error))
    assert "total_memory" not in protection.covers
    assert "not limited: memory of all processes together" in str(protection)


@pytest.mark.usefixtures("afresh")
def test_the_doctor_is_content_with_one_of_the_two(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if not landlock.restricts_files():
        pytest.skip("needs Landlock")
    monkeypatch.setattr(system, "_SBIN", str(tmp_path))
    assert checks.problems() == []
    landlock._probe.cache_clear()
    monkeypatch.setattr(landlock, "restricts_files", lambda: False)
    assert len(checks.problems()) == 2


ORDINARY = """
import asyncio, os, tempfile
from jackfield_bubblewrap.bubblewrap import Bubblewrap
from jackfield.sandboxes import Limits, Program
sandbox = Bubblewrap()
try:
    sandbox.protection()
except Exception as error:
    print("skip", error)
else:
    script = "unshare --user true 2>/dev/null && echo escaped; ls /home; echo x > made; cat made; whoami 2>/dev/null"
    with tempfile.TemporaryDirectory() as folder:
        program = Program(
            argv=("sh", "-c", script), work_dir=folder, env={"PATH": "/usr/bin:/bin"}, limits=Limits(processes=20)
        )
        print(asyncio.run(sandbox.run(program)).stdout)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="every other test is an ordinary user's then")
def test_an_ordinary_user_has_the_same_sandbox(tmp_path: Path) -> None:
    """Root tries it as another user, with the system's Python: this one may be in a closed home."""
    python, setpriv = shutil.which("python3", path="/usr/bin"), shutil.which("setpriv")
    if python is None or setpriv is None:
        pytest.skip("there is no Python of the system, or no setpriv")
    env = {"PATH": "/usr/bin:/bin", "TMPDIR": "/tmp", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [setpriv, "--reuid", "12345", "--regid", "12345", "--clear-groups", python, "-B", "-c", ORDINARY]
    done = subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, timeout=120, check=False)
    if "Permission denied" in done.stderr or "No module" in done.stderr or done.stdout.startswith("skip"):
        pytest.skip(f"not for another user here: {done.stdout}{done.stderr[-200:]}")
    assert done.stdout == "b'x\\n'\n", done.stderr
