"""Agents: a model, tools and a way to use them."""

from jackfield.agents._asking import RunOptions
from jackfield.agents._base import Agent, AgentOptions
from jackfield.agents._create import create_agent
from jackfield.agents._decide import open_calls, with_calls_closed
from jackfield.agents._fncall import BasicAgent, FnCallAgent
from jackfield.agents._limits import Spent
from jackfield.agents._run import Event, Response, Run, RunView
from jackfield.agents._spec import load_agent_config, text_of
from jackfield.streams import CancelToken
from jackfield.tools._toolset import ToolEntry

__all__ = [
    "Agent",
    "AgentOptions",
    "BasicAgent",
    "CancelToken",
    "Event",
    "FnCallAgent",
    "Response",
    "Run",
    "RunOptions",
    "RunView",
    "Spent",
    "ToolEntry",
    "create_agent",
    "load_agent_config",
    "open_calls",
    "text_of",
    "with_calls_closed",
]
