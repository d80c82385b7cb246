"""Agents: a model, tools and a way to use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackfield._lazy import fetching
from jackfield.agents._asking import RunOptions
from jackfield.agents._base import Agent, AgentOptions
from jackfield.agents._decide import open_calls, with_calls_closed
from jackfield.agents._fncall import BasicAgent, FnCallAgent
from jackfield.agents._limits import Spent
from jackfield.agents._run import Event, Handoff, Part, Response, Run, RunAbove, RunView
from jackfield.streams import CancelToken
from jackfield.tools._toolset import ToolEntry

if TYPE_CHECKING:
    from jackfield.agents._configs import CORE_KINDS, AgentConfig, is_agent
    from jackfield.agents._creating import CreateOptions, create_agent
    from jackfield.agents._handoffs import agent_of, run_as
    from jackfield.agents._subagents import AgentTool, approve_of, effects_of, run_below

__all__ = [
    "CORE_KINDS",
    "Agent",
    "AgentConfig",
    "AgentOptions",
    "AgentTool",
    "BasicAgent",
    "CancelToken",
    "CreateOptions",
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
    "agent_of",
    "approve_of",
    "create_agent",
    "effects_of",
    "is_agent",
    "open_calls",
    "run_as",
    "run_below",
    "with_calls_closed",
]

__getattr__, _ = fetching(
    __name__,
    {
        **dict.fromkeys(
            (
                "CORE_KINDS",
                "AgentConfig",
                "is_agent",
            ),
            "agents._configs",
        ),
        **dict.fromkeys(
            (
                "CreateOptions",
                "create_agent",
            ),
            "agents._creating",
        ),
        **dict.fromkeys(
            (
                "agent_of",
                "run_as",
            ),
            "agents._handoffs",
        ),
        **dict.fromkeys(
            (
                "AgentTool",
                "approve_of",
                "effects_of",
                "run_below",
            ),
            "agents._subagents",
        ),
    },
)
