"""The order of processors: phases, then `after` and `before`, then names; never the order they were given in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield.events import ModelEvent, ModelFinished, StreamReset, TextDelta
from jackfield.models import fold
from jackfield.processors import (
    CallNext,
    Postprocessor,
    Preprocessor,
    Processor,
    StreamTransform,
    in_order,
    transformed,
)
from jackfield.request import ChatRequest

PHASES = ("output", "input", "context", "format", "transport")


def named(name: str, phase: Any = "context", after: Iterable[str] = (), before: Iterable[str] = ()) -> Processor:
    class Passing(Processor):
        def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
            return call_next(request)

    made = Passing()
    # The class variables of a class made on the spot.
    Passing.name, Passing.phase, Passing.after, Passing.before = name, phase, tuple(after), tuple(before)
    return made


def names(processors: Iterable[Processor]) -> list[str]:
    return [processor.name for processor in in_order(processors)]


def test_phases_go_from_the_caller_inwards_and_output_is_outermost() -> None:
    assert names(named(phase, phase) for phase in reversed(PHASES)) == list(PHASES)


def test_inside_a_phase_after_and_before_decide() -> None:
    assert names([named("a", after=["z"]), named("m", before=["z"]), named("z")]) == ["m", "z", "a"]


def test_ties_go_by_name() -> None:
    assert names([named("c"), named("a"), named("b")]) == ["a", "b", "c"]


def test_wishes_about_who_is_not_there_or_in_another_phase_count_for_nothing() -> None:
    assert names([named("a", after=["absent", "far"]), named("far", "transport")]) == ["a", "far"]


def test_a_circle_is_an_error_that_shows_it() -> None:
    with pytest.raises(ConfigError, match=r"circular: (a → b → a|b → a → b)"):
        in_order([named("a", after=["b"]), named("b", after=["a"])])


def test_two_of_one_name_and_an_unknown_phase_are_errors() -> None:
    with pytest.raises(ConfigError, match="two processors are named 'a'"):
        in_order([named("a"), named("a", "output")])
    with pytest.raises(ConfigError, match="'a': there is no phase 'middle'; use input, context"):
        in_order([named("a", "middle")])


LETTERS = "abcdef"
# A wish points only to letters before its own, so no circle can come about.
chains = st.lists(st.sampled_from(LETTERS), unique=True).flatmap(
    lambda chosen: st.tuples(
        *(
            st.tuples(
                st.just(name), st.sampled_from(PHASES), st.sets(st.sampled_from(LETTERS[: LETTERS.index(name) + 1]))
            )
            for name in chosen
        )
    )
)


@given(chains, st.randoms(use_true_random=False))
def test_the_order_given_never_matters_and_every_wish_is_kept(chain: Any, random: Any) -> None:
    made = [named(name, phase, after=wishes - {name}) for name, phase, wishes in chain]
    ordered = in_order(made)
    shuffled = list(made)
    random.shuffle(shuffled)
    assert in_order(shuffled) == ordered
    place = {processor.name: index for index, processor in enumerate(ordered)}
    phases = {processor.name: processor.phase for processor in made}
    for processor in made:
        for other in processor.after:
            if phases.get(other) == processor.phase:
                assert place[other] < place[processor.name]
    assert [PHASES.index(processor.phase) for processor in ordered] == sorted(PHASES.index(p) for p in phases.values())


# --- the two easy forms ---


class Shouting(Postprocessor):
    """Holds all text back until the end, and shouts it."""

    name = "shouting"

    class _Transform:
        def __init__(self) -> None:
            self.held = ""

        def feed(self, event: ModelEvent) -> Iterable[ModelEvent]:
            if isinstance(event, TextDelta):
                self.held += event.text
                return []
            return [TextDelta(self.held.upper()), event] if isinstance(event, ModelFinished) else [event]

    def start(self, request: ChatRequest) -> StreamTransform:
        return self._Transform()


async def stream_of(*events: ModelEvent) -> AsyncIterator[ModelEvent]:
    for event in events:
        yield event


def test_a_reset_starts_a_new_transform(gather: Callable[[AsyncIterator[Any]], list[Any]]) -> None:
    events = stream_of(TextDelta("lost"), StreamReset("again"), TextDelta("kept"), ModelFinished("stop"))
    request = ChatRequest("m", ())
    got = gather(transformed(events, lambda: Shouting().start(request)))
    assert got == [StreamReset("again"), TextDelta("KEPT"), ModelFinished("stop")]


def test_a_preprocessor_hands_the_stream_on_untouched() -> None:
    class Renaming(Preprocessor):
        name = "renaming"

        def prepare(self, request: ChatRequest) -> ChatRequest:
            return ChatRequest("other", request.messages)

    asked: list[ChatRequest] = []
    events = stream_of(TextDelta("a"))

    def call_next(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        asked.append(request)
        return events

    assert Renaming().wrap(call_next)(ChatRequest("m", ())) is events
    assert [request.model for request in asked] == ["other"]


@given(st.lists(st.text(max_size=4), max_size=6))
def test_cutting_the_stream_elsewhere_changes_nothing_behind_a_transform(pieces: list[str]) -> None:
    def folded(texts: list[str]) -> str:
        transform = Shouting().start(ChatRequest("m", ()))
        events = [*map(TextDelta, texts), ModelFinished("stop")]
        return fold(out for event in events for out in transform.feed(event)).get_content()

    assert folded(pieces) == folded(["".join(pieces)])
