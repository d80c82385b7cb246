"""Texts about failures: those for a model are short and have no paths, and a traceback has its end."""

from __future__ import annotations

import pytest

from jackfield.errors import BrokenPluginError, ToolServiceError
from jackfield.tools._failures import describe_failure, error_traceback, summarize


class MuteError(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no"), "ValueError: no"),
        (ValueError(), "ValueError"),
        (ValueError("no file /srv/data/secret.txt here"), "ValueError: no file … here"),
        (ValueError(r"no file C:\Users\me here"), "ValueError: no file … here"),
        (ValueError("from /srv/a/b.txt to '/srv/c/d' and C:\\e\\f"), "ValueError: from … to '…' and …"),
        (ValueError("1/2 and /a"), "ValueError: 1/2 and /a"),
        (ValueError("x" * 500), f"ValueError: {'x' * 500}"),
        (ValueError("x" * 501), f"ValueError: {'x' * 500}…"),
        (ValueError(" no \n"), "ValueError: no"),
        (MuteError(), "MuteError"),
        (ToolServiceError("for the model"), "ToolServiceError: for the model"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else type(value).__name__,
)
def test_an_error_for_the_model_is_short_and_without_paths(error: Exception, text: str) -> None:
    assert summarize(error) == text
    assert describe_failure("look", error) == f"An error occurred when calling tool look: {text}"


def test_a_tool_that_cannot_be_used_says_so() -> None:
    assert describe_failure("look", BrokenPluginError("acme is broken")) == "Tool look cannot be used: acme is broken"


def test_a_traceback_is_whole_or_its_end() -> None:
    assert error_traceback(ValueError("no")) == "ValueError: no\n"
    long = error_traceback(ValueError("x" * 20_000 + "end"))
    assert (len(long), long.endswith("xend\n")) == (10_000, True)
