"""A piece belongs to one call, however its server marks it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.events import FunctionCallDelta
from jackfield_http import Calls

ARGUMENTS = '{"city": "Bonn"}'


@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), min_size=1, max_size=4), st.data())
def test_interleaved_calls_are_put_together_by_their_index(heads: list[tuple[str, bool]], data: st.DataObject) -> None:
    calls = Calls()
    texts = [json.dumps({"n": number}) for number in range(len(heads))]
    rest = dict(enumerate(texts))
    events = [
        calls.add_piece(number, f"id{number}" if has_id else "", name, "")
        for number, (name, has_id) in enumerate(heads)
    ]
    while rest:
        number = data.draw(st.sampled_from(sorted(rest)))
        name = data.draw(st.sampled_from(["", heads[number][0]]))
        events.append(calls.add_piece(number, "", name, rest[number][:3]))
        rest[number] = rest[number][3:]
        if not rest[number]:
            del rest[number]
    for number, (name, has_id) in enumerate(heads):
        own = [event for event in events if event.index == number]
        assert "".join(event.arguments for event in own) == texts[number]
        assert [event.name for event in own if event.name] == [name]
        assert [event.id for event in own if event.id] == ([f"id{number}"] if has_id else [])


@pytest.mark.parametrize(
    ("second", "number"),
    [
        ((0, "", "", "more"), 0),  # the rest of the first
        ((0, "new", "", "more"), 0),  # some servers make up an id for each piece
        ((0, "c1", "f", "{}"), 0),  # the name again
        ((0, "c2", "f", "{}"), 1),
        ((0, "", "g", "{}"), 1),
        ((0, "", "f", " {}"), 1),  # arguments that begin anew
        ((None, "", "", "more"), 0),
        ((None, "c2", "", ""), 1),
        ((None, "", "g", ""), 1),
        ((1, "", "", ""), 1),
    ],
)
def test_a_server_that_leaves_out_the_index_or_repeats_it_is_understood(
    second: tuple[int | None, str, str, str], number: int
) -> None:
    calls = Calls()
    assert not calls
    assert calls.add_piece(0, "c1", "f", ARGUMENTS) == FunctionCallDelta(0, "c1", "f", ARGUMENTS)
    assert calls
    assert calls.add_piece(*second).index == number


def test_arguments_that_are_not_over_do_not_begin_anew() -> None:
    calls = Calls()
    calls.add_piece(0, "", "f", '{"a": ')
    assert calls.add_piece(0, "", "f", "{}}") == FunctionCallDelta(0, "", "", "{}}")


@pytest.mark.parametrize(
    "arguments", ["[]", "1", "\ud83d", "[" * 100_000, "{} {}"], ids=["list", "number", "half", "deep", "two"]
)
def test_arguments_that_are_no_whole_object_are_continued(arguments: str) -> None:
    calls = Calls()
    calls.add_piece(0, "", "f", arguments)
    assert calls.add_piece(0, "", "f", "{}").index == 0


def test_a_name_that_comes_late_or_again_belongs_to_its_call() -> None:
    calls = Calls()
    assert calls.add_piece(0, "", "", "") == FunctionCallDelta(0, "", "", "")
    assert calls.add_piece(0, "", "f", "{}") == FunctionCallDelta(0, "", "f", "{}")
    assert calls.add_piece(0, "c", "f", "") == FunctionCallDelta(0, "c", "", "")
    assert calls.add_piece(0, "c", "f", "") == FunctionCallDelta(0, "", "", "")
    assert calls.add_piece(0, "c", "g", "") == FunctionCallDelta(0, "", "", "")
    assert calls.add_piece(0, "d", "", "") == FunctionCallDelta(0, "d", "", "")


def test_a_call_that_begins_at_an_index_takes_it_over() -> None:
    calls = Calls()
    calls.add_piece(0, "a", "f", "{}")
    assert calls.add_piece(0, "b", "g", "{").index == 1
    assert calls.add_piece(0, "", "", "}").index == 1
    assert calls.add_piece(None, "b2", "h", "{").index == 2
    assert calls.add_piece(None, "b2", "", "}").index == 2


def test_whole_calls_are_never_one_call() -> None:
    calls = Calls()
    events = [calls.add_whole("", "f", ""), calls.add_whole("", "f", ""), calls.add_whole("c", "g", "{}")]
    assert events == [
        FunctionCallDelta(0, "", "f", ""),
        FunctionCallDelta(1, "", "f", ""),
        FunctionCallDelta(2, "c", "g", "{}"),
    ]
