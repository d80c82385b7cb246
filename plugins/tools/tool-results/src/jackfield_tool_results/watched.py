"""A tool context that detects reads of the caller's `deps`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from jackfield.tools import ToolContext


class _WatchedContext(ToolContext[Any]):
    """A tool context that intercepts reads of `deps` in `__getattribute__`."""

    __slots__ = ("_on_deps",)
    _on_deps: Callable[[], None]

    def __getattribute__(self, name: str) -> Any:
        if name == "deps":
            # A copy made by `dataclasses.replace` has no callback, but making it has read `deps` of the original.
            on_deps = getattr(self, "_on_deps", None)
            if on_deps is not None:
                on_deps()
        return object.__getattribute__(self, name)


def watch_deps(context: ToolContext[Any], on_deps: Callable[[], None]) -> ToolContext[Any]:
    """Return a copy of the context that calls `on_deps` whenever `deps` is read, even if `deps` is None."""
    watched = _WatchedContext(**{one.name: getattr(context, one.name) for one in fields(ToolContext)})
    object.__setattr__(watched, "_on_deps", on_deps)
    return watched
