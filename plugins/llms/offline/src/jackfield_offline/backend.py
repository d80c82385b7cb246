"""Yield the events of answers that are composed from the request alone."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import ClassVar

from jackfield import BaseChatModel
from jackfield.errors import ModelNotFoundError
from jackfield.events import FunctionCallDelta, ModelEvent, ModelFinished, TextDelta, UsageReported
from jackfield.messages import Message, Usage
from jackfield.request import ChatRequest, ModelFacts
from jackfield_counting.estimating import estimate_tokens
from jackfield_offline.answer import write_answer
from jackfield_offline.turn import Turn, read_turn

MODEL = "extractive"
_WORDS = re.compile(r"\s*\S{1,24}\s*")


class OfflineChatModel(BaseChatModel):
    """Chat model that quotes the given documents and calls the tools you name, without an API key or network access."""

    backend: ClassVar[str] = "offline"

    @property
    def facts(self) -> ModelFacts:
        """The model's facts: it calls tools natively."""
        return ModelFacts(native_tools=True)

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Yield either calls or an answer, never both."""
        if request.model != MODEL:
            raise ModelNotFoundError(
                f"the offline backend has only one model: use offline:{MODEL} instead of {request.model!r}",
                backend=self.backend,
            )
        turn = read_turn(request)
        events = list(_calls(turn, request) if turn.ready else _words(turn, request))
        for event in events:
            yield event
        yield UsageReported(_usage(request, events))
        yield ModelFinished("tool_calls" if turn.ready else "stop", model=MODEL)


def _calls(turn: Turn, request: ChatRequest) -> Iterator[ModelEvent]:
    one_at_a_time = request.config.parallel_function_calls is False
    # Ids continue from the history's, so that no two calls of a conversation share one.
    first = 1 + sum(message.function_call is not None for message in request.messages)
    for index, call in enumerate(turn.ready[:1] if one_at_a_time else turn.ready):
        yield FunctionCallDelta(index, id=f"offline_{first + index}", name=call.tool, arguments=call.arguments)


def _words(turn: Turn, request: ChatRequest) -> Iterator[ModelEvent]:
    for match in _WORDS.finditer(write_answer(turn, request.lang).text):
        yield TextDelta(match[0])


def _usage(request: ChatRequest, events: list[ModelEvent]) -> Usage:
    prompt = sum(estimate_tokens(_as_text(message)) for message in request.messages)
    answer = "".join(
        event.text if isinstance(event, TextDelta) else f"{event.name}{event.arguments}"
        for event in events
        if isinstance(event, TextDelta | FunctionCallDelta)
    )
    return Usage(prompt_tokens=prompt, completion_tokens=estimate_tokens(answer))


def _as_text(message: Message) -> str:
    call = message.function_call
    return f"{message.get_text_content()}{call.name}{call.arguments}" if call else message.get_text_content()
