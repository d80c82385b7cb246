"""Jackfield: a panel of sockets for LLM agents.

Importing this package loads nothing else. Each name is imported from its module on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from jackfield.version import __version__

if TYPE_CHECKING:
    from jackfield.agents import Agent, BasicAgent, FnCallAgent
    from jackfield.agents._configs import AgentConfig
    from jackfield.agents._creating import create_agent
    from jackfield.config import GenerateConfig, Limits, LLMConfig
    from jackfield.errors import JackfieldError
    from jackfield.messages import ContentItem, FunctionCall, Message, ModelResponse, Usage
    from jackfield.models import BaseChatModel, get_chat_model
    from jackfield.plugins import PluginHost
    from jackfield.request import ChatRequest, ModelFacts
    from jackfield.results import RunResult
    from jackfield.tools import BaseTool, ToolContext, ToolResult, tool
    from jackfield.tools._direct import acall_tool, call_tool

__all__ = [
    "Agent",
    "AgentConfig",
    "BaseChatModel",
    "BaseTool",
    "BasicAgent",
    "ChatRequest",
    "ContentItem",
    "FnCallAgent",
    "FunctionCall",
    "GenerateConfig",
    "JackfieldError",
    "LLMConfig",
    "Limits",
    "Message",
    "ModelFacts",
    "ModelResponse",
    "PluginHost",
    "RunResult",
    "ToolContext",
    "ToolResult",
    "Usage",
    "__version__",
    "acall_tool",
    "call_tool",
    "create_agent",
    "get_chat_model",
    "tool",
]

_MODULES = {
    "Agent": "jackfield.agents",
    "AgentConfig": "jackfield.agents._configs",
    "BaseChatModel": "jackfield.models",
    "BaseTool": "jackfield.tools",
    "BasicAgent": "jackfield.agents",
    "ChatRequest": "jackfield.request",
    "ContentItem": "jackfield.messages",
    "FnCallAgent": "jackfield.agents",
    "FunctionCall": "jackfield.messages",
    "GenerateConfig": "jackfield.config",
    "JackfieldError": "jackfield.errors",
    "LLMConfig": "jackfield.config",
    "Limits": "jackfield.config",
    "Message": "jackfield.messages",
    "ModelFacts": "jackfield.request",
    "ModelResponse": "jackfield.messages",
    "PluginHost": "jackfield.plugins",
    "RunResult": "jackfield.results",
    "ToolContext": "jackfield.tools",
    "ToolResult": "jackfield.tools",
    "Usage": "jackfield.messages",
    "acall_tool": "jackfield.tools._direct",
    "call_tool": "jackfield.tools._direct",
    "create_agent": "jackfield.agents._creating",
    "get_chat_model": "jackfield.models",
    "tool": "jackfield.tools",
}


def __dir__() -> list[str]:
    return list(__all__)


def _raise_for(name: str) -> NoReturn:
    """Raise ImportError for a name that another package provides, or AttributeError for an unknown name."""
    if name[:1] != "_":
        from importlib.util import find_spec

        if name.isidentifier() and find_spec(f"{__name__}.{name}"):
            # Python looks up submodules this way before importing them, and needs no suggestions.
            raise AttributeError(f"module {__name__!r} has no attribute {name!r} yet: import {__name__}.{name} first")
        import json
        import pkgutil

        elsewhere: dict[str, str] = json.loads(pkgutil.get_data("jackfield", "names_elsewhere.json") or b"{}")
        if name in elsewhere:
            raise ImportError(f"jackfield has no {name!r}: {elsewhere[name]}", name=__name__)
        from jackfield.suggestions import suggest

        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{suggest(name, __all__)}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if not TYPE_CHECKING:  # type checkers use the imports above, and report misspelt names

    def __getattr__(name):
        if name not in _MODULES:
            _raise_for(name)
        from importlib import import_module

        value = globals()[name] = getattr(import_module(_MODULES[name]), name)
        return value
