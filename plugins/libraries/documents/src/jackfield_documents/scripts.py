"""Detect a text's scripts, to notice when a question and the documents cannot share any words."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SCRIPTS: Mapping[str, re.Pattern[str]] = {
    "latin": re.compile(r"[A-Za-z\u00c0-\u024f]"),
    "chinese": re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]"),
    "kana": re.compile(r"[\u3040-\u30ff]"),
    "hangul": re.compile(r"[\uac00-\ud7af]"),
    "cyrillic": re.compile(r"[\u0400-\u04ff]"),
    "greek": re.compile(r"[\u0370-\u03ff]"),
    "arabic": re.compile(r"[\u0600-\u06ff]"),
    "hebrew": re.compile(r"[\u0590-\u05ff]"),
    "devanagari": re.compile(r"[\u0900-\u097f]"),
    "thai": re.compile(r"[\u0e00-\u0e7f]"),
}
_LETTERS_PER_CHARACTER = {"chinese": 3}  # a Chinese word has one or two characters, others about five letters
_SHARE = 0.2


def scripts_of(text: str) -> frozenset[str]:
    """Return the scripts that make up at least a fifth of a text, or an empty set for a text without letters."""
    counts = {
        name: len(pattern.findall(text)) * _LETTERS_PER_CHARACTER.get(name, 1) for name, pattern in _SCRIPTS.items()
    }
    total = sum(counts.values())
    return frozenset(name for name, count in counts.items() if count and count >= _SHARE * total)
