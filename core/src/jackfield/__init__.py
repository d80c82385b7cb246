"""Jackfield: a panel of sockets for LLM agents.

Importing it loads nothing; each name is fetched from its module at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackfield._lazy import fetching, is_in_reach
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

_HOME = {
    **dict.fromkeys(("Agent", "BasicAgent", "FnCallAgent"), "agents"),
    **dict.fromkeys(("GenerateConfig", "LLMConfig", "Limits"), "config"),
    "JackfieldError": "errors",
    **dict.fromkeys(("ContentItem", "FunctionCall", "Message", "ModelResponse", "Usage"), "messages"),
    **dict.fromkeys(("BaseChatModel", "get_chat_model"), "models"),
    "PluginHost": "plugins",
    **dict.fromkeys(("ChatRequest", "ModelFacts"), "request"),
    "RunResult": "results",
    **dict.fromkeys(("BaseTool", "ToolContext", "ToolResult", "tool"), "tools"),
    "AgentConfig": "agents._configs",
    "create_agent": "agents._creating",
    **dict.fromkeys(("acall_tool", "call_tool"), "tools._direct"),
}

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
if not TYPE_CHECKING:  # `import *` and `help` ask for each of them
    __all__ = [name for name in __all__ if is_in_reach(_HOME.get(name, ""))]

__getattr__, _ = fetching(__name__, _HOME)


def __dir__() -> list[str]:
    return list(__all__)
