"""Tool call coroutines whose `repr` warns about a missing `await`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")
_MARK = "_says_if_not_awaited"


class _NotAwaited(Coroutine[Any, Any, T]):
    """A call's coroutine, whose `repr` says that an `await` is missing."""

    def __init__(self, call: Coroutine[Any, Any, T], name: str) -> None:
        self._call = call
        self._name = name

    def __await__(self) -> Generator[Any, Any, T]:
        return self._call.__await__()

    def send(self, value: object) -> object:
        return self._call.send(value)

    def throw(self, *error: Any) -> object:
        return self._call.throw(*error)

    def close(self) -> None:
        self._call.close()

    def __repr__(self) -> str:
        return (
            f"<tool {self._name!r} has not been called yet: use `await tool.call(...)`, or outside an event loop "
            "`jackfield.sync.run(tool.call(...))`>"
        )


def says_if_not_awaited(call: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., Coroutine[Any, Any, T]]:
    """Decorate a tool's async `call` so that the coroutine's `repr` says that an `await` is missing."""

    @functools.wraps(call)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, T]:
        return _NotAwaited(call(self, *args, **kwargs), self.name)

    setattr(wrapper, _MARK, True)
    return wrapper


def is_async(function: object) -> bool:
    """Return True if calling the function is known to return an awaitable."""
    return (
        inspect.iscoroutinefunction(function)
        or getattr(function, _MARK, False) is True
        or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - a callable object
    )
