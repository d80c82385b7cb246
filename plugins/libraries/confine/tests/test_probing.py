"""A probe of a sandbox gives its limits to the program, and reports why the program did not start."""

from __future__ import annotations

import dataclasses
import sys

import pytest

from jackfield.errors import SandboxError
from jackfield.sandboxes import Program, ProgramSandbox, Protection
from jackfield_confine.probing import probe_protection


class Fake(ProgramSandbox):
    """Runs other code in place of the probe, without any limit."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.programs: list[Program] = []

    def protection(self) -> Protection:
        return Protection("fake", frozenset())

    def command(self, program: Program) -> list[str]:
        self.programs.append(program)
        return [sys.executable, "-I", "-S", "-c", self.code]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import sys; sys.exit('x' * 400 + ' no such namespace')", r"^x{282} no such namespace$"),
        ("raise SystemExit(7)", "^exit code 7$"),
        ("print('started')", "^exit code 0$"),
        ("print('files network done')", "^exit code 0$"),
    ],
)
def test_a_program_that_does_not_run_to_its_end_is_an_error_with_the_reason(code: str, reason: str) -> None:
    with pytest.raises(SandboxError, match=reason):
        probe_protection(Fake(code))


def test_each_limit_is_probed() -> None:
    fake = Fake("print('started files done')")
    assert probe_protection(fake) == {"files"}
    (program,) = fake.programs
    assert [name for name, limit in dataclasses.asdict(program.limits).items() if limit is None] == ["wall_s"]
