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
from jackfield_bubblewrap import bubblewrap, checks, landlock, system
from jackfield_bubblewrap.bubblewrap import Bubblewrap
from jackfield_bubblewrap.landlock import LandlockSandbox
from jackfield_confine.sandboxes import Finished, Limits, Program, ProgramSandbox, Sandbox

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
    known = (bubblewrap._problem, bubblewrap._can_disable_namespaces, landlock._problem, landlock._has_namespaces)
    for one in known:
        one.cache_clear()
    yield
    for one in known:
        one.cache_clear()


@pytest.mark.usefixtures("afresh")
def test_without_bubblewrap_the_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(system, "_SBIN", str(tmp_path))
    with pytest.raises(SandboxError, match="'bwrap' is not installed: install your system's package bubblewrap"):
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
def test_without_namespaces_landlock_does_not_claim_network_and_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(landlock, "NAMESPACES", "none of them")
    sandbox = LandlockSandbox()
    try:
        protection = sandbox.protection()
    except SandboxError as error:
        pytest.skip(str(error))
    assert (protection.layer, {"network", "processes"} & protection.covers) == ("landlock", set())
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
def test_the_doctor_is_content_with_one_of_the_two(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if not landlock.restricts_files():
        pytest.skip("needs Landlock")
    monkeypatch.setattr(system, "_SBIN", str(tmp_path))
    assert checks.problems() == []
    landlock._problem.cache_clear()
    monkeypatch.setattr(landlock, "restricts_files", lambda: False)
    assert len(checks.problems()) == 2


ORDINARY = """
import asyncio, os, tempfile
from jackfield_bubblewrap.bubblewrap import Bubblewrap
from jackfield_confine.sandboxes import Limits, Program
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
