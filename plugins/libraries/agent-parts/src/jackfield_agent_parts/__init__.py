"""What several agent kinds share: prompts that users can replace, and questions within a run."""

from __future__ import annotations

from jackfield_agent_parts.asking import Answered, ask_below
from jackfield_agent_parts.prompts import GivenPrompts, Prompts

__all__ = ["Answered", "GivenPrompts", "Prompts", "ask_below"]
