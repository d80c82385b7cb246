"""A growing text is wrapped between words."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.cli import width_of
from jackfield_terminal.word_wrap import WordWrapper

TEXT = "Let me think about it for a while:\n\nfirst, this. 然后考虑中文的情况，包括jackfield这样的词。 Then the rest."


@given(st.lists(st.integers(0, len(TEXT)), max_size=30), st.sampled_from([20, 40, 80, 200]))
def test_the_pieces_do_not_matter_and_no_word_is_cut(cuts: list[int], columns: int) -> None:
    wrapper = WordWrapper()
    places = [0, *sorted(cuts), len(TEXT)]
    out = "".join(wrapper.feed(TEXT[start:end], columns) for start, end in itertools.pairwise(places))
    out += wrapper.finish(columns)
    assert "".join(out.split()) == "".join(TEXT.split())
    assert max(width_of(line.rstrip()) for line in out.split("\n")) <= columns
    words = [word for word in TEXT.split() if word.isascii()]
    assert [word for word in words if word not in out.split()] == []
    whole = WordWrapper()
    assert out == whole.feed(TEXT, columns) + whole.finish(columns)


def test_every_width_gives_whole_words_also_character_by_character() -> None:
    for columns in range(16, 80):
        wrapper = WordWrapper()
        out = "".join(wrapper.feed(char, columns) for char in TEXT) + wrapper.finish(columns)
        assert max(width_of(line.rstrip()) for line in out.split("\n")) <= columns
        assert [word for word in TEXT.split() if word.isascii() and word not in out.split()] == []


@pytest.mark.parametrize(
    ("text", "columns", "out"),
    [
        ("one two", 7, "one two"),
        ("one two", 6, "one\ntwo"),
        ("one two three", 7, "one two\nthree"),
        ("a bb ccc dd e", 4, "a bb\nccc\ndd e"),
        ("ab\ncd ef", 5, "ab\ncd ef"),
        ("ab \ncd", 5, "ab \ncd"),
        ("abcdefgh ij", 4, "abcdefgh\nij"),
        ("abcdefghi jk", 4, "abcdefghi jk"),
        ("", 4, ""),
    ],
)
def test_a_line_is_full_when_the_next_word_has_no_room(text: str, columns: int, out: str) -> None:
    wrapper = WordWrapper()
    shown = wrapper.feed(text, columns) + wrapper.finish(columns)
    assert "\n".join(line.rstrip() for line in shown.split("\n")) == "\n".join(
        line.rstrip() for line in out.split("\n")
    )


def test_the_next_text_begins_at_the_start_of_a_line() -> None:
    wrapper = WordWrapper()
    for _ in range(2):
        assert wrapper.feed("seven letters", 20) + wrapper.finish(20) == "seven letters"
