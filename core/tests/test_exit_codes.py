"""The exit codes of commands, and what is said of an error beside them."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from jackfield.cli import main
from jackfield.consent import Request, StartsProcess
from jackfield.errors import ConfigError


def raising(error: BaseException) -> Any:
    def command() -> int:
        raise error

    return command


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        (lambda: 0, 0, ""),
        (lambda: 3, 3, ""),
        (raising(ConfigError("no\x1b[2J way")), 1, "jackfield: no\\x1b[2J way\n"),
        (raising(KeyboardInterrupt()), 130, "\n"),
    ],
    ids=["done", "code", "error", "interrupt"],
)
def test_a_command_ends_with_a_code_and_at_most_one_line(
    command: Any, code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run_command(command) == code
    assert capsys.readouterr().err == told


def test_other_errors_are_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        main.run_command(raising(ZeroDivisionError()))
    with pytest.raises(PermissionError):
        main.run_command(raising(PermissionError(errno.EACCES, "Permission denied")))


def test_consent_that_is_needed_is_told_line_by_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = Request(tmp_path / "a.yaml", (StartsProcess("sh\x1b[2J"),), "c")

    def command() -> int:
        from jackfield.consent import require_consent

        require_consent(request, folder=tmp_path / "trusted")
        return 0

    assert main.run_command(command) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("jackfield: ")
    assert len(lines) > 2
    assert any("sh\\x1b[2J" in line for line in lines)
