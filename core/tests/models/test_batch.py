"""A batch: answers in the order of the requests, so many at a time, an error in its own place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from jackfield.config import LLMConfig
from jackfield.errors import ConfigError, ModelOverloadedError
from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.messages import Message, ModelResponse
from jackfield.models import BaseChatModel, BatchRequest
from jackfield.request import ChatRequest, ModelFacts
from jackfield.testing import ScriptedModel, answer

LOOK = {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {}}}


class Counting(BaseChatModel):
    """Answers with the question, later the longer it is; knows how many it had at once, and how many were cancelled."""

    backend = "counting"
    facts = ModelFacts()  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__(LLMConfig(model="m"), processors=[])
        self.running = self.most = self.cancelled = 0

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        self.running += 1
        self.most = max(self.most, self.running)
        text = request.messages[-1].get_text_content()
        try:
            for _ in range(len(text)):
                await asyncio.sleep(0)
            if text == "for ever":
                await asyncio.sleep(3600)
            if text.startswith("bad"):
                raise ModelOverloadedError("failed on purpose")
            if text == "fault":
                raise TypeError("a fault of the program")
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        yield TextDelta(f"{text}{len(request.functions)}{request.config.seed or ''}")
        yield ModelFinished("stop")


def texts(batch: list[object]) -> list[str]:
    return [one.get_content() if isinstance(one, ModelResponse) else type(one).__name__ for one in batch]


def test_answers_stand_in_the_order_of_the_requests_and_errors_in_their_places() -> None:
    ask = [{"role": "user", "content": "a history"}]
    requests = [
        "a long question",
        "b",
        "bad",
        [],
        ask,
        [{"rol": "user"}],
        BatchRequest(ask, [{"name": "f"}], {"seed": 7}),
    ]
    assert texts([*Counting().batch(requests)]) == [
        "a long question0",
        "b0",
        "ModelOverloadedError",
        "ConfigError",
        "a history0",
        "ConfigError",
        "a history17",
    ]


@pytest.mark.parametrize("concurrency", [1, 3, 50])
def test_never_more_are_on_their_way_than_allowed(concurrency: int) -> None:
    model = Counting()
    assert len(model.batch([f"question {number}" for number in range(20)], concurrency=concurrency)) == 20
    assert model.most == min(concurrency, 20)


def test_requests_are_taken_only_as_they_are_sent() -> None:
    taken = 0

    def requests() -> Iterator[str]:
        nonlocal taken
        for number in range(1000):
            taken += 1
            yield f"q{number}"

    async def first_three() -> list[int]:
        numbers = []
        events = Counting().abatch_as_completed(requests(), concurrency=2)
        async for number, _ in events:
            numbers.append(number)
            if len(numbers) == 3:
                break
        await events.aclose()
        return numbers

    assert sorted(asyncio.run(first_three())) == [0, 1, 2]
    assert taken <= 5


def test_answers_that_arrive_at_the_same_time_come_in_the_order_of_their_requests() -> None:
    async def numbers() -> list[int]:
        return [number async for number, _ in Counting().abatch_as_completed(["same"] * 40, concurrency=40)]

    assert asyncio.run(numbers()) == list(range(40))


def test_leaving_early_cancels_what_is_on_its_way() -> None:
    model = Counting()

    async def leave() -> tuple[int, int]:
        events = model.abatch_as_completed(["a", "for ever", "for ever"])
        await anext(events)
        await events.aclose()
        return model.cancelled, model.running

    assert asyncio.run(leave()) == (2, 0)  # before the loop ends, which would cancel them as well


def test_a_fault_in_the_program_is_raised_and_stops_the_rest() -> None:
    model = Counting()
    with pytest.raises(ConfigError, match="at least 1"):
        model.batch(["a"], concurrency=0)
    with pytest.raises(TypeError):
        model.batch(["for ever", "fault"])
    assert (model.running, model.cancelled) == (0, 1)
    assert model.batch([]) == []


def test_a_malformed_request_has_its_error_in_its_own_place() -> None:
    assert texts([*Counting().batch(["one", 3, "two"])]) == ["one0", "ConfigError", "two0"]
    model = Counting()
    empty = [" ", "", [Message("user", "")], BatchRequest([Message("user", "\n")])]
    assert texts([*model.batch(empty)]) == ["ConfigError"] * 4
    assert model.most == 0


def test_answers_come_as_they_arrive_with_the_number_of_their_request() -> None:
    class Later(ScriptedModel):
        async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
            text = request.messages[-1].get_text_content()
            if text == "slow":
                await gate.wait()
            for event in answer(f"{text} {request.config.seed} {len(request.functions)}"):
                yield event

    async def run() -> list[tuple[int, str]]:
        arrived = []
        async for number, one in model.abatch_as_completed(requests, concurrency=2):
            arrived.append((number, one.messages[0].content))  # type: ignore[union-attr]
            if len(arrived) == 2:
                gate.set()
        return arrived

    gate = asyncio.Event()
    model = Later([])
    requests = ["slow", "b", BatchRequest("c", functions=[LOOK], config={"seed": 7})]
    assert asyncio.run(run()) == [(1, "b None 0"), (2, "c 7 1"), (0, "slow None 0")]
    with pytest.raises(ConfigError, match="concurrency must be at least 1"):
        model.batch(["a"], concurrency=0)
    [empty, wrong] = model.batch([[], [{"role": "nobody", "content": "x"}]])
    assert isinstance(empty, ConfigError)
    assert str(wrong).startswith("invalid message in this request: ")
