"""Which part of a conversation a summary replaces, and what of it stays whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield_truncation.turns import turns_of
from jackfield_truncation.view import PINNED, Sizes, View, next_view, numbered_from

SIZE = 10
ROLES = st.lists(st.sampled_from(["user", "assistant", "step", "system", "pinned"]), min_size=1, max_size=30)


def _history(kinds: list[str]) -> list[Message]:
    history: list[Message] = []
    for kind in kinds:
        if kind == "step":
            history.append(Message("assistant", "", function_call=FunctionCall("read", "{}")))
            history.append(Message("function", "result", name="read"))
        elif kind == "pinned":
            history.append(Message("assistant", "note", extra={PINNED: True}))
        else:
            history.append(Message(kind, "text"))
    return history


def _sizes(history: list[Message]) -> Sizes:
    sizes = Sizes()
    sizes.take(history, lambda _: SIZE)
    return sizes


@given(ROLES, st.integers(1, 3), st.integers(SIZE, 40 * SIZE), st.booleans())
def test_no_view_loses_a_system_message_a_pinned_step_or_the_last_question_and_step(
    kinds: list[str], turns: int, most: int, has_system: bool
) -> None:
    history = [*([Message("system", "Be brief.")] if has_system else []), *_history(kinds)]
    view = next_view(history, _sizes(history), before=View(), turns=turns, most=most)
    said = history[numbered_from(history) :]
    covered = {number - 1 for number in view.covered()}
    for place in covered:
        assert said[place].role != "system"
        assert not (said[place].extra or {}).get(PINNED)
    all_turns = turns_of(said)
    if all_turns:
        last = all_turns[-1]
        assert last.user not in covered
        for step in last.steps[-1:]:
            assert not covered & set(step)
    for turn in all_turns:
        for step in turn.steps:
            assert covered & set(step) in (set(), set(step)), "a call is parted from its result"


@given(st.integers(1, 4), st.integers(5, 12))
def test_as_many_recent_turns_stay_whole_as_are_wanted_if_they_are_short(turns: int, count: int) -> None:
    history = _history(["user", "assistant"] * count)
    most = 2 * SIZE * turns * 4 // 3 + SIZE
    view = next_view(history, _sizes(history), before=View(), turns=turns, most=most)
    assert view.through <= len(history) - 2 * turns


def test_only_the_newest_files_stay_and_no_more_of_them_than_a_quarter() -> None:
    picture = Message("user", [ContentItem(image="https://example.org/a.png")])
    answered = Message("assistant", "text")
    history = [picture, answered] * 6 + [Message("user", "text"), answered] * 6
    view = next_view(history, _sizes(history), before=View(), turns=1, most=12 * SIZE)
    assert sorted(view.kept) == [7, 9, 11]
    sizes = Sizes()
    sizes.take(history, lambda message: SIZE * 3 if message is answered else SIZE)
    assert sorted(next_view(history, sizes, before=View(), turns=1, most=12 * SIZE).kept) == [7, 9, 11]
