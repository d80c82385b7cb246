"""Which stop word is the first, and what may be shown before it is known."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield_backend.stops import StopSearch

# Few letters, so that words overlap, contain each other and nearly come.
LETTERS = st.text("ab\n", max_size=30)
WORDS = st.lists(st.text("ab\n", min_size=1, max_size=5), min_size=1, max_size=4)
PIECES = st.lists(st.text("ab\n", max_size=6), max_size=12)


def _letter_by_letter(text: str, words: list[str]) -> tuple[str, str]:
    """What a server does that looks after each character: the text before the stop word, and the word."""
    for end in range(1, len(text) + 1):
        ended = [word for word in words if text[:end].endswith(word)]
        if ended:
            longest = max(ended, key=len)
            return text[: end - len(longest)], longest
    return text, ""


def _searched(pieces: list[str], words: list[str]) -> tuple[list[str], str]:
    search, shown = StopSearch(words), []
    for piece in pieces:
        shown.append(search.feed(piece))
        if search.found:
            return shown, search.found
    return [*shown, search.rest()], ""


@settings(max_examples=400)
@given(PIECES, WORDS)
def test_however_a_text_is_cut_it_stops_where_one_that_looks_at_each_letter_stops(
    pieces: list[str], words: list[str]
) -> None:
    shown, found = _searched(pieces, words)
    assert ("".join(shown), found) == _letter_by_letter("".join(pieces), words)


@settings(max_examples=200)
@given(PIECES, WORDS)
def test_nothing_is_held_back_but_what_a_stop_word_may_begin_with(pieces: list[str], words: list[str]) -> None:
    search, text, shown = StopSearch(words), "", 0
    for piece in pieces:
        shown += len(search.feed(piece))
        text += piece
        if search.found:
            return
        held = text[shown:]
        assert not held or any(word.startswith(held) and word != held for word in words)


@given(LETTERS, LETTERS, WORDS)
def test_what_is_shown_is_never_taken_back(first: str, then: str, words: list[str]) -> None:
    shown, _ = _letter_by_letter(first + then, words)
    assert shown.startswith(StopSearch(words).feed(first))


@given(st.text(max_size=30), st.text(min_size=1, max_size=5), st.text(max_size=10))
def test_any_characters_may_be_in_a_stop_word(before: str, word: str, after: str) -> None:
    shown, found = _searched(list(before + word + after), [word])
    assert ("".join(shown), found) == _letter_by_letter(before + word + after, [word])
    assert found == word


def test_characters_that_only_look_alike_do_not_stop() -> None:
    search = StopSearch(["é", "STOP"])
    assert search.feed("e\u0301 stop ＳＴＯＰ") == "e\u0301 stop ＳＴＯＰ"
    assert search.found == ""
