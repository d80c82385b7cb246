"""Patterns from outside mean what ECMA-262 says, and take time in proportion to the text."""

from __future__ import annotations

import random
import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.patterns import MAX_PATTERN_CHARS, MAX_REPEATS, PatternError, compile_pattern, count_steps


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"^a$", "a", "a\n"),
        (r"^\é[\é]$", "éé", "ée"),
        (r"^[^]+$", "a\n", ""),
        (r"^a+[^]+$", "ab", "b"),
        ("^a\n\\\nb$", "a\n\nb", "ab"),
        (r"^[]*$", "", "a"),
        (r"^[a]+[b]*$", "aab", "b"),
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
        (r"^\ca$", "\x01", "a"),
        (r"^[\cA\cb]$", "\x02", "c"),
        (r"^[\p{Lu}x]$", "É", "é"),
        (r"^a\B.$", "ab", "aé"),
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
        ("^(?=a){2}b", "lookaround"),
        ("^(?!a)(?=b)*", "lookaround"),
        ("^(?=(?!a)b)", "lookaround"),
        ("^(?=a)(?<!b)", "lookaround"),
        ("^(?=a", "lookaround"),
        ("^(?!" + "a{1000}" * 51 + ")", "too large"),
        ("(?<!a)b", "lookaround"),
        (r"(a)\1", "backreference"),
        (r"(?<n>a)\k<n>", "backreference"),
        ("a++", "follows another quantifier"),
        ("a**", "follows another quantifier"),
        ("a{2}??", "follows another quantifier"),
        ("a???", "follows another quantifier"),
        ("[a]+??", "follows another quantifier"),
        ("(a){2,3}?+", "follows another quantifier"),
        ("(?>a)", "not supported"),
        ("(?x)a # b", "not supported"),
        ("[a", "unclosed"),
        ("a\\", "incomplete escape"),
        ("(", "unclosed group"),
        (")", "unopened group"),
        ("[b-a]", "start must be <= the end"),
        (rf"a{{{MAX_REPEATS + 1}}}", "minLength"),
        ("((a{100}){100}){100}", "too large"),
        ("(" * 101 + ")" * 101, "100 levels"),
        ("x" * (MAX_PATTERN_CHARS + 1), "the limit is 10,000"),
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


# --- boundaries ---


