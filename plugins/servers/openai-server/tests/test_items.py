"""Texts of an answer in any pieces, also of a second attempt that repeats what was shown of the first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.events import ReasoningDelta, RunEvent, RunFinished, StreamReset, TextDelta, TurnFinished
from jackfield.messages import Message, Usage
from jackfield_openai_server.items import AnswerEnded, Began, Change, Ended, Grew, ItemFold, TextItem


def cut(text: str, places: Iterable[int]) -> list[str]:
    ends = sorted({min(place, len(text)) for place in places} | {0, len(text)})
    return [text[start:end] for start, end in pairwise(ends)]


def feed(fold: ItemFold, *events: object) -> Iterator[Change]:
    for event in events:
        yield from fold.feed(RunEvent("run", 1, "agent", 0, event))  # type: ignore[arg-type]


def end_of(thought: str, text: str) -> tuple[object, ...]:
    messages = (Message("assistant", text, reasoning_content=thought or None),)
    return TurnFinished(1, messages, Usage()), RunFinished("finished", messages, Usage())


CUTS = st.lists(st.integers(0, 12), max_size=6)
TEXTS = st.text("ab ", min_size=1, max_size=12)


ATTEMPTS = st.lists(st.tuples(CUTS, CUTS, st.integers(1, 6)), min_size=1, max_size=3)


@given(TEXTS, TEXTS, ATTEMPTS, CUTS)
def test_further_attempts_in_other_pieces_show_each_text_once(
    thought: str, text: str, attempts: list[tuple[list[int], list[int], int]], last: list[int]
) -> None:
    fold = ItemFold()
    events: list[object] = []
    for of_thought, of_text, broken_after in attempts:
        pieces = [*map(ReasoningDelta, cut(thought, of_thought)), *map(TextDelta, cut(text, of_text))]
        events += [*pieces[:broken_after], StreamReset("it broke")]
    whole = [*map(ReasoningDelta, cut(thought, last)), *map(TextDelta, cut(text, last))]
    passed_on = list(feed(fold, *events, *whole))
    assert "".join(change.piece for change in passed_on if isinstance(change, Grew)) == thought + text
    changes = [*passed_on, *feed(fold, *end_of(thought, text))]
    assert not fold.is_broken
    items = [change.item for change in changes if isinstance(change, Ended)]
    assert [(item.kind, item.text) for item in items if isinstance(item, TextItem)] == [
        ("reasoning", thought),
        ("message", text),
    ]
    assert len([change for change in changes if isinstance(change, Began)]) == 2
    for kind, whole in (("reasoning", thought), ("message", text)):
        pieces = [change.piece for change in changes if isinstance(change, Grew) and change.item.kind == kind]
        assert "".join(pieces) == whole
    assert isinstance(changes[-1], AnswerEnded)


@given(TEXTS, TEXTS, CUTS, CUTS)
def test_a_second_attempt_that_differs_breaks_the_answer(
    text: str, other: str, first: list[int], second: list[int]
) -> None:
    fold = ItemFold()
    pieces = [*map(TextDelta, cut(text, first)), StreamReset("it broke"), *map(TextDelta, cut(other, second))]
    list(feed(fold, *pieces, *end_of("", other)))
    assert fold.is_broken == (not other.startswith(text))


def test_a_long_text_is_put_together_once() -> None:
    fold = ItemFold()
    changes = list(feed(fold, *[TextDelta("piece ")] * 100))
    assert [change.item.text for change in changes if isinstance(change, Grew)] == [""] * 100
    (ended,) = [change for change in feed(fold, *end_of("", "piece " * 100)) if isinstance(change, Ended)]
    assert isinstance(ended.item, TextItem)
    assert ended.item.text == "piece " * 100


def test_the_whole_of_an_answer_is_shown_at_the_end_only_if_no_turn_has_shown_it() -> None:
    whole = (Message("assistant", "All of it."),)
    end = RunFinished("finished", whole, Usage())
    for before in ((), (TurnFinished(1, whole, Usage()),)):
        changes = list(feed(ItemFold(), *before, end))
        texts = [
            change.item.text for change in changes if isinstance(change, Ended) and isinstance(change.item, TextItem)
        ]
        assert texts == ["All of it."]
        assert isinstance(changes[-1], AnswerEnded)


def test_nothing_follows_the_end_of_an_answer() -> None:
    fold = ItemFold()
    list(feed(fold, TextDelta("Hi"), *end_of("", "Hi")))
    assert fold.is_over
    assert list(feed(fold, TextDelta("more"), ReasoningDelta("Hm"), *end_of("", "more"))) == []
    assert [item.text for item in fold.items if isinstance(item, TextItem)] == ["Hi"]


@pytest.mark.parametrize(
    ("thought", "text"), [("Hm, low.", ""), ("", "High."), ("Low.", "Hm")], ids=["a thought", "another text", "both"]
)
def test_a_turn_that_was_shown_in_other_words_is_left_as_it_was_shown(thought: str, text: str) -> None:
    fold = ItemFold()
    list(feed(fold, TextDelta("Hm"), *end_of(thought, text)))
    assert not fold.is_broken
    assert [(item.kind, item.text) for item in fold.items if isinstance(item, TextItem)] == [("message", "Hm")]
