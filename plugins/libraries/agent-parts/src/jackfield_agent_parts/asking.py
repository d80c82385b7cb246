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
    """The answer to a question, complete once all events have been consumed."""

    text: str = ""
    messages: tuple[Message, ...] = ()
    stop_reason: StopReason = "finished"

    @property
    def text_with_notes(self) -> str:
        """The answer's text, preceded by the notes that the agent left in `extra["note"]` of its messages."""
        notes = [message.extra.get("note") for message in self.messages if message.extra]
        return "\n\n".join(filter(None, (*notes, self.text)))


async def ask_below(
    agent: Agent, messages: Messages, parent: ParentRun, answered: Answered, **options: Any
) -> AsyncIterator[RunEvent]:
    """Ask another agent within a run and yield its events. After the last event, `answered` holds the answer.

    Args:
        agent: The agent to ask.
        messages: The messages to send, including the question.
        parent: The run that waits for the answer, and is charged for the agent's usage.
        answered: Receives the answer.
        options: See `Agent.astream`.

    Raises:
        Interrupted: The parent run was cancelled or timed out.
        JackfieldError: The nested run failed.
    """
    depth = parent.depth + 1
    async with closing(parent.run.guarded(run_below(agent, messages, parent, **options))) as events:
        async for event in events:
            if event.depth == depth and isinstance(event.event, RunFinished):
                answered.messages, answered.stop_reason = event.event.messages, event.event.stop_reason
                answered.text = text_of_answer(event.event.messages)
            yield event
