"""What authors of plugins import: the `hook` decorators and the descriptors. It loads nothing heavy.

A light module (the one an entry point names) imports the standard library and this package, nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jackfield import hookspecs as hook
    from jackfield.descriptors import (
        AgentSpec,
        CallFormatSpec,
        CommandSpec,
        ComponentSpec,
        EmbedderSpec,
        LLMSpec,
        ObserverSpec,
        ParserSpec,
        PostprocessorSpec,
        PreprocessorSpec,
        ProcessorSpec,
        SearcherSpec,
        Texts,
        TokenizerSpec,
        ToolSpec,
        in_language,
    )

__all__ = [
    "AgentSpec",
    "CallFormatSpec",
    "CommandSpec",
    "ComponentSpec",
    "EmbedderSpec",
    "LLMSpec",
    "ObserverSpec",
    "ParserSpec",
    "PostprocessorSpec",
    "PreprocessorSpec",
    "ProcessorSpec",
    "SearcherSpec",
    "Texts",
    "TokenizerSpec",
    "ToolSpec",
    "hook",
    "in_language",
]


def __getattr__(name: str) -> Any:
    # At first use, so that listing what is installed need not load pluggy.
    if name not in __all__:
        raise AttributeError(f"module 'jackfield.plugins' has no attribute {name!r}")
    hookspecs, descriptors = "jackfield.hookspecs", "jackfield.descriptors"
    value = import_module(hookspecs) if name == "hook" else getattr(import_module(descriptors), name)
    globals()[name] = value
    return value