@pytest.mark.parametrize(
    ("pattern", "is_usable"),
    [
        (f"a{{{MAX_REPEATS}}}", True), (f"a{{0,{MAX_REPEATS}}}", True), (f"a{{0,{MAX_REPEATS + 1}}}", False),
        (f"a{{{MAX_REPEATS + 1},}}", False),
        (f"a{{00000{MAX_REPEATS + 1}}}", False), ("a{1000000000000}", False), ("x" * MAX_PATTERN_CHARS, True),
        ("(" * 100 + ")" * 100, True), ("(a{10}){100}", True), (f"(a{{{MAX_REPEATS}}}){{49}}", True),
        (f"(a{{{MAX_REPEATS}}}){{50}}", False), (f"(a{{{MAX_REPEATS}}}){{49}}a{{{MAX_REPEATS - 1}}}", True),
        (f"(a{{{MAX_REPEATS}}}){{49}}a{{{MAX_REPEATS}}}", False), ("a{2}?", True), ("a{2}+", False), ("a?+", False),
        ("(a+)+", True), ("[a]+?", True), ("[a]+*", False),
    ],
    ids=lambda value: str(value)[:30],
)  # fmt: skip
def test_a_pattern_may_be_as_large_as_the_limits_say(pattern: str, is_usable: bool) -> None:
    if is_usable:
        assert compile_pattern(pattern).text == pattern
        return
    with pytest.raises(PatternError):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "size"),
    [("", 1), ("a", 2), ("ab", 3), ("a{3}", 4), ("(ab){3}", 7), ("(a{2}b){3}", 10), ("[abc]{2}", 3), ("a{0}", 2),
     ("a{2,5}", 6), ("a{00000003}", 4), ("a{0,00000005}", 6), ("^(?=ab)c", 7), ("a*", 2)],
)  # fmt: skip
def test_the_size_of_a_pattern_is_the_number_of_its_steps(pattern: str, size: int) -> None:
    assert compile_pattern(pattern).size == size


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("x" * 101 + "(?<=a)", f"unsupported pattern '{'x' * 100}…': the lookaround (?<=…) cannot be matched in "
                              f"bounded time"),
        ("x" * 89 + "(?<=a)b", f"unsupported pattern '{'x' * 89}(?<=a)b': the lookaround (?<=…) cannot be matched "
                              f"in bounded time"),
        (r"[a\B]", r"unsupported pattern '[a\\B]': \B is not allowed in a character class"),
        (r"[\Z]", r"unsupported pattern '[\\Z]': \Z is not allowed in a character class"),
        ("[a", "unsupported pattern '[a': unclosed '['"),
        ("[a\\", "unsupported pattern '[a\\\\': unclosed '['"),
        ("a\\", "unsupported pattern 'a\\\\': trailing backslash"),
        ("a+*", "unsupported pattern 'a+*': '*' follows another quantifier: put the quantified part in a group"),
        ("x" * 10_001, "the pattern is 10,001 characters long; the limit is 10,000"),
    ],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_a_refused_pattern_is_told_why(pattern: str, text: str) -> None:
    with pytest.raises(PatternError) as caught:
        compile_pattern(pattern)
    if pattern == "a\\":  # the library words it
        assert "backslash" in str(caught.value) or "incomplete escape" in str(caught.value)
    else:
        assert str(caught.value) == text


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        (r"^[\w-]$", "a-", "+"), (r"^[\w-z]$", "-z", "+"), (r"^[a-\d]$", "a-5", "b"), (r"^[-a]$", "-a", "b"),
        (r"^[a-c]$", "abc", "-d"), (r"^[\d.-9]$", "0./9", "-"), (r"^[^a-c]$", "-d", "b"), (r"^[+\-]$", "+-", ","),
        (r"^[\D-9]$", "-9a", "5"), (r"^[9-\W]$", "-9+", "5"),
    ],
)  # fmt: skip
def test_a_hyphen_in_a_class_is_a_range_between_two_characters_only(pattern: str, matching: str, others: str) -> None:
    compiled = compile_pattern(pattern)
    assert [sign for sign in matching + others if compiled.occurs_in(sign)] == list(matching)


@pytest.mark.parametrize(
    ("pattern", "steps"),
    [
        ("", 0),
        ("abc", 3),
        (r"\d[a-z]", 2),
        (r"[]{9}]\{9\}", 4),
        (r"[^]{9}]", 1),
        ("a{4000000}", 4_000_000),
        ("a{4000000}?", 4_000_000),
        ("a{2,5}b", 6),
        ("a{5,2}b", 6),
        ("a{3,}", 3),
        ("a{ 3 , 4 }", 4),
        ("a{0}", 1),
        ("(ab){3}", 6),
        ("((ab){3}c){2}", 14),
        ("a{10}{10}", 100),
        ("a(b){3}", 4),
        ("(a+b*){3}c?", 7),
        ("(?P<name>a)(?<name>b)(?=c)(?!d)(?<=e)(?<!f)(?>g)", 7),
        ("(a))b{3}", 4),
        ("(ab)(?#c){3}", 6),
        ("(?x)(ab) {100} {100}", 200_000),
        ("(?x)a{0}b{100}", 1_400),
        ("(?i-x:(ab) # )\n{100})", 2_100),
        pytest.param("[" * 200_000, 1, id="many classes"),
        pytest.param("{" + " " * 200_000, 200_001, id="many blanks"),
        pytest.param("(?#" * 200_000, 0, id="many comments"),
        ("((a){3}", 3),
        ("(?:ab){4294967294,}", 8_589_934_588),
        pytest.param("a{" + "9" * 5000 + "}", 10**20 - 1, id="many digits"),
        pytest.param("a{" + "0" * 5000 + "7}", 7, id="many zeros"),
    ],
)
def test_the_steps_of_a_pattern_are_counted_with_its_repeats_written_out(pattern: str, steps: int) -> None:
    assert count_steps(pattern) == steps


@given(st.from_regex(r"\A[ab()?*\[\]\\{},0-9]{0,30}\Z"), st.integers(1, 1000))
def test_a_repeated_group_has_as_many_times_the_steps(pattern: str, times: int) -> None:
    try:
        re.compile(pattern)
    except (re.error, OverflowError):
        return
    assert count_steps(f"(?:{pattern}){{{times}}}") == times * count_steps(pattern)
