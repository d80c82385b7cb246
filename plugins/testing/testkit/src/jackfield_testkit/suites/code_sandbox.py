"""Contract tests for sandboxes that run Python code without starting programs."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from jackfield.sandboxes import CodeResult, CodeSandbox, Limits
from jackfield_testkit.suites.any_sandbox import AnySandboxSuite

PATIENCE_S = 60.0  # for code that hangs; nothing waits for this limit
SECRET = "SECRET-OF-THE-HOST"  # noqa: S105 - not a real one


class CodeSandboxSuite(AnySandboxSuite[CodeSandbox]):
    """Contract of sandboxes that run code themselves. The tests use only a small subset of Python.

    ```python
    class TestAcme(CodeSandboxSuite):
        component = "jackfield-acme/acme-code"
    ```

    If the sandbox reports that it is unusable, its tests are skipped with the reason it gives.

    Attributes:
        component: The sandbox to test, as `distribution/name`, or only the name if it is unique.
        config: The sandbox's settings.
    """

    ability = CodeSandbox

    def test_the_value_of_the_last_expression_comes_back_as_plain_data(self, sandbox: CodeSandbox) -> None:
        assert _ran(sandbox, "x = [1, 2]\n{'a': x, 'b': 'ü' * 2}") == CodeResult({"a": [1, 2], "b": "üü"})

    def test_what_it_prints_comes_back(self, sandbox: CodeSandbox) -> None:
        done = _ran(sandbox, "print('one')\nprint(2)")
        assert (done.stdout, done.error) == ("one\n2\n", "")

    def test_it_finds_the_values_it_was_given(self, sandbox: CodeSandbox) -> None:
        assert _ran(sandbox, "sum(numbers) + 1", values={"numbers": [1, 2, 3]}).value == 7

    @pytest.mark.parametrize(("code", "name"), [("1 / 0", "ZeroDivisionError"), ("x = (", "SyntaxError")])
    def test_what_goes_wrong_in_the_code_is_in_the_result(self, sandbox: CodeSandbox, code: str, name: str) -> None:
        done = _ran(sandbox, code)
        assert name in done.error
        assert done.value is None

    def test_nothing_is_kept_for_the_next_run(self, sandbox: CodeSandbox) -> None:
        assert not _ran(sandbox, "kept = 5").error
        assert "NameError" in _ran(sandbox, "kept").error

    def test_code_that_takes_too_long_is_ended(self, sandbox: CodeSandbox) -> None:
        code = "n = 0\nwhile n < 30_000_000:\n    n = n + 1\n'went on'"
        done = _ran(sandbox, code, limits=Limits(wall_s=0.5))
        assert done.error
        assert done.value is None

    def test_files_cannot_be_read(self, sandbox: CodeSandbox, tmp_path: Path) -> None:
        note = tmp_path / "note"
        note.write_text(SECRET, encoding="ascii")
        done = _ran(sandbox, f"open({str(note)!r}).read()")
        assert SECRET not in repr(done)
        assert done.error

    def test_the_network_cannot_be_used(self, sandbox: CodeSandbox) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            done = _ran(sandbox, f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 30)\n'reached'")
        assert done.value is None
        assert done.error


def _ran(sandbox: CodeSandbox, code: str, **more: Any) -> CodeResult:
    async def run() -> CodeResult:
        async with asyncio.timeout(PATIENCE_S):
            return await sandbox.run_code(code, **more)

    return asyncio.run(run())
