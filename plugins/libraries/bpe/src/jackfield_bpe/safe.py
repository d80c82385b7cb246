"""Make a tiktoken encoding safe for any text, including very long text, control tokens and lone surrogates."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from jackfield.normal_forms import normalize

if TYPE_CHECKING:
    import tiktoken

LONGEST = 100_000
"""The maximum number of characters passed to tiktoken at once. Its Rust code panics on longer runs of spaces, and a
panic is not an `Exception`: it bypasses every handler and ends the thread."""

# In the patterns of GPT-2 and its successors, no pre-token continues from a letter or digit to one of these, and counts
# add up wherever a pre-token ends. The apostrophe is left out, because it may be inside a pre-token ("don't").
_BREAK = re.compile(r"[^\W_](?=[\s.,;:!?/\\|<>()\[\]{}\"=+*#@&%，。、；：！？（）《》「」“”…])")
_LOOK_BACK = 1024
_BLOCK = 4096
_HALF = re.compile("[\ud800-\udfff]")


class SafeEncoding:
    """Encodes, counts and truncates text with a tiktoken encoding. Instances are thread-safe.

    Text longer than `LONGEST` characters is encoded in blocks that end at pre-token boundaries, so the token ids are
    the same as for the whole text. Only a run of `LONGEST` characters without a boundary (spaces, one endless word) is
    split in the middle, which changes a token or two.

    Args:
        encoding: The tiktoken encoding.
        normal_form: The Unicode form to normalise text to first. None disables normalisation.
    """

    def __init__(self, encoding: tiktoken.Encoding, *, normal_form: Literal["NFC", "NFKC"] | None = None) -> None:
        self.encoding = encoding
        self.normal_form = normal_form

    def encode(self, text: str) -> list[int]:
        """Return a text's token ids. Control tokens are encoded as plain text, and lone surrogates as U+FFFD."""
        plain = self._plain(text)
        if len(plain) <= LONGEST:
            return self.encoding.encode_ordinary(plain)
        tokens: list[int] = []
        for start, end in _parts(plain):
            tokens += self.encoding.encode_ordinary(plain[start:end])
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text for token ids, with invalid UTF-8 replaced by U+FFFD.

        Raises:
            ValueError: A token is not in the vocabulary.
        """
        try:
            return self.encoding.decode(tokens, errors="replace")
        except (KeyError, OverflowError) as error:
            raise ValueError(f"vocabulary {self.encoding.name!r} does not contain this token: {error}") from error

    def count(self, text: str) -> int:
        """Return a text's token count."""
        plain = self._plain(text)
        if len(plain) <= LONGEST:
            return len(self.encoding.encode_ordinary(plain))
        return sum(self._tokens_of(plain, start, end) for start, end in _parts(plain))

    def cut(self, text: str, most: int) -> str:
        """Return the longest prefix of a text with at most `most` tokens.

        Without normalisation, only about as much text is encoded as is returned, however long the input is.
        """
        if most <= 0:
            return ""
        if self.normal_form is not None and not unicodedata.is_normalized(self.normal_form, text):
            # Normalising shifts the characters, so each end is tried.
            end = _last_within(lambda end: self.count(text[:end]) <= most, 0, len(text) + 1)
        else:
            end = self._end(self._plain(text), most)
        return text[:end]

    def _plain(self, text: str) -> str:
        """Return the text in the form passed to tiktoken: normalised, with lone surrogates replaced."""
        if text.isascii():
            return text
        if self.normal_form is not None:
            text = normalize(self.normal_form, text)
        try:
            text.encode()
        except UnicodeEncodeError:
            return _HALF.sub("\ufffd", text)
        return text

    def _tokens_of(self, text: str, start: int, end: int) -> int:
        return len(self.encoding.encode_ordinary(text[start:end]))

    def _end(self, text: str, most: int) -> int:
        """Return the end of the longest prefix that fits, found by block, then by character in the last block."""
        left = most
        for start, end in _blocks(text):
            tokens = self.encoding.encode_ordinary(text[start:end])
            if len(tokens) > left:
                return self._end_in_block(text, start, end, tokens[:left])
            left -= len(tokens)
        return len(text)

    def _end_in_block(self, text: str, start: int, end: int, kept: Sequence[int]) -> int:
        """Return the end of the prefix that fits in a block with too many tokens.

        The kept tokens give an estimate; bisection between the nearest breaks on either side finds the exact end.
        """
        about = start + len(b"".join(self.encoding.decode_tokens_bytes(kept)).decode("utf-8", "ignore"))
        before = _last_break(text, start, about)
        after = _next_break(text, about, end)
        left = len(kept) - self._tokens_of(text, start, before)
        return _last_within(lambda end: self._tokens_of(text, before, end) <= left, before, after)


def _parts(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each block of at most `LONGEST` characters."""
    start = 0
    while len(text) - start > LONGEST:
        end = _part_end(text, start, start + LONGEST)
        yield start, end
        start = end
    yield start, len(text)


def _part_end(text: str, start: int, limit: int) -> int:
    for low in (limit - _LOOK_BACK, start):  # nearly always, there is a break near the end
        end = _last_break(text, low, limit)
        if end > low:
            return end
    return limit


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each small block, ending at a break where possible."""
    for begin, end in _parts(text):
        start = begin
        while end - start > _BLOCK:
            middle = _next_break(text, start + _BLOCK, end)
            yield start, middle
            start = middle
        yield start, end


def _last_break(text: str, low: int, high: int) -> int:
    """Return the last safe boundary in a range, or `low` if there is none."""
    # One extra character, because a break is identified by the character after it.
    return max((match.end() for match in _BREAK.finditer(text, low, high + 1)), default=low)


def _next_break(text: str, low: int, high: int) -> int:
    """Return the first safe boundary after `low`, or `high` if there is none."""
    found = _BREAK.search(text, low, high)
    return found.end() if found else high


def _last_within(fits: Callable[[int], bool], low: int, high: int) -> int:
    """Return the last position that fits, found by bisection."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
