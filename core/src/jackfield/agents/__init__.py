"""Agents: a model, tools and a way to use them."""

from jackfield.agents.base import Agent, AgentOptions, ToolEntry
from jackfield.agents.create import create_agent
from jackfield.agents.decide import with_calls_closed
from jackfield.agents.fncall import BasicAgent, FnCallAgent
from jackfield.agents.run import Event, Response, Run, RunView
from jackfield.streams import CancelToken

__all__ = [
    "Agent",
    "AgentOptions",
    "BasicAgent",
    "CancelToken",
    "Event",
    "FnCallAgent",
    "Response",
    "Run",
    "RunView",
    "ToolEntry",
    "create_agent",
    "with_calls_closed",
]
