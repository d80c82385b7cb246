"""Agents, which answer questions using a model and tools, and stream events as they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackfield._runstate import RunState, Spent
from jackfield.agents._asking import RunOptions
from jackfield.agents._base import Agent, AgentOptions
from jackfield.agents._fncall import BasicAgent, FnCallAgent
from jackfield.agents._missing import NameAllMissing, unset_secrets
from jackfield.runs._calls import open_calls, with_calls_closed
from jackfield.runs._run import AgentLike, Event, Handoff, ParentRun, Part, Run, RunConfig, TurnView
from jackfield.runs._view import Response, RunView
from jackfield.streams import CancelToken
from jackfield.tools._base import Deps
from jackfield.tools._toolset import ToolEntry

if TYPE_CHECKING:
    from jackfield.agents._components import components_of, models_in
    from jackfield.agents._configs import CORE_KINDS, AgentConfig, is_agent
    from jackfield.agents._creating import CreateOptions, create_agent
    from jackfield.agents._handoffs import run_as
    from jackfield.agents._subagents import AgentTool, approve_of, effects_of, run_below

__all__ = [
    "CORE_KINDS",
    "Agent",
    "AgentConfig",
    "AgentLike",
    "AgentOptions",
    "AgentTool",
    "BasicAgent",
    "CancelToken",
    "CreateOptions",
    "Deps",
    "Event",
    "FnCallAgent",
    "Handoff",
    "NameAllMissing",
    "ParentRun",
    "Part",
    "Response",
    "Run",
    "RunConfig",
    "RunOptions",
    "RunState",
    "RunView",
    "Spent",
    "ToolEntry",
    "TurnView",
    "approve_of",
    "components_of",
    "create_agent",
    "effects_of",
    "is_agent",
    "models_in",
    "open_calls",
    "run_as",
    "run_below",
    "unset_secrets",
    "with_calls_closed",
]


def __getattr__(name: str) -> object:
    """Import names on first use to keep startup fast."""
    if name in ("CORE_KINDS", "AgentConfig", "is_agent"):
        from jackfield.agents import _configs

        value = getattr(_configs, name)
    elif name in ("CreateOptions", "create_agent"):
        from jackfield.agents import _creating

        value = getattr(_creating, name)
    elif name in ("components_of", "models_in"):
        from jackfield.agents import _components

        value = getattr(_components, name)
    elif name == "run_as":
        from jackfield.agents._handoffs import run_as as value
    elif name in ("AgentTool", "approve_of", "effects_of", "run_below"):
        from jackfield.agents import _subagents

        value = getattr(_subagents, name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value
