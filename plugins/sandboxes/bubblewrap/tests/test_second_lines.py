"""What bubblewrap itself does, with no guard around it: a second line that must hold if the first one falls."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from jackfield.errors import SandboxError
from jackfield.sandboxes import Program
from jackfield_bubblewrap.bubblewrap import Bubblewrap

NAMESPACES = ("pid", "ipc", "uts", "mnt", "net")
PATIENCE_S = 30


def bare_command(work_dir: Path, *argv: str) -> Sequence[str]:
    """The command of bubblewrap alone: the sandbox's, without the guard in front of it."""
    sandbox = Bubblewrap()
    try:
        sandbox.protection()
    except SandboxError as error:
        pytest.skip(str(error))
    work_dir.chmod(0o777)  # root's programs run as another user, and the guard is what gives the folder to it
    program = Program(argv=argv, work_dir=str(work_dir), env={"PATH": "/usr/bin:/bin"})
    command = sandbox.command(program)
    [start] = [index for index, word in enumerate(command) if Path(word).name == "bwrap"]
    return command[start:]


def said(work_dir: Path, code: str) -> str:
    command = bare_command(work_dir, sys.executable, "-I", "-c", code)
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_program_cannot_reach_the_terminal_of_its_caller(tmp_path: Path) -> None:
    # In a session of the caller, its terminal takes characters from the program as if they were typed (TIOCSTI).
    # The number of a session that began outside is 0 inside.
    assert int(said(tmp_path, "import os; print(os.getsid(0))")) > 0


@pytest.mark.parametrize("kind", NAMESPACES)
def test_a_program_has_namespaces_of_its_own(tmp_path: Path, kind: str) -> None:
    inside = said(tmp_path, f"import os; print(os.readlink('/proc/self/ns/{kind}'))")
    assert inside.startswith(f"{kind}:[")
    assert inside != str(Path(f"/proc/self/ns/{kind}").readlink())


def test_a_program_has_no_rights_of_root(tmp_path: Path) -> None:
    status = said(tmp_path, "print(open('/proc/self/status').read())")
    assert {line.split()[1] for line in status.splitlines() if line.startswith(("CapEff", "CapPrm"))} == {"0" * 16}


def test_a_program_ends_with_the_process_that_started_bubblewrap(tmp_path: Path) -> None:
    code = "import time\nopen('begun', 'w').close()\nwhile True: time.sleep(0.05); open('beat', 'a').write('x')"
    command = bare_command(tmp_path, sys.executable, "-I", "-c", code)
    starter = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:]).pid, flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", starter, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout
        outer = int(parent.stdout.readline())
        wait_until((tmp_path / "beat").exists)
        parent.kill()
    wait_until(lambda: not is_running(outer))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(happened: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.02)
