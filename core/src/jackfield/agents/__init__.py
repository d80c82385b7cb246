"""Agents: a model, tools and a way to use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackfield._lazy import fetching
from jackfield.agents._asking import RunOptions
from jackfield.agents._base import Agent, AgentOptions
from jackfield.agents._decide import open_calls, with_calls_closed
from jackfield.agents._fncall import BasicAgent, FnCallAgent
from jackfield.agents._limits import Spent
from jackfield.agents._run import HANDED_TO, Event, Part, Response, Run, RunAbove, RunView
from jackfield.streams import CancelToken
from jackfield.tools._toolset import ToolEntry

if TYPE_CHECKING:
    from jackfield_agent_parts.creating import create_agent
    from jackfield_agent_parts.files import load_agent_config
    from jackfield_agent_parts.handoffs import Handoff

__all__ = [
    "HANDED_TO",
    "Agent",
    "AgentOptions",
    "BasicAgent",
    "CancelToken",
    "Event",
    "FnCallAgent",
    "Handoff",
    "Part",
    "Response",
    "Run",
    "RunAbove",
    "RunOptions",
    "RunView",
    "Spent",
    "ToolEntry",
    "create_agent",
    "load_agent_config",
    "open_calls",
    "with_calls_closed",
]

_HOME = {
    "Handoff": "jackfield_agent_parts.handoffs",
    "create_agent": "jackfield_agent_parts.creating",
    "load_agent_config": "jackfield_agent_parts.files",
}
_MOVED = {
    **dict.fromkeys(("events_of", "fork", "replay"), "jackfield_records"),
    **dict.fromkeys(("AgentTool", "run_as", "run_below"), "jackfield_agent_parts"),
    "text_of": "jackfield_agent_parts.files",
}
__getattr__, _ = fetching(__name__, _HOME, moved=_MOVED)
