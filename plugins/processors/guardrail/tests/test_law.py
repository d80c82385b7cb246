"""However a text is cut, the same is found in it and the same comes out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield_guardrail.finding import RegexFinder
from jackfield_guardrail.links import LinkFinder
from jackfield_guardrail.scanning import BLOCK, LONGEST, Scanner, Watch

REGEXES = [
    r"sk-\w+",
    r"a+b",
    r"^x",
    r"y$",
    r"(?m)^z",
    r"cat\b",
    r"(?<=do)g(?!s)",
    r"(?<!a)bb|c.{3}d",
    r"[^ ]{20,}",
    r"(?s)begin.*?end",
    r"\bq(?=.*!)",
]
PIECES = [
    *(
        "sk-",
        "abc",
        "a" * 30,
        "b",
        "bb",
        "x",
        "y",
        "z\n",
        "cat",
        "dog",
        "dogs",
        "cxyzd",
        " ",
        "\n",
        "begin",
        "end",
        "q",
        "!",
    ),
    *(
        "1",
        "数据",
        "🙂",
        "word " * 9,
        "!" * 140,
        "https://",
        "good.example",
        "evil.example",
        "/p?q=1",
        "](",
        ")",
        "![a](",
        "<",
    ),
    *(
        '<img src="',
        '"',
        "www.",
        "&#104;ttps",
        "&",
        "#58;",
        "\\",
        "//",
        "@",
        ":80",
        ".",
        "mailto:",
        "data:image/png;",
        "javascript:",
    ),
    *("[1]: ", "'", ">", "]", "x" * 1100),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=16).map("".join)
CUTS = st.lists(st.floats(0, 1), max_size=12)


@st.composite
def _watches(draw: st.DrawFn) -> tuple[Watch, ...]:
    """A few things to look for, and what follows."""
    finders = [
        RegexFinder(regex, draw(st.sampled_from([1, 7, 64])))
        for regex in draw(st.lists(st.sampled_from(REGEXES), max_size=3, unique=True))
    ]
    chosen: Sequence[RegexFinder | LinkFinder] = [
        *finders,
        *([LinkFinder(["good.example", "*.good.example"])] if draw(st.booleans()) else []),
    ]
    return tuple(
        Watch(f"w{number}", finder, draw(st.sampled_from(["take", "take", "count", "stop"])), "‹›")
        for number, finder in enumerate(chosen)
    )


def _cut(text: str, places: Iterable[float]) -> list[str]:
    at = [0, *sorted(round(place * len(text)) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(at)]


def _outcome(watches: Sequence[Watch], pieces: Iterable[str]) -> tuple[str, dict[str, int], str]:
    scanner = Scanner(watches)
    given_on = "".join(map(scanner.feed, pieces)) + scanner.finish()
    return given_on, dict(scanner.counts), scanner.stopped


@settings(max_examples=settings().max_examples * 3)
@given(TEXTS, CUTS, _watches())
def test_cutting_a_text_elsewhere_never_changes_what_comes_of_it(
    text: str, cuts: list[float], watches: tuple[Watch, ...]
) -> None:
    expected = _outcome(watches, [text])
    assert _outcome(watches, text) == expected
    assert _outcome(watches, _cut(text, cuts)) == expected


@given(TEXTS, st.sampled_from([5, 64]))
def test_what_an_expression_matches_is_gone_and_all_else_is_there(text: str, window: int) -> None:
    """What it matches is no longer than the window, or its beginning matches, too."""
    regex = r"sk-\w+|c.{3}d"
    given_on, counts, stopped = _outcome([Watch("w", RegexFinder(regex, window), "take", "‹›")], text)
    if not stopped:
        assert given_on == re.sub(regex, "‹›", text)
        assert counts.get("w", 0) == len(re.findall(regex, text))


@given(TEXTS, CUTS, _watches())
def test_what_is_held_back_is_bounded(text: str, cuts: list[float], watches: tuple[Watch, ...]) -> None:
    scanner = Scanner([watch for watch in watches if watch.then == "count"])
    taken = came = 0
    for piece in _cut(text, cuts):
        taken += len(piece)
        came += len(scanner.feed(piece))
        assert taken - came <= LONGEST + BLOCK
    assert came + len(scanner.finish()) == len(text)


def test_text_without_rules_is_given_on_as_it_comes() -> None:
    scanner = Scanner([])
    assert [scanner.feed(piece) for piece in ("a", "", "bc")] == ["a", "", "bc"]


def test_text_comes_no_later_than_the_window_and_a_block() -> None:
    scanner = Scanner([Watch("w", RegexFinder("secret", 10), "take")])
    late = 0
    for number in range(1, 500):
        late += 1 - len(scanner.feed("x"))
        assert late <= 10 + BLOCK, number


def test_after_a_long_match_text_comes_no_later_than_before() -> None:
    scanner = Scanner([Watch("w", RegexFinder(r"sk-\w+", 8), "take")])
    scanner.feed("sk-" + "a" * 200 + " " * 200)
    late = 0
    for number in range(1, 500):
        late += 1 - len(scanner.feed("x " if number % 2 else ""))
        assert late <= 8 + BLOCK, number


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("before", [0, 20, 31, 32, 40])
def test_each_of_several_rules_sees_its_whole_window(before: int, order: int) -> None:
    watches = [Watch("near", RegexFinder("nothing", 1), "count"), Watch("far", RegexFinder("a.{50}b", 64), "take")]
    text = "-" * before + "a" + "-" * 50 + "b" + "-" * 200
    assert _outcome(watches[::order], text) == (text.replace("a" + "-" * 50 + "b", ""), {"far": 1}, "")


def test_a_long_match_is_counted_once_whatever_else_is_counted_within_it() -> None:
    watches = [Watch("all", RegexFinder("[xy]+", 8), "count"), Watch("y", RegexFinder("y", 8), "count")]
    text = ("x" * 40 + "y") * 5 + " y"
    assert _outcome(watches, text) == (text, {"all": 2, "y": 6}, "")


def test_a_match_that_goes_on_and_on_is_followed_to_its_end() -> None:
    watch = Watch("w", RegexFinder(r"sk-\w+", 8), "take", "[key]")
    assert _outcome([watch], "a sk-" + "x" * 1500 + " b") == ("a [key] b", {"w": 1}, "")


def test_a_match_that_is_too_long_to_be_followed_stops_the_text() -> None:
    watch = Watch("w", RegexFinder(r"sk-\w+", 8), "take", "[key]")
    given_on, _, stopped = _outcome([watch], "a sk-" + "x" * 5000 + " b")
    assert stopped == "w"
    assert "x" not in given_on
