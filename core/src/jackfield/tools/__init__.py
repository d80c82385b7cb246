"""Tools that models can call."""

from __future__ import annotations

from jackfield._editor import CommandEnd, Editor
from jackfield.request import FunctionSchema
from jackfield.tools._awaiting import says_if_not_awaited
from jackfield.tools._base import BaseTool, StandIn, ToolContext, ToolResult
from jackfield.tools._content import content_of
from jackfield.tools._cutting import cut_middle, cut_text
from jackfield.tools._direct import acall_tool, call_tool
from jackfield.tools._entries import as_tool, name_of_entry, tools_of
from jackfield.tools._executor import DENIED_TEXT, STOPPED, ToolExecutor
from jackfield.tools._foreign import run_tool
from jackfield.tools._function_tool import FunctionTool, ToolOptions, tool
from jackfield.tools._plan import CallPlan, PlannedCall
from jackfield.tools._plugin_tool import PluginTool, find_tool
from jackfield.tools._rules import Decision, Denial
from jackfield.tools._safety import Safety
from jackfield.tools._schema import ArgumentChecker, check_tool_name, check_tool_schema
from jackfield.tools._toolset import ToolChanges, ToolEntry, Toolset, toolset
from jackfield.tools._workspace import Workspace

__all__ = [
    "DENIED_TEXT",
    "STOPPED",
    "ArgumentChecker",
    "BaseTool",
    "CallPlan",
    "CommandEnd",
    "Decision",
    "Denial",
    "Editor",
    "FunctionSchema",
    "FunctionTool",
    "PlannedCall",
    "PluginTool",
    "Safety",
    "StandIn",
    "ToolChanges",
    "ToolContext",
    "ToolEntry",
    "ToolExecutor",
    "ToolOptions",
    "ToolResult",
    "Toolset",
    "Workspace",
    "acall_tool",
    "as_tool",
    "call_tool",
    "check_tool_name",
    "check_tool_schema",
    "content_of",
    "cut_middle",
    "cut_text",
    "find_tool",
    "name_of_entry",
    "run_tool",
    "says_if_not_awaited",
    "tool",
    "tools_of",
    "toolset",
]
