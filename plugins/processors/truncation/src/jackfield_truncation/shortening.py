"""Shorten texts to a number of tokens, keeping both ends, and divide a token budget among texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from jackfield.config import Lang
from jackfield.plurals import format_count
from jackfield.tokenizers import TokenCounter

_CLOSE_ENOUGH = 0.9  # fraction of the allowed tokens; each step closer requires another count


def keep_both_ends(text: str, most: int, count: TokenCounter, lang: Lang) -> str:
    """Cut out the middle of a text, and leave a note of how much is missing.

    Args:
        text: The text.
        most: The maximum number of tokens in the result. If the note does not fit, only the start is kept.
        count: Counts a text's tokens.
        lang: The language of the note.

    Returns:
        The text itself if it is short enough, otherwise at most `most` tokens, and at least 90 % of that if possible.
    """
    tokens = count(text)
    if tokens <= most:
        return text
    guess = most * len(text) // tokens
    noted = _longest(lambda kept: _without_middle(text, kept, lang), guess, len(text), most, count)
    return noted or _longest(lambda kept: text[:kept], guess, len(text), most, count)


def common_size(sizes: Iterable[int], total: int) -> int:
    """Return the largest size such that the sum is at most `total` when all larger sizes are cut to it.

    Returns:
        The largest of the sizes if nothing must be cut, or -1 if no size is small enough.
    """
    ordered = sorted(sizes)
    left, size = total, 0
    for index, size in enumerate(ordered):
        share = left // (len(ordered) - index)
        if size > share:
            return max(share, -1)
        left -= size
    return size


def _longest(make: Callable[[int], str], guess: int, length: int, most: int, count: TokenCounter) -> str:
    """Return the longest text that `make` creates with at most about `most` tokens.

    `make` takes the number of characters to keep, which is always less than `length`.
    """
    best, low, high, kept = "", -1, length, guess
    while high - low > 1:
        candidate = make(kept)
        size = count(candidate)
        if size > most:
            high = kept
        else:
            best, low = candidate, kept
            if size >= _CLOSE_ENOUGH * most:
                break
        kept = (low + high) // 2
    return best


def _without_middle(text: str, kept: int, lang: Lang) -> str:
    head, tail = text[: (kept + 1) // 2], text[len(text) - kept // 2 :]
    return f"{head}{_note(len(text) - kept, lang)}{tail}"


def _note(characters: int, lang: Lang) -> str:
    if lang == "zh":
        return f"\n[此处省略 {characters} 个字符]\n"
    return f"\n[{format_count(characters, 'character')} left out here]\n"
