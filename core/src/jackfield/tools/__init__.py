"""Tools: what a model may call."""

from jackfield.tools.awaiting import says_if_not_awaited
from jackfield.tools.base import BaseTool, ToolContext, ToolResult
from jackfield.tools.executor import ToolExecutor
from jackfield.tools.function_tool import FunctionTool, tool
from jackfield.tools.plugin_tool import PluginTool, find_tool
from jackfield.tools.workspace import Workspace

__all__ = [
    "BaseTool",
    "FunctionTool",
    "PluginTool",
    "ToolContext",
    "ToolExecutor",
    "ToolResult",
    "Workspace",
    "find_tool",
    "says_if_not_awaited",
    "tool",
]
