"""The turns of a conversation, and their steps."""

from __future__ import annotations

import pytest

from jackfield.messages import Message
from jackfield_truncation.turns import Turn, turns_of


def history(roles: str) -> list[Message]:
    names = {"s": "system", "u": "user", "a": "assistant", "f": "function"}
    return [Message(names[role], "x", name="t" if role == "f" else None) for role in roles]


@pytest.mark.parametrize(
    ("roles", "turns"),
    [
        ("", []),
        ("s", []),
        ("u", [Turn(0, ())]),
        ("sua", [Turn(1, ((2,),))]),
        ("uaffa", [Turn(0, ((1, 2, 3), (4,)))]),
        ("uaaffaf", [Turn(0, ((1, 2, 3, 4), (5, 6)))]),
        ("uua", [Turn(0, ()), Turn(1, ((2,),))]),
        ("afua", [Turn(None, ((0, 1),)), Turn(2, ((3,),))]),
        ("uasfa", [Turn(0, ((1, 3), (4,)))]),
        ("uffa", [Turn(0, ((1, 2), (3,)))]),
    ],
)
def test_a_step_is_an_answer_with_the_results_of_its_calls(roles: str, turns: list[Turn]) -> None:
    found = turns_of(history(roles))
    assert found == turns
    places = [place for turn in found for place in turn.places]
    assert places == [number for number, role in enumerate(roles) if role != "s"]
