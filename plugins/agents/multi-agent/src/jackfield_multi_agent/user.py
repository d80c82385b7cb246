"""A person in a conversation of agents."""

from __future__ import annotations

from collections.abc import AsyncIterator

from jackfield.agents import Agent, Event, Run
from jackfield.events import PluginEvent, RunFinished

INPUT_NEEDED = "jackfield-multi-agent.input_needed"


class UserAgent(Agent):
    """Represents a person: its run ends at once with `input_needed`, and a later run begins with the person's message.

    Args:
        name, description: The agent's name and description, for the other agents. Other arguments are those of every
            agent, and are not used.
    """

    resumable = True

    async def events(self, run: Run) -> AsyncIterator[Event]:
        if is_cancelled(run):
            yield RunFinished("cancelled", (), run.start.spent.usage)
            return
        yield PluginEvent(INPUT_NEEDED, {"agent": self.name or ""})
        yield RunFinished("input_needed", (), run.start.spent.usage)


def is_cancelled(run: Run) -> bool:
    """Return True if a run that waits for a person is cancelled, because nothing else would notice that."""
    return run.cancel is not None and run.cancel.cancelled
