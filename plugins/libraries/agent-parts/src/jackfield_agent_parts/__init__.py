"""Agents by name and from files; and what agent kinds share: agents below, hand-offs, prompts, JSON in answers."""

from __future__ import annotations

from jackfield_agent_parts.answers import list_in, object_in
from jackfield_agent_parts.asking import Answered, ask_below
from jackfield_agent_parts.below import AgentTool, run_below
from jackfield_agent_parts.handoffs import run_as
from jackfield_agent_parts.prompts import GivenPrompts, Prompts

__all__ = [
    "AgentTool",
    "Answered",
    "GivenPrompts",
    "Prompts",
    "ask_below",
    "list_in",
    "object_in",
    "run_as",
    "run_below",
]
