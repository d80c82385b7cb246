"""Represent a person in a conversation of agents."""

from __future__ import annotations

from collections.abc import AsyncIterator

from jackfield.agents import Agent, Event, Run
from jackfield.events import PluginEvent, RunFinished

INPUT_NEEDED = "jackfield-multi-agent.input_needed"


class UserAgent(Agent):
    """Placeholder agent for a person.

    A run ends immediately with `input_needed`, and a later run begins with the person's message.

    Args:
        name, description: The name and description shown to the other agents. All other arguments of `Agent` are
            ignored.
    """

    resumable = True

    async def events(self, run: Run) -> AsyncIterator[Event]:
        if is_cancelled(run):
            yield RunFinished("cancelled", (), run.start.spent.usage)
            return
        yield PluginEvent(INPUT_NEEDED, {"agent": self.name or ""})
        yield RunFinished("input_needed", (), run.start.spent.usage)


def is_cancelled(run: Run) -> bool:
    """Return True if a run was cancelled; a run that awaits a person has no other chance to notice."""
    return run.cancel is not None and run.cancel.cancelled
