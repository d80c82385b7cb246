"""Agents that write texts.

Importing this package is cheap: each class is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jackfield_writing.article import ArticleAgent
    from jackfield_writing.outlines import sections_of
    from jackfield_writing.writers import ContinueWriting, ExpandWriting, OutlineWriting, WriteFromScratch

__all__ = ["ArticleAgent", "ContinueWriting", "ExpandWriting", "OutlineWriting", "WriteFromScratch", "sections_of"]

_MODULES = {"ArticleAgent": "article", "sections_of": "outlines"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'writers')}"), name)
