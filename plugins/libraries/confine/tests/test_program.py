"""A program under its guard as it sees itself, and everything that ends it."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield.sandboxes import Limits
from jackfield_confine import guard
from jackfield_confine.barriers import LANDLOCK, NAMESPACES, best_barrier, restricts_files
from jackfield_confine.guarding import FileRules, guarded
from jackfield_confine.interpreters import find_python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces and /proc are Linux's")

MB = 1 << 20
PATIENCE_S = 60
PYTHON = find_python()
SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc", "/proc", *PYTHON.readable)

REPORT = """
import ctypes, json, os, resource, socket
names = ("CORE", "AS", "NOFILE", "CPU", "FSIZE", "NPROC")
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
def connects():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        return True
def attempt(what):
    try:
        return what()
    except OSError:
        return False
print(json.dumps({
    "limits": {name: resource.getrlimit(getattr(resource, "RLIMIT_" + name)) for name in names},
    "rights": {name: int(status[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")},
    "gains_no_rights": status["NoNewPrivs"].strip() == "1",
    "is_filtered": status["Seccomp"].strip() == "2",
    "goes_first": open("/proc/self/oom_score_adj").read().strip(),
    "leads_its_session": os.getsid(0) == os.getpgid(0) == os.getpid(),
    "processes": sorted(int(name) for name in os.listdir("/proc") if name.isdigit()),
    "parent": os.getppid(),
    "loopback": attempt(connects),
    "folder": os.getcwd(),
    "keyring": ctypes.CDLL(None).syscall(250 if os.uname().machine == "x86_64" else 219, 0, -3, 0),
    "blocked": sorted(int(one) for one in __import__("signal").pthread_sigmask(0, [])),
}))
"""


def rules(*writable: Path, readable: tuple[str, ...] = (), network: bool = False) -> FileRules:
    return FileRules(readable=(*SYSTEM, *readable), writable=tuple(map(str, writable)), network=network)


MODES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "limits only": lambda _: {},
    "namespaces": lambda _: {"barriers": (NAMESPACES,)},
    "landlock": lambda _: {"barriers": (LANDLOCK,)},
    "files": lambda work: {"files": rules(work)},
    "files and namespaces": lambda work: {"files": rules(work), "barriers": (NAMESPACES,)},
}


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """The arguments of a guard, for each way of keeping a program apart that works here."""
    chosen = MODES[request.param](tmp_path)
    if any(best_barrier([name]) != name for name in chosen.get("barriers", ())):
        pytest.skip(f"no {request.param} on this machine")
    if "files" in chosen and not restricts_files():
        pytest.skip("no Landlock on this machine")
    return chosen


def run(code: str, folder: Path, *, limits: Limits | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
    command = guarded([PYTHON.path, "-I", "-S", "-c", code], limits=limits or Limits(), **more)
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def reported(folder: Path, **more: Any) -> dict[str, Any]:
    done = run(REPORT, folder, **more)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


# --- limits and rights ---


def test_each_limit_is_set_and_cannot_be_raised(tmp_path: Path, mode: dict[str, Any]) -> None:
    limits = Limits(memory_bytes=900 * MB, cpu_s=30, file_bytes=7 * MB, processes=40)
    found = reported(tmp_path, limits=limits, **mode)["limits"]
    files = min(4096, max(256, 900 * MB // guard.most_bytes_of_socket()))
    assert {name: found[name] for name in ("CORE", "AS", "NOFILE", "CPU", "FSIZE")} == {
        "CORE": [0, 0],
        "AS": [900 * MB] * 2,
        "NOFILE": [files] * 2,
        "CPU": [30, 35],  # the signal at 30 may be caught; at 35 the system kills
        "FSIZE": [7 * MB] * 2,
    }


def test_without_limits_only_core_dumps_are_switched_off(tmp_path: Path) -> None:
    found = reported(tmp_path)["limits"]
    assert found.pop("CORE") == [0, 0]
    assert found == {name: list(resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))) for name in found}


def test_a_program_has_no_rights_but_roots_to_files_and_users_and_gains_none(
    tmp_path: Path, mode: dict[str, Any]
) -> None:
    found = reported(tmp_path, **mode)
    # CHOWN, DAC_OVERRIDE, FOWNER, SETGID, SETUID
    kept = 0b1100_1011 if os.getuid() == 0 else 0
    assert found["rights"] == {"CapEff": kept, "CapPrm": kept, "CapInh": 0, "CapAmb": 0}
    assert found["gains_no_rights"]


def test_a_program_that_gives_up_its_rights_itself_keeps_them_until_then(tmp_path: Path) -> None:
    found = reported(tmp_path, keeps_rights=True)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    assert found["rights"]["CapEff"] == int(status["CapEff"], 16)
    assert found["gains_no_rights"] == (status["NoNewPrivs"].strip() == "1")


def test_a_program_is_filtered_only_if_the_guard_is_to_install_the_filter(tmp_path: Path) -> None:
    assert reported(tmp_path, filtered_by="guard")["is_filtered"]
    ours = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    assert reported(tmp_path)["is_filtered"] == (ours["Seccomp"].strip() == "2")


def test_a_program_leads_its_own_session_goes_first_without_memory_and_hears_requests_to_stop(
    tmp_path: Path, mode: dict[str, Any]
) -> None:
    found = reported(tmp_path, **mode)
    assert found["leads_its_session"]
    assert found["goes_first"] == "1000"
    assert signal.SIGTERM not in found["blocked"]


def test_a_program_has_a_keyring_of_its_own(tmp_path: Path, mode: dict[str, Any]) -> None:
    if os.uname().machine not in ("x86_64", "aarch64"):
        pytest.skip("the number of the call is not known here")
    # KEYCTL_GET_KEYRING_ID of the session's; a kernel without keys has none.
    ours = ctypes.CDLL(None).syscall(250 if os.uname().machine == "x86_64" else 219, 0, -3, 1)
    if ours < 0:
        pytest.skip("the kernel keeps no keys")
    assert reported(tmp_path, **mode)["keyring"] not in (ours, -1)


# --- what it sees ---


def test_only_with_namespaces_are_its_processes_all_that_it_sees(tmp_path: Path, mode: dict[str, Any]) -> None:
    found = reported(tmp_path, **mode)
    if NAMESPACES in mode.get("barriers", ()):
        assert (found["processes"], found["parent"]) == ([1, 2], 1)
    else:
        assert os.getpid() in found["processes"]


@pytest.mark.skipif(best_barrier([NAMESPACES]) != NAMESPACES or not restricts_files(), reason="needs namespaces")
def test_with_namespaces_a_root_folder_has_the_named_paths_and_nothing_else(tmp_path: Path) -> None:
    for name in ("work", "seen", "hidden", "alone"):
        (tmp_path / name).mkdir()
    for name in ("one", "other"):
        (tmp_path / "alone" / name).write_text(name)
    note = tmp_path / "seen" / "note"
    note.write_text("seen")
    (tmp_path / "work" / "venv").mkdir()
    code = """
import json, os
# Landlock keeps a program from listing folders, and not from asking about a path.
print(json.dumps([os.getcwd(), [path for path in NAMES if os.path.lexists(path)], open("../seen/note").read()]))
print(open("../alone/one").read(), os.path.exists("../alone/other"))
for path in ("made", "venv/made", "../seen/made", "../made", "/made"):
    try:
        open(path, "w").close()
    except OSError:
        print(path)
"""
    files = rules(tmp_path / "work", readable=(
        str(note), str(tmp_path / "seen"), str(tmp_path / "work" / "venv"), str(tmp_path / "alone" / "one"),
        str(tmp_path / "missing"),
    ))  # fmt: skip
    top = {f"/{Path(path).parts[1]}" for path in (*files.readable, *files.writable) if Path(path).exists()}
    names = sorted({*map(str, Path("/").iterdir()), *map(str, tmp_path.iterdir()), "/.old-root"})
    done = run(f"NAMES = {names}\n{code}", tmp_path / "work", files=files, barriers=(NAMESPACES,))
    first, alone, *others = done.stdout.splitlines()
    seen = sorted(top | {"/proc", *(str(tmp_path / name) for name in ("alone", "seen", "work"))})
    assert alone == "one False"
    assert json.loads(first) == [str(tmp_path / "work"), seen, "seen"], done.stderr
    assert others == ["venv/made", "../seen/made", "../made", "/made"]
    assert (tmp_path / "work" / "made").exists()
    assert [path.name for path in (tmp_path / "work" / "venv").iterdir()] == []


@pytest.mark.skipif(best_barrier([NAMESPACES]) != NAMESPACES or not restricts_files(), reason="needs namespaces")
def test_a_program_whose_folder_it_may_not_see_starts_in_the_root_folder(tmp_path: Path) -> None:
    for name in ("work", "elsewhere"):
        (tmp_path / name).mkdir()
    found = reported(tmp_path / "elsewhere", files=rules(tmp_path / "work"), barriers=(NAMESPACES,))
    assert found["folder"] == "/"


def test_every_network_has_a_loopback_device_and_without_the_network_no_other(
    tmp_path: Path, mode: dict[str, Any]
) -> None:
    may_connect = "files" not in mode or NAMESPACES in mode.get("barriers", ())
    assert reported(tmp_path, **mode)["loopback"] is may_connect


@pytest.mark.skipif(not restricts_files(), reason="needs Landlock")
@pytest.mark.parametrize("apart", [(), (NAMESPACES,)], ids=["landlock", "namespaces"])
@pytest.mark.parametrize("network", [False, True], ids=["without the network", "with it"])
def test_a_server_of_the_host_is_reached_only_by_a_program_that_may_use_the_network(
    tmp_path: Path, apart: tuple[str, ...], network: bool
) -> None:
    if apart and best_barrier([*apart]) != NAMESPACES:
        pytest.skip("no namespaces on this machine")
    import socket

    code = "import socket; socket.create_connection(('127.0.0.1', {port})); print('reached')"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = run(code.format(port=port), tmp_path, files=rules(tmp_path, network=network), barriers=apart)
    assert (done.stdout == "reached\n") is network, done.stderr


# --- its end ---

# The second process holds standard output: who reads to its end waits for all of them.
STARTS = """
import os, subprocess, sys, time
subprocess.Popen(["sleep", "600"], start_new_session=True)
print("up", flush=True)
{then}
"""
STARTER = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:]).pid, flush=True); sys.stdin.read()"


def all_ended(process: subprocess.Popen[str]) -> bool:
    """Wait until no process holds the standard output any more."""
    try:
        process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def test_with_a_program_ends_what_it_started(tmp_path: Path, mode: dict[str, Any]) -> None:
    left = tmp_path / "left"
    left.mkdir()
    done = run(STARTS.format(then="sys.exit(3)"), tmp_path, leftovers=str(left), **mode)
    assert (done.returncode, done.stdout) == (3, "up\n"), done.stderr
    assert left.is_dir()  # its starter is here to remove it


@pytest.mark.parametrize(
    "then", ["time.sleep(600)", "import signal; signal.signal(15, signal.SIG_IGN); time.sleep(600)"]
)
def test_a_request_to_stop_ends_all_even_a_program_that_ignores_it(
    tmp_path: Path, mode: dict[str, Any], then: str
) -> None:
    command = guarded([PYTHON.path, "-I", "-S", "-c", STARTS.format(then=then)], limits=Limits(), **mode)
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        process.terminate()
        assert all_ended(process)
    assert process.returncode == 128 + signal.SIGKILL


def test_all_end_with_the_process_that_started_them_and_the_leftovers_go(tmp_path: Path, mode: dict[str, Any]) -> None:
    left, kept = tmp_path / "left", tmp_path / "kept"
    for folder in (left, kept):
        folder.mkdir()
        (folder / "file").touch()
    program = [PYTHON.path, "-I", "-S", "-c", STARTS.format(then="time.sleep(600)")]
    command = guarded(program, limits=Limits(), leftovers=str(left), **mode)
    starter = [sys.executable, "-c", STARTER, *command]
    with subprocess.Popen(starter, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert sorted(process.stdout.readline().strip() == "up" for _ in range(2)) == [False, True]
        process.kill()
        assert all_ended(process)
    assert [folder.exists() for folder in (left, kept)] == [False, True]


def test_a_guard_that_is_killed_takes_its_program_along(tmp_path: Path, mode: dict[str, Any]) -> None:
    # Without namespaces and rules for files, nothing watches a guard: what the program started is then left.
    takes_all = "files" in mode or NAMESPACES in mode.get("barriers", ())
    code = (
        STARTS.format(then="time.sleep(600)") if takes_all else "import time; print('up', flush=True); time.sleep(600)"
    )
    command = guarded([PYTHON.path, "-I", "-S", "-c", code], limits=Limits(), **mode)
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        process.kill()
        assert all_ended(process)


def test_an_interrupt_ends_no_guard(tmp_path: Path, mode: dict[str, Any]) -> None:
    # A terminal sends it to the whole group; the program has a group of its own.
    code = "import sys; print('up', flush=True); print(sys.stdin.read())"
    command = guarded([PYTHON.path, "-I", "-S", "-c", code], limits=Limits(), **mode)
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate("goes on", timeout=PATIENCE_S)
    assert (said, process.returncode) == ("goes on\n", 0)


def test_the_end_of_other_processes_is_not_the_programs_and_leaves_no_zombies(
    tmp_path: Path, mode: dict[str, Any]
) -> None:
    # An orphan is adopted by the guard, or by the first process of the namespace, and ends first. Not reaped, it would
    # count as one of the processes that the program may have.
    code = """
import os, sys, time
readable, writable = os.pipe()
if os.fork() == 0:
    orphan = os.fork()
    if orphan == 0:
        os._exit(9)
    os.write(writable, str(orphan).encode())
    os._exit(8)
os.wait()
orphan, give_up = os.read(readable, 20).decode(), time.monotonic() + 30
while os.path.exists(f"/proc/{orphan}") and time.monotonic() < give_up:
    time.sleep(0.01)
print("left" if os.path.exists(f"/proc/{orphan}") else "goes on")
sys.exit(5)
"""
    done = run(code, tmp_path, **mode)
    assert (done.stdout, done.returncode) == ("goes on\n", 5)


# --- signals ---

SIGNALS_OUTSIDE = """
import os, signal, sys
try:
    os.kill(int(sys.argv[1]), 0)
except OSError as error:
    print(type(error).__name__)
else:
    print("allowed")
os.kill(os.getpid(), signal.SIGWINCH)  # ignored
"""


def test_behind_a_barrier_a_program_signals_no_process_outside(tmp_path: Path, mode: dict[str, Any]) -> None:
    if not mode:
        pytest.skip("limits alone keep nothing apart")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as outside:
        done = run(SIGNALS_OUTSIDE.replace("sys.argv[1]", str(outside.pid)), tmp_path, **mode)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.strip() in ("PermissionError", "ProcessLookupError")
        assert outside.stdin is not None
        outside.stdin.close()
