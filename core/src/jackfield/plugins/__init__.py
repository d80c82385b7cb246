"""What authors of plugins import: the `hook` decorators and the descriptors. It loads nothing heavy.

A light module (the one an entry point names) imports the standard library and this package, nothing else.
"""

from __future__ import annotations

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
