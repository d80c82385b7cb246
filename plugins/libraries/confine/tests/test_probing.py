"""A probe of a sandbox gives its limits to the program, and reports why the program did not start."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import pytest

from jackfield.errors import SandboxError
from jackfield.sandboxes import RISKS, Program, ProgramSandbox, Protection
from jackfield_confine.barriers import NAMESPACES, best_barrier, restricts_files
from jackfield_confine.cgroups import MEMORY, PIDS, find_parents
from jackfield_confine.guarding import FileRules, guarded
from jackfield_confine.interpreters import find_python
from jackfield_confine.probing import probe_protection
from jackfield_confine.syscalls import filters_this_machine


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


TALKS = """
import json, socket, sys
asked = json.loads(sys.argv[1])
if SENDS:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", asked["udp"]))
print("started files network done")
"""


@pytest.mark.parametrize("sends", [True, False])
def test_a_datagram_that_arrives_is_the_network(sends: bool) -> None:
    class Talking(Fake):
        def command(self, program: Program) -> list[str]:
            return [*super().command(program), program.argv[-1]]

    assert probe_protection(Talking(TALKS.replace("SENDS", str(sends)))) == {"files"} | (
        set() if sends else {"network"}
    )


class Guarded(ProgramSandbox):
    """The guard with some of its barriers."""

    def __init__(self, **barriers: Any) -> None:
        super().__init__()
        self.barriers = barriers

    def protection(self) -> Protection:
        return Protection("guarded", probe_protection(self))

    def command(self, program: Program) -> list[str]:
        readable = ("/usr", "/bin", "/lib", "/lib64", "/etc", "/proc", *find_python().readable)
        files = FileRules(readable=readable, writable=(program.work_dir, "/dev/null")) if self.barriers else None
        return guarded(program.argv, limits=program.limits, files=files, **self.barriers)


HAS_GROUPS = {parent.controller for parent in find_parents()} == {MEMORY, PIDS}
needs_all = pytest.mark.skipif(
    best_barrier([NAMESPACES]) != NAMESPACES or not restricts_files() or not filters_this_machine() or not HAS_GROUPS,
    reason="needs namespaces, Landlock, a filter and a control group",
)
ALL: dict[str, Any] = {"barriers": (NAMESPACES,), "filtered_by": "guard", "is_grouped": True}


@needs_all
@pytest.mark.parametrize(
    ("barriers", "missing"),
    [
        (ALL, set()),
        ({**ALL, "barriers": ()}, {"processes"}),
        ({**ALL, "filtered_by": ""}, {"memory"}),
        ({**ALL, "barriers": (), "filtered_by": ""}, {"files", "network", "processes", "memory"}),
    ],
    ids=["all", "no namespaces", "no filter", "Landlock alone"],
)
def test_what_a_sandbox_lacks_is_found_out_by_trying(barriers: dict[str, Any], missing: set[str]) -> None:
    assert Guarded(**barriers).protection().covers == set(RISKS) - missing


@needs_all
def test_a_guard_alone_limits_processor_time_and_the_size_of_files() -> None:
    covered = Guarded().protection().covers
    # The number of processes is limited as well, except for root.
    assert covered - {"process_count"} == {"cpu", "file_size"}
