"""Find the number in a sentence to which a phrase refers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from jackfield_offline.sentences import Library, Sentence, Term, terms

_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.])(?P<sign>(?<!\S)[-\u2212])?"
    r"(?P<digits>\d{1,3}(?:[,'\u00a0\u2009\u202f]\d{3})+(?!\d)|\d+)(?P<fraction>\.\d+)?(?!\d|\.\d)"
    # 千克, 千米 and similar words are units.
    r"(?:\s?(?P<scale>万亿|千万|百万|亿|万|千(?![克米瓦卡赫字])|(?:thousand|million|billion)\b))?",
    re.IGNORECASE,
)
_SEPARATORS = re.compile(r"[,'\s]")
_POWERS_OF_TEN = {
    "千": 3,
    "万": 4,
    "百万": 6,
    "千万": 7,
    "亿": 8,
    "万亿": 12,
    "thousand": 3,
    "million": 6,
    "billion": 9,
}
_PARTS = re.compile(r"[,;，；、|]")
_PART_CHARS = 16  # a word in another part of the sentence counts as this many characters farther away
_ENOUGH = 0.5
"""Fraction of a phrase's words that a sentence must contain to match."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text, with its position and its value in plain decimal notation."""

    value: str
    written: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FoundNumber:
    """The number a phrase refers to, and the sentence that contains it."""

    number: Number
    sentence: Sentence


def numbers_in(text: str) -> Iterator[Number]:
    """Yield the numbers in a text, except those in names (`v1`), versions and addresses."""
    for match in _NUMBER.finditer(text):
        digits = _SEPARATORS.sub("", match["digits"]) + (match["fraction"] or "")
        power = _POWERS_OF_TEN.get((match["scale"] or "").casefold(), 0)
        yield Number(_plain(Decimal(digits), power, bool(match["sign"])), match[0].strip(), match.start(), match.end())


def find_number(phrase: str, library: Library) -> FoundNumber | None:
    """Return the number nearest to the phrase's words in the best matching sentence, or None."""
    for match in library.find(phrase):
        if match.coverage < _ENOUGH:
            continue
        found = list(numbers_in(match.sentence.text))
        if found:
            closeness = _closeness(match.sentence.text, match.matched)
            return FoundNumber(max(found, key=closeness), match.sentence)
    return None


def _closeness(text: str, words: frozenset[str]) -> Callable[[Number], float]:
    """Return a function that scores a number by its closeness to the words, each at its nearest occurrence."""
    places: dict[str, list[Term]] = {}
    for term in terms(text):
        if term.text in words:
            places.setdefault(term.text, []).append(term)
    return lambda number: sum(max(_nearness(number, term, text) for term in same) for same in places.values())


def _nearness(number: Number, term: Term, text: str) -> float:
    is_after = term.start >= number.end
    between = text[number.end : term.start] if is_after else text[term.end : number.start]
    gap = len(between) + _PART_CHARS * len(_PARTS.findall(between))
    # The counted noun usually follows the number.
    return (2.0 if is_after else 1.0) / (1 + gap / 8)


def _plain(value: Decimal, power: int, is_negative: bool) -> str:
    shifted = Decimal((0, value.as_tuple().digits, int(value.as_tuple().exponent) + power))
    return ("-" if is_negative else "") + format(shifted, "f")
