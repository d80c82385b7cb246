"""The buffer of live events stays within its size, however many events come and however slow the readers are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jackfield.events import (
    AgentEvent,
    FunctionCallDelta,
    ModelEvent,
    ReasoningDelta,
    RunEvent,
    TextDelta,
    ToolProgress,
    TurnFinished,
)
from jackfield.messages import Usage
from jackfield_serving.buffer import EventBuffer
from jackfield_serving.numbering import STRIDE

EVENTS: dict[str, Callable[[int], ModelEvent | AgentEvent]] = {
    "one text": lambda _: TextDelta("piece "),
    "texts that alternate": lambda number: (TextDelta, ReasoningDelta)[number % 2]("piece "),
    "calls that alternate": lambda number: FunctionCallDelta(number % 7, arguments="piece "),
    "progress": lambda number: ToolProgress(0, f"call {number % 3}", f"{number} %"),
    "progress between texts": lambda number: (TextDelta("a"), ToolProgress(0, "c", "b"), ReasoningDelta("c"))[
        number % 3
    ],
}


@pytest.mark.parametrize("name", EVENTS)
def test_an_answer_without_an_end_takes_a_bounded_number_of_events(name: str) -> None:
    buffer = EventBuffer(0, max_events=200, max_chars=10_000)
    for number in range(10_000):
        assert buffer.add(RunEvent("r", number, "a", 0, EVENTS[name](number)))
        if number % 50 == 0:
            assert len(buffer.after(0) or ()) <= 400
    texts = [one.event.event.text for one in buffer.after(0) or () if isinstance(one.event.event, TextDelta)]
    wanted = [EVENTS[name](number) for number in range(10_000)]
    assert "".join(texts) == "".join(one.text for one in wanted if isinstance(one, TextDelta))


def test_an_answer_that_is_too_long_for_its_numbers_comes_once_it_is_complete() -> None:
    buffer = EventBuffer(0, max_events=200, max_chars=10_000)
    piece = "x" * 1_000_000
    taken = [buffer.add(RunEvent("r", number, "a", 0, TextDelta(piece))) for number in range(12)]
    assert taken == [True] * 8 + [False] * 4
    end = RunEvent("r", 12, "a", 0, TurnFinished(1, (), Usage()))
    buffer.add_step(end, 1)
    assert (buffer.after(STRIDE - 1), buffer.after(STRIDE)) == (None, [])
    assert buffer.add(RunEvent("r", 13, "a", 0, TextDelta("more")))
