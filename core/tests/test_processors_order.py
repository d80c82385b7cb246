"""The order of processors: phases, then `after` and `before`, then names, whatever the order they were given in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield.events import ModelEvent
from jackfield.processors import CallNext, Preprocessor, Processor, in_order
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
    with pytest.raises(ConfigError, match="two processors in the chain are named 'a'"):
        in_order([named("a"), named("a", "output")])
    with pytest.raises(ConfigError, match="'a': unknown phase 'middle'; use input, context"):
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


def processor(name: str, phase: str = "context", after: Any = (), before: Any = ()) -> Any:
    class Named(Preprocessor):
        def prepare(self, request: ChatRequest) -> ChatRequest:
            return request

    made = Named()
    vars(made).update(name=name, phase=phase, after=after, before=before)
    return made


@pytest.mark.parametrize(
    ("processors", "order", "names"),
    [
        ([("b",), ("a",)], (), "ab"),
        ([("a", "context", ("b",)), ("b",)], (), "ba"),
        ([("a",), ("b", "context", (), ("a",))], (), "ba"),
        ([("a", "format"), ("b", "input"), ("c", "output"), ("d", "transport"), ("e", "context")], (), "cbead"),
        ([("a", "format", ("b",)), ("b", "input")], (), "ba"),
        ([("a", "context", ("gone",)), ("b",)], (), "ab"),
        ([("a",), ("b",), ("c",)], ("c", "a"), "cba"),
        ([("a",), ("b",), ("c",)], ("c", "gone", "c", "b"), "acb"),
        ([("a", "context", ("b",)), ("b", "context", ("a",))], ("a", "b"), "ab"),
        ([("a", "format"), ("b", "input")], ("a", "b"), "ab"),
    ],
    ids=str,
)
def test_processors_are_in_the_order_of_phases_wishes_and_the_list(processors: Any, order: Any, names: str) -> None:
    assert "".join(one.name for one in in_order([processor(*one) for one in processors], order)) == names


@pytest.mark.parametrize(
    ("processors", "said"),
    [
        ([("a",), ("a",)], "two processors in the chain are named 'a': remove one of them"),
        ([("a", "middle")], "processor 'a': unknown phase 'middle'; use input, context, format, transport, output"),
        ([("a", "context", ("b",)), ("b", "context", ("a",))], "the processor order is circular: "),
    ],
)
def test_an_order_that_cannot_be_is_refused(processors: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        in_order([processor(*one) for one in processors])
    assert str(caught.value).startswith(said)


def test_a_list_of_names_overrides_only_the_wishes_between_those_that_it_has() -> None:
    processors = [named("a", after=["z"]), named("b"), named("z")]
    assert [one.name for one in in_order(processors, ["b", "a"])] == ["b", "z", "a"]
    assert [one.name for one in in_order(processors, ["a", "z"])] == ["a", "b", "z"]
