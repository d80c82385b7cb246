"""The response of a run as a growing list of messages."""

from __future__ import annotations

from typing import Any

from jackfield.events import (
    AgentEvent,
    FunctionCallDelta,
    HandedOff,
    MediaDelta,
    ModelEvent,
    ReasoningDelta,
    ResponseReplaced,
    RunEvent,
    RunFinished,
    StopReason,
    StreamReset,
    TextDelta,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from jackfield.messages import Message, Usage, as_messages
from jackfield.models._fold import Fold
from jackfield.results import text_of_answer
from jackfield.runs._run import Event


class Response(list[Any]):
    """The response of a run: a list of messages, or of dicts if the caller sent dicts, with the reason why it ended.

    Attributes:
        stop_reason: Why, as in `RunFinished`: `finished`, `turn_limit`, `approval_needed`, …; None while it still runs.
        usage: The usage of all turns; None while it still runs.
    """

    stop_reason: StopReason | None = None
    usage: Usage | None = None

    def _repr_markdown_(self) -> str:
        from jackfield.display import markdown_of

        return markdown_of(as_messages(self))

    def _ipython_display_(self) -> None:
        from jackfield.display import show

        messages = as_messages(self)
        show(self._repr_markdown_(), text_of_answer(messages), messages)


class RunView:
    """The response of a run so far, as a list of messages; a fold over its events."""

    def __init__(self, name: str | None = None) -> None:
        self._name = name
        self._run_id = ""
        self._done: list[Message] = []
        self._answer: Fold | None = None
        self._results: dict[int, Message] = {}
        self._next_result = 0
        self.finished: RunFinished | None = None

    def feed(self, event: Event) -> bool:
        """Take one event; says whether the messages changed. Those of agents that were asked below change nothing."""
        if isinstance(event, RunEvent):
            self._run_id = self._run_id or event.run_id
            return event.run_id == self._run_id and self._feed(event.event)
        return self._feed(event)

    def _feed(self, event: ModelEvent | AgentEvent) -> bool:
        match event:
            case HandedOff():
                self._name = event.to
                return False
            case TextDelta() | ReasoningDelta() | FunctionCallDelta() | MediaDelta() | StreamReset():
                self._answer = self._answer or Fold(name=self._name)
                self._answer.feed(event)
            case TurnStarted():
                self._answer = Fold(name=self._name)
                self._results, self._next_result = {}, 0
                return False
            case TurnFinished():
                self._done += event.messages
                self._answer = None
            case ToolFinished():
                self._results[event.index] = event.message
                return self._append_results()
            case ResponseReplaced() | RunFinished():
                self._done, self._answer = list(event.messages), None
                self.finished = event if isinstance(event, RunFinished) else self.finished
            case _:
                return False
        return True

    def _append_results(self) -> bool:
        """Results come as tools finish, and stand in the order of the calls."""
        before = len(self._done)
        while self._results and (lowest := min(self._results)) <= self._next_result:
            self._done.append(self._results.pop(lowest))
            self._next_result = lowest + 1
        return len(self._done) > before

    def response(self, *, dicts: bool) -> Response:
        """The response so far, a new one each time, as dicts or messages."""
        messages = self.messages()
        response = Response([message.model_dump() for message in messages] if dicts else messages)
        if self.finished is not None:
            response.stop_reason, response.usage = self.finished.stop_reason, self.finished.usage
        return response

    def messages(self) -> list[Message]:
        """The messages so far, a new list each time."""
        return self._done + (self._answer.messages() if self._answer else [])
