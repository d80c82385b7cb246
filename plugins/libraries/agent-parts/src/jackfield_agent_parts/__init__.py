"""Building blocks shared by agent kinds: nested agents, prompts, and JSON in answers."""

from __future__ import annotations

from jackfield_agent_parts.answers import list_in, object_in
from jackfield_agent_parts.asking import Answered, ask_below
from jackfield_agent_parts.prompts import GivenPrompts, Prompts

__all__ = ["Answered", "GivenPrompts", "Prompts", "ask_below", "list_in", "object_in"]
