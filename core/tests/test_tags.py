"""A tag is found wherever the text is cut, and nothing is held back but the beginning of one."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield.models import ThoughtSplitter
from jackfield.tags import StopSearch, Tags

# Few characters, so that tags overlap, contain each other and nearly come.
words = st.lists(st.text("ab<]", min_size=1, max_size=5), min_size=1, max_size=4)
texts = st.text("ab<]^", max_size=20)


@settings(max_examples=settings().max_examples * 3)
@given(texts, words, st.integers(0, 20))
def test_the_first_is_found_and_of_those_that_begin_there_the_longest(text: str, tags: list[str], start: int) -> None:
    found = Tags(*tags).search(text, start)
    places = [
        (place, -len(tag), tag) for tag in tags for place in range(start, len(text)) if text.startswith(tag, place)
    ]
    assert (found and (found.start(), -len(found[0]), found[0])) == min(places, default=None)


@settings(max_examples=settings().max_examples * 3)
@given(texts, words, st.integers(0, 20))
def test_what_is_held_back_begins_where_the_earliest_half_of_a_tag_does(text: str, tags: list[str], start: int) -> None:
    begun = [
        place
        for place in range(start, len(text))
        if any(tag.startswith(text[place:]) and tag != text[place:] for tag in tags)
    ]
    if Tags(*tags).search(text, start) is None:
        assert Tags(*tags).half(text, start) == min(begun, default=len(text))


@given(texts, words)
def test_a_text_that_may_hold_none_holds_none_and_begins_none(text: str, tags: list[str]) -> None:
    found = Tags(*tags)
    if not found.may_be_in(text):
        assert (found.search(text), found.half(text)) == (None, len(text))


def characters_searched(work: Any) -> int:
    """How long the texts are, together, that are handed to functions of C."""
    total = 0

    def count(frame: FrameType, event: str, what: Any) -> None:
        nonlocal total
        if event == "c_call" and isinstance(owner := getattr(what, "__self__", None), str):
            total += len(owner)

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return total


@pytest.mark.parametrize("piece", ["\n", "\n\n", "</th", "\nword"])
def test_to_take_a_thought_apart_looks_at_each_piece_a_bounded_number_of_times(piece: str) -> None:
    def think(pieces: int) -> None:
        splitter = ThoughtSplitter(inside=True)
        for _ in range(pieces):
            list(splitter.feed(piece))

    few, many = characters_searched(lambda: think(100)), characters_searched(lambda: think(1000))
    assert many < 15 * few


def test_how_far_a_stop_word_is_looked_for_does_not_grow_with_the_text() -> None:
    search = StopSearch(["</think>"])
    for _ in range(1000):
        search.feed("</thin")
    assert search.rest() == "</thin"


@pytest.mark.parametrize(
    ("words", "pieces", "shown", "found"),
    [
        (["END"], ["a E", "N", "Db"], "a ", "END"),
        (["END"], ["a E", "Nb"], "a ENb", ""),
        (["ab", "abc"], ["xabc"], "x", "ab"),
        (["abc", "b"], ["xabc"], "xa", "b"),
        (["bc", "abc"], ["xabc"], "x", "abc"),
        (["a"], ["bbb"], "bbb", ""),
        (["aa"], ["a", "b", "a"], "aba", ""),
    ],
)
def test_a_text_ends_at_the_stop_word_that_is_complete_first(
    words: list[str], pieces: list[str], shown: str, found: str
) -> None:
    search, texts = StopSearch(words), []
    for piece in pieces:
        texts.append(search.feed(piece))
        if search.found:
            break
    else:
        texts.append(search.rest())
    assert ("".join(texts), search.found) == (shown, found)
    assert search.rest() == ""


def test_half_a_tag_is_looked_for_from_a_position() -> None:
    tags = Tags("<think>", "<tool>")
    assert [tags.half(text) for text in ("a<th", "a<x", "a<", "<think", "a")] == [1, 3, 1, 0, 1]
    assert tags.half("<t", 1) == 2
    match = tags.search("a<tool><think>")
    assert match
    assert match[0] == "<tool>"


@pytest.mark.parametrize("tags", [("ab", "abc", "abcd"), ("abcd", "abc", "ab"), ("abc", "abcd", "ab")])
def test_the_longest_tag_wins_in_whatever_order_they_are_given(tags: tuple[str, ...]) -> None:
    found = Tags(*tags)
    assert [match[0] for text in ("xabcde", "xabce", "xabe") if (match := found.search(text))] == ["abcd", "abc", "ab"]
