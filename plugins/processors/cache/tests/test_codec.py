"""What is written comes back as it was, and what somebody else wrote is refused without being quoted."""

from __future__ import annotations

from decimal import Decimal

import pytest

from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    TextDelta,
    UsageReported,
)
from jackfield.messages import ContentItem, Usage
from jackfield_cache.codec import decode, encode

ANSWER: list[ModelEvent] = [
    ReasoningDelta("hm"),
    TextDelta("half a \ud83d"),
    FunctionCallDelta(0, id="c1", name="f", arguments="{}"),
    MediaDelta(ContentItem(image="data:image/png;base64,AA==")),
    PluginEvent("a.b", {"x": [1, None]}),
    UsageReported(Usage(prompt_tokens=1, cost=Decimal("0.10"), currency="EUR")),
    ModelFinished("stop", data={"signature": "s"}, provider_reason="end_turn"),
]


def test_an_answer_comes_back_as_it_was() -> None:
    assert decode(encode(ANSWER)) == ANSWER


def test_what_json_cannot_hold_is_refused() -> None:
    deep: dict[str, object] = {}
    for _ in range(100_000):
        deep = {"x": deep}
    for data in ({"x": object()}, deep):
        with pytest.raises(ValueError, match=r"JSON|nested"):
            encode([ModelFinished("stop", data=data)])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"{}x",
        b"7",
        b"[[]]",
        b'[["text","what was kept before"]]',
        b'[{"event":"TextDelta","txet":"secret"}]',
        b'[{"event":"RunFailed","error":"secret","kind":"x"}]',
        b"[" * 100_000,
    ],
    ids=lambda content: str(content[:12]),
)
def test_what_are_no_events_is_a_value_error_that_quotes_nothing(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"^invalid event data \(\w+\)$"):
        decode(content)
