"""Cut texts to a number of tokens, keeping both ends, and share a number of tokens between texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from jackfield.config import Lang
from jackfield.tokenizers import TokenCounter

_CLOSE_ENOUGH = 0.9  # of the allowed tokens; each step closer costs another count


def keep_both_ends(text: str, most: int, count: TokenCounter, lang: Lang) -> str:
    """Return a text without its middle, with a note of how much is missing.

    Args:
        text: The text.
        most: The number of tokens that the result may have. If that is not enough for the note, the beginning is kept
            alone.
        count: Counts a text.
        lang: The language of the note.

    Returns:
        The text itself if it is short enough; otherwise at most `most` tokens, and at least nine tenths of them if
        possible.
    """
    tokens = count(text)
    if tokens <= most:
        return text
    guess = most * len(text) // tokens
    noted = _longest(lambda kept: _without_middle(text, kept, lang), guess, len(text), most, count)
    return noted or _longest(lambda kept: text[:kept], guess, len(text), most, count)


def common_size(sizes: Iterable[int], total: int) -> int:
    """Return the largest size to which all longer `sizes` can be cut with a sum up to `total`; -1 if there is none.

    If nothing has to be cut, it is the largest of the sizes.
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
    """Return the longest text from `make`, shorter than `length`, that has about `most` tokens at most."""
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
    return f"\n[{characters} characters left out here]\n"
