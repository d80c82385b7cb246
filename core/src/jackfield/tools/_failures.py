"""Describe failed calls: in full for people, and briefly for the model, without traceback or paths."""

from __future__ import annotations

import re
import traceback

from jackfield.errors import BrokenPluginError, ToolServiceError

_PATH = r"(?:/[\w.+-]+){2,}/?|[A-Za-z]:\\[^\s'\"]+"
_MAX_CHARS = 500
_MAX_TRACEBACK_CHARS = 10_000


def describe_failure(name: str, error: BaseException) -> str:
    """Describe an exception whose own text was not written for models."""
    from jackfield.plugins._misfits import explain_error  # only needed for errors

    error = explain_error(error)
    if isinstance(error, BrokenPluginError):
        return f"Tool {name} cannot be used: {_shorten(error)}"
    return f"An error occurred when calling tool {name}: {summarize(error)}"


def summarize(error: BaseException) -> str:
    """Return an exception's class name and text without paths."""
    return f"{error_name(error)}: {_shorten(error)}".rstrip(": ")


def error_text(error: BaseException) -> str:
    """Return an exception's text, or '' if `str` fails."""
    try:
        return str(error.message if isinstance(error, ToolServiceError) and error.message else error)
    except BaseException:  # noqa: BLE001 - methods of a foreign exception must not end a run either
        return ""


def error_traceback(error: BaseException) -> str:
    """Return an exception's formatted traceback, or '' if formatting fails. Long tracebacks are cut at the start."""
    try:
        return "".join(traceback.format_exception(error))[-_MAX_TRACEBACK_CHARS:]
    except BaseException:  # noqa: BLE001 - as above
        return ""


def error_name(error: BaseException) -> str:
    """Return an exception's class name, even if its metaclass hides it."""
    return type.__dict__["__name__"].__get__(type(error))  # type: ignore[no-any-return]


def _shorten(error: BaseException) -> str:
    text = re.sub(_PATH, "…", error_text(error)).strip()
    return text if len(text) <= _MAX_CHARS else text[:_MAX_CHARS] + "…"
