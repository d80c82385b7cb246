"""Ask another agent within a run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from jackfield.agents import Agent, ParentRun, run_below
from jackfield.events import RunEvent, RunFinished, StopReason
from jackfield.messages import Message, Messages
from jackfield.results import text_of_answer
from jackfield.streams import closing


@dataclass(slots=True)
class Answered:
    """The answer to a question, once all its events have been read."""

    text: str = ""
    messages: tuple[Message, ...] = ()
    stop_reason: StopReason = "finished"

    @property
    def text_with_notes(self) -> str:
        """The text, below the notes that the agent made about it in `extra["note"]` of its messages."""
        notes = [message.extra.get("note") for message in self.messages if message.extra]
        return "\n\n".join(filter(None, (*notes, self.text)))


async def ask_below(
    agent: Agent, messages: Messages, parent: ParentRun, answered: Answered, **options: Any
) -> AsyncIterator[RunEvent]:
    """Ask an agent within a run, and yield its events; after the last, `answered` has the answer.

    Args:
        agent: The agent that is asked.
        messages: The messages with its question.
        parent: The waiting run, to which the agent's usage is added.
        answered: Is filled in.
        options: As for `Agent.astream`.

    Raises:
        Interrupted: The waiting run was cancelled, or its time is up.
        JackfieldError: The nested run failed.
    """
    depth = parent.depth + 1
    async with closing(parent.run.guarded(run_below(agent, messages, parent, **options))) as events:
        async for event in events:
            if event.depth == depth and isinstance(event.event, RunFinished):
                answered.messages, answered.stop_reason = event.event.messages, event.event.stop_reason
                answered.text = text_of_answer(event.event.messages)
            yield event
