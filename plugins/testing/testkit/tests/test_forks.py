"""A program that runs as a fork behaves as one with an interpreter of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackfield_testkit.forks import Forks, output_of

SHARED = "wave"  # a module of the standard library that nothing else imports here
PROGRAMS = {
    "its words and its streams": "import sys; print(*sys.argv[1:]); print('aside', file=sys.stderr)",
    "its place and its environment": "import os; print(os.path.basename(os.getcwd()), os.environ['TIDE'])",
    "an error": "import os\nprint('before')\n1 / 0",
    "a status": "import sys; sys.exit(3)",
    "a sentence at its end": "import sys; sys.exit('it is over')",
    "no status": "raise SystemExit",
    "a signal": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "what it leaves for its end": "import atexit; atexit.register(print, 'at the end'); print('now')",
    "a thread that outlives it": "import threading; threading.Timer(0.05, print, ['later']).start()",
    "a path for its imports": "import sea; print(sea.LEVEL)",
    "itself as a module": "import sys; word = 'high'; print(sys.modules['__main__'].word, __name__)",
    "bytes that are no text": "import os; os.write(1, bytes([0x74, 0xff]))",
}


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    """Forks that share the import of a module."""
    with Forks(f"import {SHARED}") as made:
        yield made


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment with a variable, and a module on the path."""
    (tmp_path / "sea.py").write_text("LEVEL = 'low'")
    return {"PATH": os.environ["PATH"], "TIDE": "neap", "PYTHONPATH": str(tmp_path)}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_fork_says_and_gives_what_a_new_interpreter_does(
    forks: Forks, env: dict[str, str], tmp_path: Path, program: str
) -> None:
    command = [sys.executable, "-c", program, "one", "two words"]
    alone = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=False)
    forked = forks.run(program, "one", "two words", cwd=tmp_path, env=env)
    assert forked.returncode == alone.returncode
    assert forked.stdout == alone.stdout.decode(errors="surrogateescape")
    # A traceback has a line of the server's besides.
    assert forked.stderr.splitlines()[-1:] == alone.stderr.decode().splitlines()[-1:]


@pytest.mark.parametrize(
    ("given", "tide"), [(None, "spring"), ({}, "none"), ({"TIDE": "neap"}, "neap")], ids=["this one", "empty", "other"]
)
@pytest.mark.parametrize("are_possible", [True, False], ids=["a fork", "an interpreter"])
def test_a_program_has_the_environment_it_is_given_even_if_that_is_empty(
    monkeypatch: pytest.MonkeyPatch, are_possible: bool, given: dict[str, str] | None, tide: str
) -> None:
    monkeypatch.setattr(Forks, "are_possible", Forks.are_possible and are_possible)
    monkeypatch.setenv("TIDE", "spring")
    before = f"possible = {are_possible}"  # forks of another one may exist
    assert output_of("import os; print(os.environ.get('TIDE', 'none'))", env=given, before=before) == tide


def test_a_command_for_shells_has_their_streams_and_its_words(
    forks: Forks, env: dict[str, str], tmp_path: Path
) -> None:
    forks.write_command(tmp_path / "shout", "import sys; print(sys.stdin.read().upper(), *sys.argv[1:]); sys.exit(7)")
    line = "echo hello | ./shout 'two words' | cat; echo ${PIPESTATUS[1]}"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "HELLO\n two words\n7\n"


def test_only_what_was_imported_before_is_shared(forks: Forks, env: dict[str, str], tmp_path: Path) -> None:
    program = (
        f"import sys; print('{SHARED}' in sys.modules, 'sea' in sys.modules, 'left' in globals()); import sea; left = 1"
    )
    said = [forks.run(program, cwd=tmp_path, env=env).stdout for _ in range(2)]
    assert said == ["True False False\n"] * 2


