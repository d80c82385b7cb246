"""The assistant: an agent that answers from documents.

Importing this package loads nothing; `Assistant` is imported at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jackfield_assistant.agent import Assistant

__all__ = ["Assistant"]


def __getattr__(name: str) -> Any:
    if name == "Assistant":
        from jackfield_assistant.agent import Assistant

        return Assistant
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
