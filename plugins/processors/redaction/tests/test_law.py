"""However a text is cut, the same values are found in it, and as little as possible is held back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield_redaction.arguments import ArgumentsScanner, quoted
from jackfield_redaction.config import RedactionConfig
from jackfield_redaction.placeholders import ArgumentsRestorer, Restorer
from jackfield_redaction.scanner import Finder, Scanner

PATTERNS = [
    {"name": "ticket", "regex": r"(?<=#)T\d+\b", "max_length": 7},
    {"name": "begin", "regex": r"^x|y$|z(?!!)", "max_length": 3},
]
FINDERS = [Finder(RedactionConfig.parse(given)) for given in ({}, {"patterns": PATTERNS}, {"kinds": ["iban", "jwt"]})]
VALUES = {"[EMAIL_1]": 'a"b\\@x.com', "[PRIVATE_KEY_1]": "-----\nx\n", "[A]": "[EMAIL_1]"}

# Beginnings, middles and ends of values, and what comes between: chance puts them together.
PIECES = [
    *(
        "bob",
        "@",
        "example",
        ".com",
        ".",
        "+",
        "-",
        "_",
        "(",
        ")",
        "/",
        ":",
        "::",
        "\\n",
        "\\u003c",
        "\\",
        '"',
        "'",
        ",",
    ),
    *(" ", "  ", "\n", "\u00a0", "\u2011", "话", "é", "\U0001f642", "#", "T12", "x", "y", "z", "!", "%", "="),
    *(
        "1",
        "86",
        "13812345678",
        "415",
        "555",
        "0123",
        "49",
        "00",
        "4111 1111",
        "1111-1111",
        "4111111111111111",
        "123-45-",
    ),
    *(
        "6789",
        "192.168",
        ".1.17",
        "2001:",
        "db8",
        "fe80::1",
        "dead:beef::",
        "v1.2.3.4",
        "DE89 3704",
        " 0044 0532 0130 00",
    ),
    *(
        "GB29NWBK",
        "60161331926819",
        "110105194912",
        "31002X",
        "sk-",
        "proj-",
        "abcDEF0123456789xyz",
        "AKIA",
        "IOSFODNN7EXAMPLE",
    ),
    *(
        "ghp_",
        "16C7e42F292c6912E7710c838347Ae178B4a",
        "xoxb-",
        "AIza",
        "hf_",
        "eyJ",
        "eyJhbGciOiJIUzI1NiJ9",
        ".e30.",
        "abc_-",
    ),
    *("-----", "BEGIN ", "RSA PRIVATE KEY", "-----BEGIN PRIVATE KEY-----", "\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n"),
    *("-----END PRIVATE KEY-----", "END", "--", "a" * 70, "7" * 45, "A1" * 40),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
CUTS = st.lists(st.floats(0, 1), max_size=12)


def _cut(text: str, places: Iterable[float]) -> list[str]:
    at = [0, *sorted(round(place * len(text)) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(at)]


def _all(rewriter: Scanner | ArgumentsScanner | Restorer | ArgumentsRestorer, pieces: Iterable[str]) -> str:
    return "".join(map(rewriter.feed, pieces)) + rewriter.finish()


def _mark(kind: str, value: str) -> str:
    return f"‹{kind}:{value}›"


def _always_the_same(
    make: Callable[[], Scanner | ArgumentsScanner | Restorer | ArgumentsRestorer], text: str, cuts: list[float]
) -> None:
    expected = _all(make(), [text])
    assert _all(make(), text) == expected
    assert _all(make(), _cut(text, cuts)) == expected


@settings(max_examples=settings().max_examples * 4)
@given(TEXTS, CUTS, st.sampled_from(FINDERS))
def test_cutting_a_text_elsewhere_never_changes_what_is_found(text: str, cuts: list[float], finder: Finder) -> None:
    _always_the_same(lambda: Scanner(finder, _mark), text, cuts)


@given(st.dictionaries(TEXTS, TEXTS | st.integers() | st.just(4111111111111111), max_size=3), CUTS, st.booleans())
def test_cutting_arguments_elsewhere_never_changes_them(
    value: dict[str, object], cuts: list[float], ascii_only: bool
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    _always_the_same(lambda: ArgumentsScanner(FINDERS[0], _mark), text, cuts)
    _always_the_same(lambda: ArgumentsScanner(FINDERS[0], _mark), text[: len(text) // 2], cuts)


@given(st.text('{}"\\ud83de0n1234567890.-@bx, [', max_size=60), CUTS)
def test_cutting_broken_arguments_elsewhere_never_changes_them(text: str, cuts: list[float]) -> None:
    _always_the_same(lambda: ArgumentsScanner(FINDERS[0], _mark), text, cuts)
    _always_the_same(lambda: ArgumentsScanner(FINDERS[0], _mark), "{" + text, cuts)


@given(
    st.lists(st.sampled_from(["[", "]", *VALUES, "[EMAIL_", "EMAIL_1]", "_", "A", "[B_9]", " ", "{", '"', "x"])).map(
        "".join
    ),
    CUTS,
)
def test_cutting_an_answer_elsewhere_never_changes_what_comes_back(text: str, cuts: list[float]) -> None:
    _always_the_same(lambda: Restorer(VALUES), text, cuts)
    _always_the_same(lambda: ArgumentsRestorer(VALUES), text, cuts)


@given(st.dictionaries(TEXTS, st.lists(TEXTS, max_size=2), max_size=3), st.booleans())
def test_arguments_stay_json_and_their_strings_are_what_texts_would_be(
    value: dict[str, list[str]], ascii_only: bool
) -> None:
    finder = FINDERS[0]
    arguments = _all(ArgumentsScanner(finder, _mark), [json.dumps(value, ensure_ascii=ascii_only)])
    alone = {
        _all(Scanner(finder, _mark), [key]): [_all(Scanner(finder, _mark), [one]) for one in many]
        for key, many in value.items()
    }
    assert json.loads(arguments) == alone


@given(st.text(max_size=30), st.sampled_from(["", "\ud83d", "\ude42"]))
def test_a_quoted_text_reads_as_itself_and_can_be_sent(text: str, half_a_pair: str) -> None:
    assert json.loads(f'"{quoted(text + half_a_pair)}"') == text + half_a_pair
    assert quoted(text + half_a_pair).encode().decode() == quoted(text + half_a_pair)


def test_plain_words_are_given_as_soon_as_they_end() -> None:
    scanner = Scanner(FINDERS[0], _mark)
    assert [scanner.feed(piece) for piece in ("Hello", " wor", "ld", ". ", "Bye", "!", " 你好", "，")] == [
        "", "Hello ", "", "world. ", "", "Bye!", " 你好", "，",
    ]  # fmt: skip


def test_a_number_is_held_back_until_it_can_be_no_value() -> None:
    scanner = Scanner(FINDERS[0], _mark)
    assert [scanner.feed(piece) for piece in ("in 2024", " we", " had 12", " 34 ", "56 cats", " ")] == [
        "in ", "2024 ", "we had ", "", "12 34 56 ", "cats ",
    ]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_what_is_held_back_is_bounded(text: str) -> None:
    scanner = Scanner(
        Finder(RedactionConfig(kinds=("email", "phone", "card", "iban", "ip", "cn_id", "us_ssn"))),
        lambda kind, value: value,
    )
    given = 0
    for number, character in enumerate(text, start=1):
        given += len(scanner.feed(character))
        assert number - given <= 64 + 1 + 253


def test_a_key_without_an_end_is_let_go_of_in_the_end() -> None:
    scanner = Scanner(FINDERS[0], lambda kind, value: value)
    line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n"
    taken = held = 0
    for piece in ("-----BEGIN PRIVATE KEY-----\n", *[line] * 1500):
        taken += len(piece) - len(scanner.feed(piece))
        held = max(held, taken)
    assert held <= 18_500
