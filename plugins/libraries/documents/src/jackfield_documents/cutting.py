"""Split a text into parts with a limited token count, at natural boundaries if possible."""

from __future__ import annotations

import itertools
import re
import unicodedata
from bisect import bisect
from collections.abc import Iterator

from jackfield.tokenizers import TokenCounter

# Lookbehind and possessive quantifiers keep a run of a million signs linear.
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"')\]”’]*+\s++|(?<![。！？；…])[。！？；…]++[”’」』）]*+\s*+|\n++")
_LINE_END = re.compile(r"\n+")
_WORD_END = re.compile(r"\s+|[，、：,;:]+")
LEAST_FILLED = 0.85  # of the room: a natural boundary is not worth more than the rest
_AIM = 0.98  # of the room: a guess that is a little too long costs another count


def cut_to_fit(text: str, max_tokens: int, count_tokens: TokenCounter, *, by_line: bool = False) -> Iterator[str]:
    """Split a text into parts of at most `max_tokens` without losing any text.

    A part ends after a sentence, else after a word, else anywhere. With `by_line`, a part ends after a line, else
    anywhere. A boundary is used only if the part fills at least 85 % of the limit. A single character may exceed
    `max_tokens`.
    """
    for part, _ in cut_and_count(text, max_tokens, count_tokens, by_line=by_line):
        yield part


def cut_and_count(
    text: str,
    max_tokens: int,
    count_tokens: TokenCounter,
    *,
    by_line: bool = False,
    tokens_per_char: float | None = None,
) -> Iterator[tuple[str, int]]:
    """Split a text like `cut_to_fit`, and yield each part with its token count.

    Args:
        text: The text.
        max_tokens: The maximum tokens per part.
        count_tokens: Counts a text's tokens.
        by_line: True to split only after lines, never after a sentence or a word.
        tokens_per_char: The text's token density, if known, which saves a few counts.
    """
    start = 0
    while start < len(text):
        # Texts are uniform: with the density of the previous part, the first guess is usually right.
        guess = int(_AIM * max_tokens / tokens_per_char) if tokens_per_char else 3 * max_tokens
        length, tokens = _head_that_fits(text, max_tokens, count_tokens, start=start, by_line=by_line, guess=guess)
        if length == 0:
            length, tokens = 1, count_tokens(text[start])
        tokens_per_char = tokens / length
        yield text[start : start + length], tokens
        start += length


def head_that_fits(
    text: str, max_tokens: int, count_tokens: TokenCounter, *, start: int = 0, by_line: bool = False
) -> int:
    """Return the number of characters from `start` that fit, up to a natural boundary, or 0 if none do."""
    guess = 3 * max_tokens
    return _head_that_fits(text, max_tokens, count_tokens, start=start, by_line=by_line, guess=guess)[0]


def _head_that_fits(
    text: str, max_tokens: int, count_tokens: TokenCounter, *, start: int, by_line: bool, guess: int
) -> tuple[int, int]:
    """Return the length and token count of a head that fits."""
    length, too_long, tokens = _long_head(text, start, max_tokens, count_tokens, guess)
    if start + length >= len(text):
        return length, tokens
    for end in _natural_ends(text, start, length, too_long, by_line):
        # A shorter text may have more tokens, because vocabularies merge some runs.
        tokens_here = tokens if end - start == length else count_tokens(text[start:end])
        if LEAST_FILLED * max_tokens <= tokens_here <= max_tokens:
            return end - start, tokens_here
    # Do not separate an accent from its letter, unless nothing else fits.
    end = start + length
    while start < end < len(text) and unicodedata.combining(text[end]):
        end -= 1
    if start < end < start + length and (tokens_here := count_tokens(text[start:end])) <= max_tokens:
        return end - start, tokens_here
    return length, tokens


def tail_from_a_sentence(text: str, max_chars: int) -> str:
    """Return a text's end, at most `max_chars` long, from a sentence or word if that retains half of the limit."""
    if len(text) <= max_chars:
        return text
    first = len(text) - max_chars
    for ending in (_SENTENCE_END, _WORD_END):
        match = ending.search(text, first)
        if match and 2 * (match.end() - first) <= max_chars:
            return text[match.end() :]
    while first < len(text) and unicodedata.combining(text[first]):  # an accent without its letter
        first += 1
    return text[first:]


def _long_head(text: str, start: int, max_tokens: int, count_tokens: TokenCounter, guess: int) -> tuple[int, int, int]:
    """Return a nearly maximal length that fits, a length that may be too long, and the token count of the first."""
    rest = len(text) - start
    fits, too_long, filled = 0, rest + 1, 0
    guess = min(rest, max(1, guess))
    for attempt in itertools.count():
        tokens = count_tokens(text[start : start + guess])
        if tokens <= max_tokens:
            fits, filled = guess, tokens
            if tokens > 0.95 * max_tokens > 20:
                # Close enough: only a boundary just after it is worth another count.
                return fits, min(too_long, fits * max_tokens // filled + 2), filled
        else:
            too_long = guess
        if too_long - fits <= 1 or (too_long - fits <= fits // 16 and filled >= LEAST_FILLED * max_tokens):
            break
        # Interpolate three times, then bisect, or double while no length is known to be too long.
        expected = int(_AIM * guess * max_tokens / max(1, tokens))
        if attempt >= 3 or not fits < expected < too_long:
            expected = 2 * fits if too_long > rest else (fits + too_long) // 2
        guess = max(1, min(rest, expected, 4 * guess))
    return fits, too_long, filled


def _natural_ends(text: str, start: int, length: int, too_long: int, by_line: bool) -> Iterator[int]:
    """Yield natural boundaries, best kind first: of each kind, the last that may fit and the last that surely fits."""
    end = start + length
    last = min(len(text), start + too_long - 1, end + length // 4)
    for ending in (_LINE_END,) if by_line else (_SENTENCE_END, _WORD_END):
        ends = [match.end() for match in ending.finditer(text, start + length // 2, last)]
        sure = bisect(ends, end)
        yield from (*ends[sure:][-1:], *ends[:sure][-1:])
