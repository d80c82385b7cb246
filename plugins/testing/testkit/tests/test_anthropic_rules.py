"""The rules of Anthropic's protocol find what the provider's servers refuse."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield_testkit.anthropic_rules import MAX_CACHE_MARKS, problem_in

MARK = {"cache_control": {"type": "ephemeral"}}
marks = st.lists(st.booleans(), min_size=1, max_size=MAX_CACHE_MARKS + 1)


def block(text: str, *, is_marked: bool) -> dict[str, Any]:
    return {"type": "text", "text": text, **(MARK if is_marked else {})}


def body_of(system: list[bool], tools: list[bool], content: list[bool]) -> dict[str, Any]:
    """Return a request in which these parts are marked for the cache."""
    return {
        "model": "test-model",
        "max_tokens": 100,
        "system": [block("Be brief.", is_marked=is_marked) for is_marked in system],
        "tools": [
            {"name": f"tool_{number}", "input_schema": {"type": "object"}, **(MARK if is_marked else {})}
            for number, is_marked in enumerate(tools)
        ],
        "messages": [{"role": "user", "content": [block("Hi", is_marked=is_marked) for is_marked in content]}],
    }


@given(marks, marks, marks)
def test_marks_for_the_cache_count_wherever_they_are(
    system: list[bool], tools: list[bool], content: list[bool]
) -> None:
    problem = problem_in(body_of(system, tools, content))
    is_refused = [*system, *tools, *content].count(True) > MAX_CACHE_MARKS
    assert problem == ("A maximum of 4 blocks with cache_control may be provided" if is_refused else "")


@pytest.mark.parametrize("place", range(3), ids=["system", "tools", "content"])
def test_each_place_for_marks_has_the_same_limit(place: int) -> None:
    for count, is_refused in ((MAX_CACHE_MARKS, False), (MAX_CACHE_MARKS + 1, True)):
        parts = [[False], [False], [False]]
        parts[place] = [True] * count
        assert bool(problem_in(body_of(*parts))) is is_refused
