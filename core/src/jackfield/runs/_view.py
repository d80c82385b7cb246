"""A run's response as a growing list of messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jackfield._runstate import RunState
from jackfield.events import (
    AgentEvent,
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ReasoningDelta,
    ResponseReplaced,
    RunEvent,
    RunFinished,
    StopReason,
    StreamReset,
    TextDelta,
    TurnFinished,
    TurnStarted,
)
from jackfield.messages import Message, Usage, as_messages
from jackfield.models._fold import Fold
from jackfield.results import text_of_answer
from jackfield.runs._run import Event


class Response(list[Any]):
    """A run's response: a list of messages, or a list of dicts if the caller sent dicts.

    Attributes:
        stop_reason: The reason why the run ended, such as `finished`, `turn_limit` or `approval_needed` (as in
            `RunFinished`), or None while the run is in progress.
        usage: The total usage of all turns, or None while the run is in progress.
    """

    stop_reason: StopReason | None = None
    usage: Usage | None = None

    @classmethod
    def at_end(cls, finished: RunFinished, *, dicts: bool) -> Response:
        """Return the response of a finished run, as dicts or messages."""
        response = cls.of(finished.messages, dicts=dicts)
        response.stop_reason, response.usage = finished.stop_reason, finished.usage
        return response

    @classmethod
    def of(cls, messages: Sequence[Message], *, dicts: bool) -> Response:
        """Return a response with these messages, converted to dicts if `dicts` is True."""
        return cls([message.model_dump() for message in messages] if dicts else messages)

    def _repr_markdown_(self) -> str:
        from jackfield.display import markdown_of

        return markdown_of(as_messages(self))

    def _ipython_display_(self) -> None:
        from jackfield.display import show

        messages = as_messages(self)
        show(self._repr_markdown_(), text_of_answer(messages), messages)


_OF_ANSWERS = frozenset((TextDelta, ReasoningDelta, FunctionCallDelta, MediaDelta, StreamReset))
_COMPLETE = frozenset((TurnFinished, ResponseReplaced, RunFinished))


class RunView:
    """A run's response so far: the complete messages and the answer in progress."""

    def __init__(self, name: str | None = None) -> None:
        self._state = RunState(agents=[name or ""])
        self._run_id: str | None = None  # '' if the run's own events come without an id
        self._answer: Fold | None = None

    @property
    def finished(self) -> RunFinished | None:
        """The event that ended the run, or None while the run is in progress."""
        return self._state.end if isinstance(self._state.end, RunFinished) else None

    def feed(self, event: Event) -> bool:
        """Add one event, and return True if the messages changed. Events from nested runs have no effect.

        The first event is the run's own, as in `Agent.astream` and `Agent.stream`.
        """
        run_id, own = (event.run_id, event.event) if isinstance(event, RunEvent) else ("", event)
        if self._run_id is None:
            self._run_id = run_id
        return run_id == self._run_id and self._feed(own)

    def _feed(self, event: ModelEvent | AgentEvent) -> bool:
        kind = type(event)
        if kind in _OF_ANSWERS:
            if self._answer is None:
                self._answer = Fold(name=self._state.agents[-1] or None)
            self._answer.feed(event)  # type: ignore[arg-type]
            return True
        if kind is TurnStarted:
            self._answer = Fold(name=self._state.agents[-1] or None)
        elif kind in _COMPLETE:
            self._answer = None
        return self._state.apply(event)

    def response(self, *, dicts: bool) -> Response:
        """Return the response so far as a new list of dicts or messages."""
        if self.finished is not None:
            return Response.at_end(self.finished, dicts=dicts)
        return Response.of(self.messages(), dicts=dicts)

    def messages(self) -> list[Message]:
        """Return the messages so far as a new list."""
        return [*self._state.history, *(self._answer.messages() if self._answer else ())]
