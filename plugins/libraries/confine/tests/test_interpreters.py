"""An interpreter is found however it is named, and with all that it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jackfield.errors import SandboxError
from jackfield_confine.interpreters import find_python, this_python


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with nothing in it."""
    folder = tmp_path_factory.mktemp("project") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(folder)], check=True)
    return folder


def test_a_relative_path_is_absolute_and_stays_that_of_its_environment(
    venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (venv.parent / "work").mkdir(exist_ok=True)
    monkeypatch.chdir(venv.parent / "work")
    interpreter = find_python("../venv/bin/python")
    assert interpreter.path == str(venv / "bin" / "python")
    assert str(venv) in interpreter.readable
    assert interpreter.path not in interpreter.readable, "it is below its environment"
    assert len({*interpreter.readable}) == len(interpreter.readable)


def test_a_name_is_looked_up_on_the_path(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(venv / "bin"))
    assert find_python("python").path == str(venv / "bin" / "python")


def test_a_tilde_is_the_home(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(venv.parent))
    assert find_python("~/venv/bin/python").path == str(venv / "bin" / "python")


def test_the_links_on_the_way_to_an_interpreter_are_readable(
    venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "linked").symlink_to(venv)
    (tmp_path / "first").symlink_to("second")
    (tmp_path / "second").symlink_to(sys.executable)
    assert {str(tmp_path / "linked"), str(venv)} <= set(find_python(str(tmp_path / "linked/bin/python")).readable)
    assert {str(tmp_path / "first"), str(tmp_path / "second")} <= set(find_python(str(tmp_path / "first")).readable)


def test_a_script_that_starts_a_python_is_that_python(tmp_path: Path) -> None:
    shim = tmp_path / "python"  # as pyenv makes them
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    shim.chmod(0o755)
    assert find_python(str(shim)).path == sys.executable


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("./missing/python", r"missing/python cannot be started: No such file"),
        ("no-such-python", r"interpreter 'no-such-python' is not on the PATH"),
        ("/bin/echo", r"/bin/echo is not a Python interpreter"),
    ],
)
def test_what_is_no_interpreter_is_named(named: str, told: str) -> None:
    with pytest.raises(SandboxError, match=told):
        find_python(named)


def test_this_interpreter_may_have_been_started_by_a_relative_path(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(venv)
    monkeypatch.setattr(sys, "executable", "bin/python")
    assert this_python() == str(venv / "bin" / "python")
    assert find_python().path == str(venv / "bin" / "python")


def test_a_program_that_embeds_python_uses_that_of_its_prefix(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    monkeypatch.setattr(sys, "prefix", str(venv))
    assert this_python() == str(venv / "bin" / "python3")
    monkeypatch.setattr(sys, "prefix", str(venv / "missing"))
    monkeypatch.setattr(sys, "base_prefix", str(venv / "missing"))
    with pytest.raises(SandboxError, match="no Python interpreter of its own"):
        this_python()


@pytest.mark.parametrize(("script", "words"), [("echo no such thing >&2", "no such thing"), ("echo hello", "hello")])
def test_what_is_no_interpreter_is_named_with_what_it_says(tmp_path: Path, script: str, words: str) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    with pytest.raises(SandboxError, match=f"program is not a Python interpreter: {words}"):
        find_python(str(program))


def test_a_python_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackfield_confine.interpreters._ANSWERS_S", 0.05)
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    with pytest.raises(SandboxError, match=r"program did not respond within 0.05 s"):
        find_python(str(program))


def test_an_environment_is_found_though_its_packages_would_fail(venv: Path) -> None:
    packages = next((venv / "lib").glob("python*/site-packages"))
    (packages / "broken.pth").write_text("import sys; sys.exit('a package runs here')\n")
    try:
        assert str(venv) in find_python(str(venv / "bin/../bin/python")).readable
    finally:
        (packages / "broken.pth").unlink()
