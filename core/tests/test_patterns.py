"""Patterns from outside mean what ECMA-262 says, and take time in proportion to the text."""

from __future__ import annotations

import random
import re
import warnings

import pytest

from jackfield.patterns import MAX_PATTERN_CHARS, MAX_REPEATS, PatternError, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"^a$", "a", "a\n"),
        (r"^\w{1,255}$", "a_1", "é"),
        (r"^\d+$", "12", "١"),
        (r"\bword\b", "a word.", "aword"),
        (r"^[\w-.]+$", "a-b.c", "a+b"),
        (r"^[+--]$", ",", "a"),
        (r"^[a-]$", "-", "b"),
        (r"^[\b]$", "\b", "b"),
        (r"^[a&&b]+$", "a&b", "a~"),
        (r"^[[~~]+$", "[~", "a"),
        (r"^[\W_]$", "-", "a"),
        (r"^[^\W]$", "a", "-"),
        (r"^[^]$", "\n", ""),
        (r"^[]?$", "", "a"),
        (r"^{.*}$", "{a}", "a"),
        (r"^a{,3}$", "a{,3}", "aaa"),
        (r"^\uD83D\uDE00$", "😀", "a"),
        (r"^[\uD83D\uDE00-\uD83D\uDE02]$", "😁", "a"),
        (r"^\u{1F600}\x41\cA\0$", "😀A\x01\0", "A"),
        (r"^\p{L}+$", "é", "1"),
        (r"^(?<year>\d{4})\Z", "2026", "20"),
        (r"^(?P<year>\d{4})$", "2026", "20"),
        (r"^(?i:a)b$", "Ab", "AB"),
        (r"^\/a\-b$", "/a-b", "ab"),
        (r"^#a b$", "#a b", "ab"),
        (r"a*?b", "b", "a"),
    ],
)
def test_a_pattern_means_the_same_as_in_ecmascript(pattern: str, matching: str, other: str) -> None:
    compiled = compile_pattern(pattern)
    assert compiled.occurs_in(matching)
    assert not compiled.occurs_in(other)


EMAIL = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
"""As schema libraries write it into the schemas of tools."""


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        (EMAIL, ["a@b.co", "a.b+c@d-e.org"], [".a@b.co", "a..b@c.co", "a@b", ""]),
        (r"^(?=.*[A-Z])(?=.*\d).{4,}$", ["Abc1", "1bcA"], ["abc1", "Abcd", "A1"]),
        (r"^(?!a|b)\w", ["c"], ["a", "bc", ""]),
        (r"^(?=[)|]x)..$", [")x", "|x"], ["ax", ")"]),
        (r"^(?!\))(?!(?:a|(b)))", ["c", ""], [")", "a", "b"]),
        (r"^(?=a)", ["ab"], ["ba"]),
    ],
)
def test_lookaheads_at_the_beginning_are_conditions(pattern: str, matching: list[str], others: list[str]) -> None:
    compiled = compile_pattern(pattern)
    assert [text for text in [*matching, *others] if compiled.occurs_in(text)] == matching
    assert [text for text in [*matching, *others] if re.search(pattern, text)] == matching


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(?=a)", "lookaround"),
        ("a(?=b)", "lookaround"),
        ("^(?=a)b|c", "lookaround"),
        ("^(?=a)?b", "lookaround"),
        ("^(?=(?!a)b)", "lookaround"),
        ("^(?=a)(?<!b)", "lookaround"),
        ("^(?=a", "lookaround"),
        ("^(?!" + "a{1000}" * 51 + ")", "too large"),
        ("(?<!a)b", "lookaround"),
        (r"(a)\1", "backreference"),
        (r"(?<n>a)\k<n>", "backreference"),
        ("a++", "repeats a repeat"),
        ("a**", "repeats a repeat"),
        ("(?>a)", "not supported"),
        ("(?x)a # b", "not supported"),
        ("[a", "not closed"),
        ("a\\", "incomplete escape"),
        ("(", "unclosed group"),
        (")", "unopened group"),
        ("[b-a]", "start must be <= the end"),
        (rf"a{{{MAX_REPEATS + 1}}}", "minLength"),
        ("((a{100}){100}){100}", "too large"),
        ("(" * 101 + ")" * 101, "100 levels"),
        ("x" * (MAX_PATTERN_CHARS + 1), "10,000 are the most"),
        ("\ud800", "lone surrogate"),
    ],
)
def test_a_pattern_that_cannot_be_bounded_is_refused_with_its_reason(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError, match=re.escape(reason)) as caught:
        compile_pattern(pattern)
    str(caught.value).encode()
    assert len(str(caught.value)) < 400


@pytest.mark.timeout(20)
@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(a*)*b", "(.*)(.*)(.*)(.*)x$", r"(\s*\s*)*x"])
def test_a_pattern_that_backtracks_elsewhere_does_not_here(pattern: str) -> None:
    assert not compile_pattern(pattern).occurs_in("a" * 20_000 + "!" + " " * 20_000)


def test_a_lone_surrogate_in_a_text_counts_as_one_character() -> None:
    assert compile_pattern("^a.b$").occurs_in("a\ud800b")


def test_patterns_of_both_dialects_match_as_in_python() -> None:
    dice = random.Random(5)
    pieces = [*"ab()[]{}1,*+?|\\^$-.&~# ", "(?:", "(?<n>", "{2,3}", r"\d", r"\w", r"[^a]", "[ab-]", "^(?=", "^(?!"]
    compared = 0
    for _ in range(6000):
        pattern = "".join(dice.choices(pieces, k=dice.randrange(1, 10)))
        if "[]" in pattern or "[^]" in pattern:  # ECMA-262: nothing, and anything
            continue
        try:
            ours = compile_pattern(pattern)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs = re.compile(pattern)
        except (PatternError, re.error):
            continue
        for _ in range(4):
            text = "".join(dice.choices("ab1{},-&~# ^\\", k=dice.randrange(6)))
            assert ours.occurs_in(text) == bool(theirs.search(text)), (pattern, text)
            compared += 1
    assert compared > 4000


def test_any_text_at_all_is_a_pattern_or_refused() -> None:
    dice = random.Random(6)
    for _ in range(4000):
        text = "".join(dice.choices("a(?<=!>:)[]^\\ukpcxPZB{},1-é\ud800\0\n*+", k=dice.randrange(12)))
        try:
            compile_pattern(text).occurs_in(text)
        except PatternError as error:
            str(error).encode()


def test_the_size_of_a_pattern_grows_with_its_repeats() -> None:
    assert compile_pattern("a").size < compile_pattern("a{100}").size < compile_pattern("(a{100}b){10}").size
    assert compile_pattern("(a{100}b){10}").size > 1000
