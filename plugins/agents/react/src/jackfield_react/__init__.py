"""The `react` agent.

Importing this package is cheap: `ReActChat` is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jackfield_react.agent import ReActChat

__all__ = ["ReActChat"]


def __getattr__(name: str) -> Any:
    if name == "ReActChat":
        from jackfield_react.agent import ReActChat

        return ReActChat
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
