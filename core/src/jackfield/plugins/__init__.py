"""What authors of plugins import: the `hook` decorators and the descriptors. It loads nothing heavy.

A light module (the one an entry point names) imports the standard library and this package, nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jackfield.plugins.descriptors import (
        AgentSpec,
        CallFormatSpec,
        CommandSpec,
        ComponentSpec,
        EmbedderSpec,
        LLMSpec,
        ObserverSpec,
        ParserSpec,
        ProcessorSpec,
        RunnerSpec,
        SandboxSpec,
        SearcherSpec,
        ServerSpec,
        StoreSpec,
        TokenizerSpec,
        ToolSpec,
    )
    from jackfield.plugins.hookspecs import hook

__all__ = [
    "AgentSpec",
    "CallFormatSpec",
    "CommandSpec",
    "ComponentSpec",
    "EmbedderSpec",
    "LLMSpec",
    "ObserverSpec",
    "ParserSpec",
    "ProcessorSpec",
    "RunnerSpec",
    "SandboxSpec",
    "SearcherSpec",
    "ServerSpec",
    "StoreSpec",
    "TokenizerSpec",
    "ToolSpec",
    "hook",
]


def __getattr__(name: str) -> Any:
    # At first use, so that listing what is installed need not load pluggy.
    if name not in __all__:
        raise AttributeError(f"module 'jackfield.plugins' has no attribute {name!r}")
    value = getattr(import_module(f"jackfield.plugins.{'hookspecs' if name == 'hook' else 'descriptors'}"), name)
    globals()[name] = value
    return value
