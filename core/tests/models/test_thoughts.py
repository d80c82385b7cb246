"""Thoughts at the beginning of an answer, wherever it is cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.events import ReasoningDelta, TextDelta
from jackfield.models import ThoughtSplitter

CASES = {
    # What the model wrote, whether the prompt opened a thought, the reasoning, the text.
    "a thought and an answer": ("<think>\nwhy\n\nnot\n</think>\n\nYes.\n", False, "why\n\nnot", "Yes.\n"),
    "white space before it": (" \n<think>why</think>Yes.", False, "why", "Yes."),
    "opened by the prompt": ("\nwhy\n</think>\n\nYes.", True, "why", "Yes."),
    "opened by the prompt and by the model": ("\n<think>\nwhy</think>Yes.", True, "why", "Yes."),
    "opened by the prompt, and a tag that is none": ("<thin", True, "<thin", ""),
    "an empty one": ("<think>\n\n</think>\n\nYes.", False, "", "Yes."),
    "one without an end": ("<think>\nwhy\n</thi", False, "why\n</thi", ""),
    "none": ("\n  Yes, <think> is a tag.</think>", False, "", "\n  Yes, <think> is a tag.</think>"),
    "a tag later": ("Yes. <think>no</think>", False, "", "Yes. <think>no</think>"),
    "half a tag": ("<thin", False, "", "<thin"),
    "two": ("<think>a</think><think>b</think>", False, "a", "<think>b</think>"),
    "only white space": ("  \n", False, "", "  \n"),
    "nothing": ("", False, "", ""),
    "nothing after it": ("<think>a</think>\n", False, "a", ""),
    "Windows line ends": ("<think>\r\nwhy\r\n</think>\r\n\r\nYes.", False, "why", "Yes."),
    "an indented answer": ("<think>why</think>\n\n  Yes.", False, "why", "  Yes."),
    "an indented thought": ("<think>\n  why</think>Yes.", False, "  why", "Yes."),
}


def split(pieces: list[str], *, inside: bool) -> tuple[str, str]:
    splitter = ThoughtSplitter(inside=inside)
    events = [event for piece in pieces for event in splitter.feed(piece)]
    events += splitter.finish()
    return (
        "".join(event.text for event in events if isinstance(event, ReasoningDelta)),
        "".join(event.text for event in events if isinstance(event, TextDelta)),
    )


@pytest.mark.parametrize("case", CASES)
def test_a_thought_is_told_from_the_answer(case: str) -> None:
    text, inside, reasoning, answer = CASES[case]
    assert split([text], inside=inside) == (reasoning, answer)


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "\n", "a", " ", "<", "</thi", "nk>", "录"]), max_size=14).map(
        "".join
    ),
    st.lists(st.integers(0, 40), max_size=10),
    st.booleans(),
)
def test_where_it_is_cut_makes_no_difference(text: str, cuts: list[int], inside: bool) -> None:
    places = sorted({0, *(cut for cut in cuts if cut < len(text)), len(text)})
    pieces = [text[start:end] for start, end in pairwise(places)]
    assert split(pieces, inside=inside) == split([text], inside=inside) == split(list(text), inside=inside)


def test_of_an_empty_thought_something_is_told() -> None:
    # Who reads the answer for tool calls must know that the thought was taken out.
    events = list(ThoughtSplitter(inside=True).feed("\n</think>\n\nYes."))
    assert events == [ReasoningDelta(""), TextDelta("Yes.")]
