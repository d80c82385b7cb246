"""Which call a result belongs to: no result is lost, and none is used twice."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.messages import FunctionCall, Message
from jackfield.models._pairing import OpenCall, pair_results


def call(call_id: str | None, name: str) -> OpenCall:
    return OpenCall("", call_id, FunctionCall(name, "{}"))


def result(call_id: str | None, name: str, text: str = "") -> Message:
    return Message("function", text, name=name, extra=None if call_id is None else {"function_id": call_id})


@pytest.mark.parametrize(
    ("calls_", "results", "found", "left"),
    [
        ([("1", "f"), ("2", "g")], [("1", "f"), ("2", "g")], [0, 1], []),
        ([("1", "f"), ("2", "g")], [("2", "g"), ("1", "f")], [1, 0], []),
        ([("1", "f"), ("1", "g")], [("1", "g"), ("1", "f")], [1, 0], []),
        ([("1", "f")], [("1", "other")], [0], []),
        ([("1", "f")], [("2", "f")], [0], []),
        ([(None, "f"), (None, "f")], [(None, "f"), (None, "f")], [0, 1], []),
        ([(None, "f"), (None, "g")], [(None, "g"), (None, "f")], [1, 0], []),
        ([("1", "f"), ("2", "f")], [("2", "f")], [None, 0], []),
        ([("1", "f")], [("1", "f"), ("1", "f")], [0], [1]),
        ([("1", "f")], [("2", "g")], [None], [0]),
        ([("1", "f"), ("2", "g")], [("2", "f"), ("1", "g")], [1, 0], []),
        ([], [("1", "f")], [], [0]),
    ],
)
def test_a_result_belongs_to_the_call_with_its_id_and_name_then_its_id_then_its_name(
    calls_: Any, results: Any, found: list[int | None], left: list[int]
) -> None:
    messages = [result(*one, text=str(number)) for number, one in enumerate(results)]
    paired, unpaired = pair_results(list(itertools.starmap(call, calls_)), messages)
    assert [None if one is None else int(one.content) for one in paired] == found  # type: ignore[arg-type]
    assert [int(one.content) for one in unpaired] == left  # type: ignore[arg-type]


ends = st.tuples(st.none() | st.sampled_from("12"), st.sampled_from("fg"))


@given(st.lists(ends, max_size=5), st.lists(ends, max_size=5))
def test_no_result_is_lost_or_used_twice(calls_: Any, results: Any) -> None:
    messages = [result(*one) for one in results]
    paired, left = pair_results(list(itertools.starmap(call, calls_)), messages)
    used = [id(one) for one in paired if one is not None] + [id(one) for one in left]
    assert sorted(used) == sorted(map(id, messages))
    for one, message in zip(calls_, paired, strict=True):
        assert message is None or message.function_id == one[0] or message.name == one[1]