def test_a_folder_stands_in_place_of_the_packages(forks: Forks, env: dict[str, str], tmp_path: Path) -> None:
    program = "import sea, importlib.util as u, sys; print(sea.LEVEL, u.find_spec('pytest'), sys.executable)"
    done = forks.run(program, cwd=tmp_path, env={**env, "PYTHONPATH": ""}, site=tmp_path, executable="/a/bin/python")
    assert done.stdout == "low None /a/bin/python\n", done.stderr


def test_a_program_whose_time_is_over_is_ended_and_the_next_one_runs(
    forks: Forks, env: dict[str, str], tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    os.mkfifo(kept)
    # Whoever opens the pipe waits for a writer, and then for the end of all writers: that of the program.
    program = f"import time; file = open({str(kept)!r}, 'w'); file.write('begun'); file.flush(); time.sleep(600)"
    reader = subprocess.Popen(["cat", str(kept)], stdout=subprocess.PIPE, text=True)
    with pytest.raises(subprocess.TimeoutExpired):
        forks.run(program, cwd=tmp_path, env=env, timeout_s=1)
    assert reader.communicate(timeout=60)[0] == "begun"
    assert forks.run("print('well')", cwd=tmp_path, env=env).stdout == "well\n"


def test_the_server_ends_with_whoever_started_it(tmp_path: Path) -> None:
    program = """
import os
from jackfield_testkit.forks import Forks, output_of

forks = Forks("")
print(forks.address)
os.kill(os.getpid(), 9)
"""
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    # It returns when its standard error is closed, which the server has open, too.
    command = [sys.executable, "-uc", program]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, timeout=60, check=False)
    assert done.returncode == -9
    assert not Path(done.stdout.decode().strip()).parent.exists()


def test_a_program_on_a_terminal_has_it_as_its_own_and_hears_its_keys(
    forks: Forks, env: dict[str, str], tmp_path: Path
) -> None:
    program = """
import sys
try:
    print(sys.stdin.isatty(), input("name? "))
    open("/dev/tty").read()
except KeyboardInterrupt:
    print("heard")
"""
    ours, theirs = os.openpty()
    with forks.start_on(theirs, program, cwd=tmp_path, env=env) as fork, os.fdopen(ours, "r+b", buffering=0) as keys:
        os.close(theirs)
        said = b""
        for awaited, typed in ((b"name? ", b"Ada\n"), (b"True Ada\r\n", b"\x03"), (b"heard\r\n", b"")):
            while awaited not in said:
                said += keys.read(1024)
            keys.write(typed)
        assert fork.wait(60) == 0


def test_the_processes_of_a_run_share_a_server_that_ends_with_the_last_of_them(tmp_path: Path) -> None:
    program = """
import os, sys
from pathlib import Path
from jackfield_testkit.forks import share_forks, shared_forks

share_forks(Path.cwd() / "run")
for _ in sys.stdin:
    forks = shared_forks("")
    done = forks.run("import os; print(os.getppid())", cwd=Path.cwd(), env=os.environ)
    print(forks.address, done.stdout.strip(), flush=True)
"""

    def start() -> subprocess.Popen[str]:
        env = {**os.environ, "TMPDIR": str(tmp_path)}
        command = [sys.executable, "-uc", program]
        return subprocess.Popen(
            command, cwd=tmp_path, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def ask(process: subprocess.Popen[str]) -> str:
        assert process.stdin
        assert process.stdout
        process.stdin.write("\n")
        return process.stdout.readline()

    def end(process: subprocess.Popen[str]) -> None:
        process.kill()
        process.communicate()

    first, second = start(), start()
    server = ask(first)
    assert ask(second) == server
    end(first)
    assert ask(second) == server
    address = Path(server.partition(" ")[0])
    end(second)
    while address.parent.exists():  # its end takes a moment, and the time-out of the test is the limit
        time.sleep(0.01)
    later = start()
    assert ask(later) not in ("", server), "it has one of its own"
    end(later)
