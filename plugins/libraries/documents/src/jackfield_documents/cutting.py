"""Cut a text into parts with a limited number of tokens, where a reader would cut it if possible."""

from __future__ import annotations

import itertools
import re
import unicodedata
from bisect import bisect
from collections.abc import Iterator

from jackfield.tokenizers import TokenCounter

# A run of signs is looked at from its first one only, and nothing is given back: a million of them take no longer.
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"')\]”’]*+\s++|(?<![。！？；…])[。！？；…]++[”’」』）]*+\s*+|\n++")
_LINE_END = re.compile(r"\n+")
_WORD_END = re.compile(r"\s+|[，、：,;:]+")
LEAST_FILLED = 0.85  # of the room: a good place to cut is not worth more than the rest


def cut_to_fit(text: str, max_tokens: int, count_tokens: TokenCounter, *, by_line: bool = False) -> Iterator[str]:
    """Cut a text into parts of at most `max_tokens`; nothing is lost between them.

    It cuts after a sentence, else after a word, else anywhere; with `by_line` after a line, else anywhere: where that
    leaves no more than 15 % of the room empty. A part is a single character where even that has too many tokens.
    """
    start = length = 0
    while start < len(text):
        # A text goes on as it was: with the length of the part before, one count is mostly enough.
        fitting = _head_that_fits(text, max_tokens, count_tokens, start=start, by_line=by_line, guess=length)
        length = max(1, fitting)
        yield text[start : start + length]
        start += length


def head_that_fits(
    text: str, max_tokens: int, count_tokens: TokenCounter, *, start: int = 0, by_line: bool = False
) -> int:
    """How many characters from `start` fit into `max_tokens`, up to a good place to cut; 0 if not even one does."""
    return _head_that_fits(text, max_tokens, count_tokens, start=start, by_line=by_line, guess=0)


def _head_that_fits(
    text: str, max_tokens: int, count_tokens: TokenCounter, *, start: int, by_line: bool, guess: int
) -> int:
    length, too_long = _long_head(text, start, max_tokens, count_tokens, guess)
    if start + length >= len(text):
        return length
    for end in _good_ends(text, start, length, too_long, by_line):
        # A shorter text may have more tokens: vocabularies keep some runs together.
        if LEAST_FILLED * max_tokens <= count_tokens(text[start:end]) <= max_tokens:
            return end - start
    whole = _not_inside_a_character(text, start, start + length) - start
    return whole if whole and count_tokens(text[start : start + whole]) <= max_tokens else length


def tail_from_a_sentence(text: str, max_chars: int) -> str:
    """The end of a text, at most `max_chars`, starting at a sentence, else at a word, if that keeps half of it."""
    if len(text) <= max_chars:
        return text
    first = len(text) - max_chars
    for ending in (_SENTENCE_END, _WORD_END):
        found = ending.search(text, first)
        if found and 2 * (found.end() - first) <= max_chars and found.end() < len(text):
            return text[found.end() :]
    while first < len(text) and unicodedata.combining(text[first]):  # an accent whose letter is left out
        first += 1
    return text[first:]


def _long_head(text: str, start: int, max_tokens: int, count_tokens: TokenCounter, guess: int) -> tuple[int, int]:
    """A length that fits and is nearly as long as possible, and one that does not fit.

    `guess` is where it may be, 0 if nobody knows.
    """
    rest = len(text) - start
    fits, too_long, filled = 0, rest + 1, 0
    guess = min(rest, guess or max(1, 3 * max_tokens))
    for attempt in itertools.count():
        tokens = count_tokens(text[start : start + guess])
        if tokens <= max_tokens:
            fits, filled = guess, tokens
            if tokens > 0.95 * max_tokens > 20:
                break  # near enough, and counting is what costs
        else:
            too_long = guess
        if too_long - fits <= 1 or (too_long - fits <= fits // 16 and filled >= LEAST_FILLED * max_tokens):
            break
        expected = _expected(fits, too_long, int(0.98 * guess * max_tokens / max(1, tokens)), attempt, rest)
        guess = max(1, min(rest, expected, 4 * guess))
    return fits, too_long


def _expected(fits: int, too_long: int, if_it_goes_on: int, attempt: int, rest: int) -> int:
    """Where the length must be if the text goes on like this; if that is not found soon, by halves."""
    if attempt < 3 and fits < if_it_goes_on < too_long:
        return if_it_goes_on
    return 2 * fits if too_long > rest else (fits + too_long) // 2


def _good_ends(text: str, start: int, length: int, too_long: int, by_line: bool) -> Iterator[int]:
    """Where a reader would cut, best first: of each kind the last place that may fit, and the last that surely does."""
    end = start + length
    last = min(len(text), start + too_long - 1, end + length // 4)
    for ending in (_LINE_END,) if by_line else (_SENTENCE_END, _WORD_END):
        ends = [found.end() for found in ending.finditer(text, start + length // 2, last)]
        sure = bisect(ends, end)
        yield from (*ends[sure:][-1:], *ends[:sure][-1:])


def _not_inside_a_character(text: str, start: int, position: int) -> int:
    """Return the last position from `start` to `position` where an accent is not torn from its letter; else `start`."""
    while start < position < len(text) and unicodedata.combining(text[position]):
        position -= 1
    return position
