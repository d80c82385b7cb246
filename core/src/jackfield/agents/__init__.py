"""Agents: a model, tools and a way to use them."""

from __future__ import annotations

from jackfield._lazy import fetching
from jackfield.agents._asking import RunOptions
from jackfield.agents._base import Agent, AgentOptions
from jackfield.agents._decide import open_calls, with_calls_closed
from jackfield.agents._fncall import BasicAgent, FnCallAgent
from jackfield.agents._limits import Spent
from jackfield.agents._run import Event, Handoff, Part, Response, Run, RunAbove, RunView
from jackfield.streams import CancelToken
from jackfield.tools._toolset import ToolEntry

__all__ = [
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
    "open_calls",
    "with_calls_closed",
]

_MOVED = {
    **dict.fromkeys(("events_of", "fork", "replay"), "jackfield_records"),
    **dict.fromkeys(("AgentTool", "run_as", "run_below"), "jackfield_agent_parts"),
    "create_agent": "jackfield_agent_parts.creating",
    **dict.fromkeys(("load_agent_config", "text_of"), "jackfield_agent_parts.files"),
}
__getattr__, _ = fetching(__name__, {}, moved=_MOVED)
