"""Agents that answer from documents.

Importing this package is cheap: each class is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jackfield_assistant.agent import Assistant, DocQAAgent
    from jackfield_assistant.agent import DocQAAgent as BasicDocQA
    from jackfield_assistant.dialogue import DialogueRetrievalAgent
    from jackfield_assistant.memo import MemoAssistant
    from jackfield_assistant.memory import Memory
    from jackfield_assistant.parallel import ParallelDocQA
    from jackfield_assistant.virtual import VirtualMemoryAgent

__all__ = [
    "Assistant",
    "BasicDocQA",
    "DialogueRetrievalAgent",
    "DocQAAgent",
    "MemoAssistant",
    "Memory",
    "ParallelDocQA",
    "VirtualMemoryAgent",
]

_MODULES = {
    "Assistant": "agent",
    "BasicDocQA": "agent",
    "DialogueRetrievalAgent": "dialogue",
    "DocQAAgent": "agent",
    "MemoAssistant": "memo",
    "Memory": "memory",
    "ParallelDocQA": "parallel",
    "VirtualMemoryAgent": "virtual",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_MODULES[name]}")
    return getattr(module, "DocQAAgent" if name == "BasicDocQA" else name)
