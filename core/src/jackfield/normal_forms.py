"""Normalise Unicode in linear time."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Literal

NormalForm = Literal["NFC", "NFD", "NFKC", "NFKD"]

_MOST_MARKS = 30  # marks in a row, as in the Stream-Safe Text Format; no script uses more than a few
_END_OF_LETTERS = 0x20000  # from here on, Unicode has Han characters and signs of private use
_JOINER = "\u034f"  # invisible, and ends a run of marks


def normalize(form: NormalForm, text: str) -> str:
    """Normalise text like `unicodedata.normalize`, but break up long runs of combining marks.

    Python sorts a letter's marks in quadratic time, and its C code blocks the interpreter: 80,000 marks take five
    seconds. After 30 marks in a row, this function inserts a combining grapheme joiner, which starts a new run.

    Source: Unicode Standard Annex #15, section 13, Stream-Safe Text Format.
    """
    if unicodedata.is_normalized(form, text):  # linear, because unordered marks end the check at once
        return text
    return unicodedata.normalize(form, _rows_of_marks().sub(rf"\g<0>{_JOINER}", text))


@cache
def _rows_of_marks() -> re.Pattern[str]:
    """Return a pattern that matches the longest allowed run of marks if more marks follow."""
    marks: list[list[int]] = []
    for code in range(0x300, _END_OF_LETTERS):
        if unicodedata.combining(unicodedata.normalize("NFKD", chr(code))[0]):
            if marks and marks[-1][1] == code - 1:
                marks[-1][1] = code
            else:
                marks.append([code, code])
    mark = "[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in marks) + "]"
    return re.compile(f"{mark}{{{_MOST_MARKS}}}(?={mark})")
