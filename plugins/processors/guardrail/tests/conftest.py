"""What the tests share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable

import pytest

from jackfield import sync
from jackfield.events import ModelEvent
from jackfield.messages import Message
from jackfield.processors import CallNext, Processor
from jackfield.request import ChatRequest
from jackfield_testkit.streams import gathered

Ask = Callable[..., list[ModelEvent]]


@pytest.fixture(scope="session")
def question() -> ChatRequest:
    """A request."""
    return ChatRequest(model="m", messages=(Message("user", "hello"),))


@pytest.fixture(scope="session")
def ask(question: ChatRequest) -> Ask:
    """What a processor gives of one answer after the other; the requests are put into `asked`."""

    def ask(
        processor: Processor, *answers: Iterable[ModelEvent], asked: list[ChatRequest] | None = None
    ) -> list[ModelEvent]:
        left = list(answers)

        async def model(request: ChatRequest) -> AsyncIterator[ModelEvent]:
            if asked is not None:
                asked.append(request)
            for event in left.pop(0):
                yield event

        call_next: CallNext = model
        return sync.run(gathered(processor.around(question, call_next)))

    return ask
