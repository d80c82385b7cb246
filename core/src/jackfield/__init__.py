"""Jackfield: a panel of sockets for LLM agents.

Importing it loads nothing; each name is fetched from its module at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackfield._lazy import fetching
from jackfield.version import __version__

if TYPE_CHECKING:
    from jackfield.agents import Agent, BasicAgent, FnCallAgent, create_agent
    from jackfield.config import AgentConfig, GenerateConfig, Limits, LLMConfig
    from jackfield.errors import JackfieldError
    from jackfield.messages import ContentItem, FunctionCall, Message, ModelResponse, Usage
    from jackfield.models import BaseChatModel, get_chat_model
    from jackfield.plugins import PluginHost
    from jackfield.request import ChatRequest, ModelFacts
    from jackfield.results import RunResult
    from jackfield.tools import BaseTool, ToolContext, ToolResult, acall_tool, call_tool, tool

_HOME = {
    "Agent": "agents",
    "AgentConfig": "config",
    "BaseChatModel": "models",
    "BaseTool": "tools",
    "BasicAgent": "agents",
    "ChatRequest": "request",
    "ContentItem": "messages",
    "FnCallAgent": "agents",
    "FunctionCall": "messages",
    "GenerateConfig": "config",
    "JackfieldError": "errors",
    "LLMConfig": "config",
    "Limits": "config",
    "Message": "messages",
    "ModelFacts": "request",
    "ModelResponse": "messages",
    "PluginHost": "plugins",
    "RunResult": "results",
    "ToolContext": "tools",
    "ToolResult": "tools",
    "Usage": "messages",
    "acall_tool": "tools",
    "call_tool": "tools",
    "create_agent": "agents",
    "get_chat_model": "models",
    "tool": "tools",
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

__getattr__, _names = fetching(__name__, _HOME, moved={"RAGConfig": "jackfield_documents"})


def __dir__() -> list[str]:
    return [*_names(), "__version__"]
