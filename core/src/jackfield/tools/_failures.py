"""What a model reads of a call that failed: type and text of the exception, no traceback, no paths, not too much."""

from __future__ import annotations

import re
import traceback

from jackfield.errors import BrokenPluginError, ToolServiceError

_PATH = re.compile(r"(?:/[\w.+-]+){2,}/?|[A-Za-z]:\\[^\s'\"]+")
_MAX_CHARS = 500
_MAX_TRACEBACK_CHARS = 10_000


def describe_failure(name: str, error: BaseException) -> str:
    """The text that the model gets for an exception that was not written for it."""
    if isinstance(error, BrokenPluginError):
        return f"Tool {name} cannot be used: {_short(error)}"
    return f"An error occurred when calling tool {name}: {shown(error)}"


def shown(error: BaseException) -> str:
    """An exception in a line."""
    return f"{name_of(error)}: {_short(error)}".rstrip(": ")


def text_of(error: BaseException) -> str:
    """The text of an exception; '' if even asking for it fails."""
    try:
        return str(error.message if isinstance(error, ToolServiceError) and error.message else error)
    except BaseException:  # noqa: BLE001 - the exception is foreign, its methods are, too, and may end no run either
        return ""


def traceback_of(error: BaseException) -> str:
    """An exception as Python prints it, for people; its end, if it is very long, and '' if even asking for it fails."""
    try:
        return "".join(traceback.format_exception(error))[-_MAX_TRACEBACK_CHARS:]
    except BaseException:  # noqa: BLE001 - as above
        return ""


def name_of(error: BaseException) -> str:
    """The name of an exception's class, which may have a say in it itself."""
    return type.__dict__["__name__"].__get__(type(error))  # type: ignore[no-any-return]


def _short(error: BaseException) -> str:
    text = _PATH.sub("…", text_of(error)).strip()
    return text if len(text) <= _MAX_CHARS else text[:_MAX_CHARS] + "…"
