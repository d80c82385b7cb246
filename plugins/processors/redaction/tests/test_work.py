"""The work grows with the text, whatever the text: four times the text may be seven times the work, never sixteen."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from jackfield_redaction.arguments import ArgumentsScanner
from jackfield_redaction.config import RedactionConfig
from jackfield_redaction.placeholders import Restorer
from jackfield_redaction.scanner import Finder, Scanner
from jackfield_testkit.streams import work_of

FINDER = Finder(RedactionConfig())
HOSTILE = {
    "letters": "a",
    "digits": "7",
    "at signs": "a@",
    "domains": "a@a.",
    "labels": "a.",
    "dots": ".",
    "plus signs": "+1 ",
    "parentheses": "(1) ",
    "groups": "1-",
    "octets": "1.1.1.",
    "hexadecimal": "fe80:",
    "capitals": "AB12",
    "accounts": "DE89 ",
    "dashes": "-",
    "heads": "-----BEGIN PRIVATE KEY-----",
    "open keys": "-----BEGIN PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAAAAAA\n-a",
    "tokens": "eyJ",
    "dotted tokens": "eyJhbGciOiJIUzI1NiJ9.",
    "prefixes": "sk-",
    "underscores": "_",
    "spaces": " ",
    "backslashes": "\\n",
    "brackets": "[EMAIL_",
    "quotes": '"{',
}
LONG_VALUES = ("heads", "open keys", "tokens", "dotted tokens")


def _length(name: str) -> int:
    """Longer than the longest value of its kind, so that a bound on values is no excuse."""
    return 18_000 if name in LONG_VALUES else 2_000


def _replace(kind: str, value: str) -> str:
    return kind


def _scan_whole(text: str) -> object:
    scanner = Scanner(FINDER, _replace)
    return scanner.feed(text) + scanner.finish()


def _scan_pieces(text: str) -> object:
    scanner = Scanner(FINDER, _replace)
    return [scanner.feed(text[start : start + 16]) for start in range(0, len(text), 16)]


def _scan_arguments(text: str) -> object:
    scanner = ArgumentsScanner(FINDER, _replace)
    return [scanner.feed(piece) for piece in ('{"x": "', *(text[at : at + 16] for at in range(0, len(text), 16)))]


def _restore(text: str) -> object:
    restorer = Restorer({"[EMAIL_1]": "x"})
    return [restorer.feed(text[start : start + 16]) for start in range(0, len(text), 16)]


CASES = [
    *((name, _scan_pieces) for name in HOSTILE),
    *((name, _scan_arguments) for name in ("letters", "groups", "backslashes", "quotes")),
    *((name, _restore) for name in ("letters", "brackets")),
]


@pytest.mark.parametrize(("name", "work"), CASES, ids=[f"{name}{work.__name__}" for name, work in CASES])
def test_four_times_the_text_is_no_sixteen_times_the_work(name: str, work: Callable[[str], object]) -> None:
    short = (HOSTILE[name] * _length(name))[: _length(name)]
    assert work_of(lambda: work(short * 4), [0]) < 7 * work_of(lambda: work(short), [0])


EXPRESSIONS = ("letters", "digits", "labels", "dots", "capitals", "dashes", "tokens", "underscores", "spaces")


@pytest.mark.timeout(40)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_a_long_text_comes_to_its_end_where_expressions_do_the_work(name: str) -> None:
    """Their steps cannot be counted: one that grows with the square would take many minutes for this text."""
    _scan_pieces((HOSTILE[name] * 200_000)[:200_000])


@cache
def _work_of_plain_text(length: int) -> int:
    plain = ("call 0171 on 2024-01-02, order 12345678, v1.2.3, ask x@y " * length)[:length]
    return work_of(lambda: _scan_whole(plain), [0])


@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_is_far_more_work_than_any_other_of_its_length(name: str) -> None:
    length = _length(name)
    hostile = (HOSTILE[name] * length)[:length]
    assert work_of(lambda: _scan_whole(hostile), [0]) < 60 * _work_of_plain_text(length)
