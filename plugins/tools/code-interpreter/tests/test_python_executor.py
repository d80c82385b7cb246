"""One short program at a time: what comes of it, and that nothing of it stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jackfield import call_tool
from jackfield.errors import ToolArgumentError, ToolServiceError
from jackfield.plugins import PluginHost
from jackfield.settings import Settings
from jackfield.tools import ToolResult
from jackfield_code_interpreter.python_executor import PythonExecutor

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
    assert shown == "axxxxxxxxx\n[… 982 characters left out …]\nxxxxxxxxxz"


def test_a_program_sees_nothing_of_the_process_that_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "SECRET-OF-THE-HOST")
    result = ran("none", "import os\nprint(os.getcwd())\nopen('made', 'w').write('x')\ndict(os.environ)")
    assert "SECRET-OF-THE-HOST" not in result.content
    assert not Path(result.content.splitlines()[0]).exists(), "its folder is still there"


def test_how_a_program_exits_is_known() -> None:
    assert ran("none", "raise SystemExit(3)").metadata["report"] == "the program ended with exit code 3"
    assert ran("none", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)").metadata["report"].endswith("137")


@pytest.mark.parametrize(
    "code", ["(" * 100_000, "-" * 5000 + "1", "x = " + "[" * 5000 + "]" * 5000, "\0", "a = 1\n" * 900]
)
@BOTH
def test_any_code_ends_in_words(sandbox: str, code: str) -> None:
    assert len(ran(sandbox, code, max_output_chars=500).content) < 1200


def test_code_of_ten_megabytes_is_run_or_refused_in_words() -> None:
    code = "x = 1\n" * 1000 + "#" * 10_000_000 + "\nx"
    assert "more than 100,000 characters" in ran("monty", code).metadata["report"]
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
    with pytest.raises(ToolServiceError, match="the code cannot be run: no sandbox can be used to run programs"):
        call_tool(tool, {"code": "1 + 1"})
