"""Which sandbox is taken, what is said when there is none, and how a program is run to its end."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import PluginError, SandboxError
from jackfield.plugins import Known, PluginHost, SandboxSpec, hook
from jackfield.sandboxes import (
    CodeResult,
    CodeSandbox,
    Limits,
    Program,
    ProgramSandbox,
    Protection,
    Sandbox,
    choose_sandbox,
    needs_approval,
)
from jackfield.sandboxes import _choosing as choosing
from jackfield.settings import Settings


class Weak(ProgramSandbox):
    def protection(self) -> Protection:
        return Protection("weak", frozenset({"memory"}))

    def command(self, program: Program) -> list[str]:
        return [*program.argv]


class Strong(Weak):
    def protection(self) -> Protection:
        return Protection("strong", frozenset({"memory", "files"}))


class Aaa(Strong):
    pass


class Missing(Weak):
    def protection(self) -> Protection:
        raise SandboxError("the program 'jail' is not installed")


class Calculates(CodeSandbox):
    def protection(self) -> Protection:
        return Protection("calculates", frozenset({"files", "network", "processes"}))

    async def run_code(self, code: str, **_: Any) -> CodeResult:
        return CodeResult(value=code)


class Offers:
    def __init__(self, *classes: type[Sandbox]) -> None:
        self.classes = classes

    @hook.sandboxes
    def sandboxes(self) -> list[SandboxSpec]:
        return [
            SandboxSpec(
                name=one.__name__.lower(),
                target=f"{__name__}:{one.__name__}",
                runs_programs=issubclass(one, ProgramSandbox),
                runs_code=issubclass(one, CodeSandbox),
            )
            for one in self.classes
        ]


def host(*classes: type[Sandbox]) -> PluginHost:
    made = PluginHost(Settings(), paths=())
    if classes:
        made.register(Offers(*classes))
    return made


@pytest.mark.parametrize("order", [(Weak, Strong, Missing), (Missing, Strong, Weak)], ids=["", "reversed"])
def test_the_best_that_works_is_taken(order: Any) -> None:
    assert type(choose_sandbox("auto", ProgramSandbox, host=host(*order))) is Strong


def test_of_two_that_cover_as_much_ours_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    both = host(Aaa, Strong)
    assert type(choose_sandbox("auto", ProgramSandbox, host=both)) is Aaa
    ours = next(row.distribution for row, _ in both.specs("sandbox", SandboxSpec))
    monkeypatch.setattr(choosing, "known_components", lambda: {"sandbox.strong": Known(ours, "")})
    assert type(choose_sandbox("auto", ProgramSandbox, host=both)) is Strong


def test_only_what_has_the_ability_is_taken() -> None:
    both = host(Strong, Calculates)
    assert type(choose_sandbox("auto", ProgramSandbox, host=both)) is Strong
    assert type(choose_sandbox("auto", CodeSandbox, host=both)) is Calculates
    with pytest.raises(SandboxError, match="'calculates' is a CodeSandbox; expected a ProgramSandbox"):
        choose_sandbox("calculates", ProgramSandbox, host=both)


def test_auto_takes_none_that_leaves_files_open_and_one_that_is_named_needs_approval() -> None:
    weak = host(Weak)
    with pytest.raises(
        SandboxError, match="weak: does not protect your files on this machine; to use it anyway, set sandbox='weak'"
    ):
        choose_sandbox("auto", ProgramSandbox, host=weak)
    assert type(choose_sandbox("weak", ProgramSandbox, host=weak)) is Weak
    assert needs_approval("weak", ProgramSandbox, host=weak)


@pytest.mark.parametrize(
    ("name", "is_needed"), [("auto", False), ("none", True), ("strong", False), ("missing", True), ("unknown", True)]
)
def test_code_needs_approval_unless_its_sandbox_keeps_it_from_files(name: str, is_needed: bool) -> None:
    assert needs_approval(name, ProgramSandbox, host=host(Strong, Missing)) is is_needed


def test_where_none_works_the_error_says_why_and_how_to_do_without() -> None:
    with pytest.raises(SandboxError) as caught:
        choose_sandbox("auto", ProgramSandbox, host=host(Missing))
    assert "missing: the program 'jail' is not installed" in str(caught.value)
    assert "sandbox='none'" in str(caught.value)
    assert "jackfield-bubblewrap" in str(caught.value)


def test_a_named_one_that_does_not_work_is_an_error_whatever_else_would() -> None:
    with pytest.raises(SandboxError, match="'jail' is not installed"):
        choose_sandbox("missing", ProgramSandbox, host=host(Missing, Strong))
    with pytest.raises(PluginError, match="nothing"):
        choose_sandbox("nothing", ProgramSandbox, host=host(Strong))


def test_without_one_there_is_a_warning_once(caplog: pytest.LogCaptureFixture) -> None:
    choosing._warn.cache_clear()
    with caplog.at_level(logging.WARNING, logger="jackfield"):
        for _ in range(2):
            assert choose_sandbox("none", ProgramSandbox, host=host(Strong)) is None
    (record,) = [one for one in caplog.records if "sandbox" in one.getMessage()]
    assert "your full permissions" in record.getMessage()


def test_one_that_leaves_something_open_is_used_with_a_warning_once(caplog: pytest.LogCaptureFixture) -> None:
    choosing._warn.cache_clear()
    with caplog.at_level(logging.WARNING, logger="jackfield"):
        for _ in range(2):
            choose_sandbox("auto", ProgramSandbox, host=host(Strong))
        choose_sandbox("auto", CodeSandbox, host=host(Calculates))
    (record,) = [one for one in caplog.records if "sandbox" in one.getMessage()]
    assert (
        "does not provide full protection on this machine: strong: the code cannot reach files" in record.getMessage()
    )


def test_what_a_sandbox_protects_from_is_one_sentence() -> None:
    said = str(Protection("jail", frozenset({"files", "network", "cpu", "memory", "file_size"})))
    assert said == (
        "jail: the code cannot reach files other than its own or use the network; it can see or signal other "
        "processes; limited: memory of each process, CPU time and the size of files; not limited: memory of all "
        "processes together and the number of processes"
    )


# --- running a program to its end ---


def run(code: str, folder: Path, **more: Any) -> Any:
    limits = Limits(wall_s=more.pop("wall_s", None))
    program = Program(argv=(sys.executable, "-c", code), work_dir=str(folder), env={"MINE": "1"}, limits=limits)
    return asyncio.run(Weak().run(program, **more))


def test_a_program_gets_its_input_and_its_output_comes_back(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd(), os.environ['MINE'], sys.stdin.read()); sys.exit('no')"
    done = run(code, tmp_path, stdin=b"given")
    assert done.stdout.decode().split() == [str(tmp_path), "1", "given"]
    assert (done.stderr, done.exit_code, done.is_cut, done.timed_out) == (b"no\n", 1, False, False)


def test_long_output_is_cut_and_the_program_goes_on(tmp_path: Path) -> None:
    done = run("print('a' * 5_000_000); import sys; print('b' * 3, file=sys.stderr)", tmp_path, output_bytes=10)
    assert (done.stdout, done.stderr, done.exit_code, done.is_cut) == (b"a" * 10, b"bbb\n", 0, True)


def test_input_that_is_not_read_is_no_error(tmp_path: Path) -> None:
    assert run("pass", tmp_path, stdin=b"x" * 5_000_000).exit_code == 0


def test_a_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    done = run("import time; time.sleep(600)", tmp_path, wall_s=0.1)
    assert (done.timed_out, done.exit_code) == (True, 128 + 15)
