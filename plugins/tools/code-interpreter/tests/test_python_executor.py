"""One short program at a time: what comes of it, and that nothing of it stays."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jackfield import call_tool
from jackfield.errors import ToolArgumentError, ToolServiceError
from jackfield.plugins import PluginHost, SandboxSpec, hook
from jackfield.sandboxes import (
    RISKS,
    CodeResult,
    CodeSandbox,
    Finished,
    Limits,
    Program,
    ProgramSandbox,
    Protection,
)
from jackfield.settings import Settings
from jackfield.tools import ToolResult
from jackfield_code_interpreter import python_executor
from jackfield_code_interpreter.python_executor import PythonExecutor

_UNLIMITED = Limits()
BOTH = pytest.mark.parametrize("sandbox", ["none", "monty"])


def ran(sandbox: str, code: str, **cfg: Any) -> ToolResult:
    result = call_tool(PythonExecutor({"timeout": 120, **cfg}, sandbox=sandbox), {"code": code})
    assert isinstance(result, ToolResult)
    return result


@BOTH
@pytest.mark.parametrize(
    ("code", "output", "report"),
    [
        ("print(2)", "2", "Done"),
        ("x = 2 ** 10\nx", "1024", "Done"),
        ("print('a')\n'b'", "a\n'b'", "Done"),
        ("```python\n6 * 7\n```", "42", "Done"),
        ("", "", "Done"),
        ("'潮汐'", "'潮汐'", "Done"),
    ],
)
def test_a_program_gives_what_it_prints_and_the_value_of_its_last_line(
    sandbox: str, code: str, output: str, report: str
) -> None:
    result = ran(sandbox, code)
    assert (result.content, result.metadata["report"]) == (output, report)


@BOTH
def test_what_goes_wrong_is_told_after_what_was_printed(sandbox: str) -> None:
    result = ran(sandbox, "print('before')\n1 / 0")
    assert result.content.startswith("before\nTraceback")
    assert "line 2" in result.content
    assert result.metadata["report"] == "ZeroDivisionError: division by zero"
    assert "SyntaxError" in ran(sandbox, "x = (").metadata["report"]
    assert "Error" in ran(sandbox, "input()").metadata["report"]
    assert "TimeoutError" in ran(sandbox, "while True: pass", timeout=0.5).metadata["report"]


@BOTH
def test_nothing_is_kept_and_a_long_output_is_cut_in_its_middle(sandbox: str) -> None:
    ran(sandbox, "kept = 1")
    assert "NameError" in ran(sandbox, "kept").metadata["report"]
    shown = ran(sandbox, "print('a' + 'x' * 1000 + 'z')", max_output_chars=20).content
    assert shown == "axxxxxxxxx\n[… 982 characters omitted …]\nxxxxxxxxxz"


def test_a_program_sees_nothing_of_the_process_that_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "SECRET-OF-THE-HOST")
    result = ran("none", "import os\nprint(os.getcwd())\nopen('made', 'w').write('x')\ndict(os.environ)")
    assert "SECRET-OF-THE-HOST" not in result.content
    assert not Path(result.content.splitlines()[0]).exists(), "its folder is still there"


def test_how_a_program_exits_is_known() -> None:
    assert ran("none", "raise SystemExit(3)").metadata["report"] == "the program exited with code 3"
    assert ran("none", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)").metadata["report"].endswith("137")


@pytest.mark.parametrize(
    "code", ["(" * 100_000, "-" * 5000 + "1", "x = " + "[" * 5000 + "]" * 5000, "\0", "a = 1\n" * 900]
)
@BOTH
def test_any_code_ends_in_words(sandbox: str, code: str) -> None:
    assert len(ran(sandbox, code, max_output_chars=500).content) < 1200


def test_code_of_ten_megabytes_is_run_or_refused_in_words() -> None:
    code = "x = 1\n" * 1000 + "#" * 10_000_000 + "\nx"
    assert "longer than 100,000 characters" in ran("monty", code).metadata["report"]
    assert ran("none", code, memory_mb=None).content == "1"


@pytest.mark.parametrize("code", [["1"], None, "'\ud800'"])
def test_what_is_not_code_is_refused(code: object) -> None:
    with pytest.raises(ToolArgumentError):
        call_tool(PythonExecutor(sandbox="none"), {"code": code})


def test_each_program_needs_a_yes_only_where_nothing_protects_from_it() -> None:
    assert PythonExecutor(sandbox="none").safety().needs_approval
    assert not PythonExecutor(sandbox="monty").safety().needs_approval
    assert not PythonExecutor(sandbox="none", approval="never").safety().needs_approval


def test_the_best_sandbox_may_be_one_that_runs_code_only() -> None:
    tool = PythonExecutor()
    tool.host = PluginHost(Settings(allow=frozenset({"jackfield-monty"})))
    assert call_tool(tool, {"code": "1 + 1"}).metadata["sandbox"].startswith("monty: the code cannot reach files")


def test_without_a_sandbox_nothing_is_run_and_the_model_learns_why() -> None:
    tool = PythonExecutor()
    tool.host = PluginHost(Settings(allow=frozenset({"jackfield-code-interpreter"})))
    with pytest.raises(ToolServiceError, match="cannot run the code: no sandbox is available to run programs"):
        call_tool(tool, {"code": "1 + 1"})


# --- what a sandbox gets ---


class Jail(ProgramSandbox):
    """Notes its programs, and runs none."""

    runs: list[tuple[Program, bytes, int]] = []  # noqa: RUF012 - of all its instances
    end = Finished(0, b"", b"")

    def protection(self) -> Protection:
        return Protection("jail", frozenset(RISKS))

    def command(self, program: Program) -> list[str]:
        raise AssertionError(program)

    async def run(self, program: Program, *, stdin: bytes = b"", output_bytes: int = 1 << 20) -> Finished:
        assert Path(program.work_dir).is_dir()
        self.runs.append((program, stdin, output_bytes))
        return self.end


class Calculator(CodeSandbox):
    """Notes its code, and runs none."""

    runs: list[tuple[str, Limits]] = []  # noqa: RUF012 - as above

    def protection(self) -> Protection:
        return Protection("calculator", frozenset(RISKS))

    async def run_code(
        self, code: str, *, values: Mapping[str, object] | None = None, limits: Limits = _UNLIMITED
    ) -> CodeResult:
        self.runs.append((code, limits))
        return CodeResult(value=[1], stdout="printed\n")


class Offers:
    @hook.sandboxes
    def sandboxes(self) -> list[SandboxSpec]:
        return [
            SandboxSpec(name="jail", target="jails:Jail"),
            SandboxSpec(name="calculator", target="jails:Calculator", runs_programs=False, runs_code=True),
        ]


@pytest.fixture(autouse=True)
def _nothing_was_run(monkeypatch: pytest.MonkeyPatch) -> None:
    # The name of this module has a hyphen in it, which a target may not have.
    monkeypatch.setitem(sys.modules, "jails", sys.modules[__name__])
    monkeypatch.setattr(Jail, "runs", [])
    monkeypatch.setattr(Calculator, "runs", [])


def executed(code: Any = "1 + 1", **cfg: Any) -> ToolResult:
    tool = PythonExecutor(cfg)
    tool.host = PluginHost(Settings(), paths=())
    tool.host.register(Offers())
    result = call_tool(tool, {"code": code} if isinstance(code, str) else code)
    assert isinstance(result, ToolResult)
    return result


def test_a_program_is_the_input_of_this_python_in_a_folder_that_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    result = executed("6 * 7", timeout=9, memory_mb=64)
    ((program, stdin, output_bytes),) = Jail.runs
    assert (program.argv[:3], stdin) == ((sys.executable, "-I", "-c"), b"6 * 7")
    assert program.limits == Limits(memory_bytes=64 << 20, wall_s=9)
    folder = program.work_dir
    assert (program.leftovers, program.writable, program.readable, program.network) == (folder, (), (), False)
    assert program.env == {"HOME": folder, "LANG": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1"}
    assert not Path(folder).exists()
    assert output_bytes == 1 << 20
    assert result.metadata == {"report": "Done", "sandbox": str(Jail().protection())}
    executed(memory_mb=None)
    assert Jail.runs[1][0].limits == Limits(wall_s=20)


def test_a_sandbox_that_runs_code_gets_the_code_and_the_limits() -> None:
    result = executed("```python\n6 * 7\n```", sandbox="calculator", timeout=3)
    assert Calculator.runs == [("6 * 7\n", Limits(memory_bytes=1024 << 20, wall_s=3))]
    assert (result.content, result.metadata["report"]) == ("printed\n[1]", "Done")
    assert Jail.runs == []


def test_of_both_kinds_the_one_that_runs_programs_is_taken() -> None:
    executed()
    assert (len(Jail.runs), Calculator.runs) == (1, [])


@pytest.mark.parametrize(
    ("end", "content", "report"),
    [
        (Finished(0, b"a\n\n", b"noise"), "a", "Done"),
        (Finished(0, b"\xff", b""), "\ufffd", "Done"),
        (Finished(1, b"a", b"Traceback\nValueError: x\n"), "a\nTraceback\nValueError: x", "ValueError: x"),
        (Finished(3, b"", b" "), "the program exited with code 3", "the program exited with code 3"),
        (
            Finished(143, b"a", b"noise", timed_out=True),
            "a\nTimeoutError: the code was terminated after 20 s",
            "TimeoutError: the code was terminated after 20 s",
        ),
    ],
    ids=["output", "bytes", "error", "exit code", "time"],
)
def test_each_end_of_a_program_is_told(
    end: Finished, content: str, report: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Jail, "end", end)
    result = executed()
    assert (result.content, result.metadata["report"]) == (content, report)


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (20, "a" * 20),
        (21, f"{'a' * 10}\n[… 1 characters omitted …]\n{'a' * 10}"),
        (2000, f"{'a' * 10}\n[… 1,980 characters omitted …]\n{'a' * 10}"),
    ],
)
def test_each_part_of_a_result_has_its_limit(size: int, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Jail, "end", Finished(1, b"a" * size, b"a" * size))
    assert executed(max_output_chars=20).content == f"{shown}\n{shown}"


def test_without_a_sandbox_a_guard_has_the_limits_and_no_claim_is_made_of_memory() -> None:
    unprotected = python_executor._Unprotected()
    assert unprotected.protection() == Protection("none", frozenset({"cpu", "file_size"}))
    limits = Limits(memory_bytes=1 << 26, wall_s=9)
    command = unprotected.command(Program(argv=("work",), work_dir="/", limits=limits, leftovers="/srv/left"))
    plan = json.loads(command[4])
    assert (plan["limits"], plan["barriers"]) == ({"memory_bytes": 1 << 26}, ["namespaces", "landlock"])
    assert (plan["leftovers"], command[5:]) == ("/srv/left", ["work"])
