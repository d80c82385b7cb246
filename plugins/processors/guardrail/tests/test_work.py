"""The work grows with the text, whatever the text: four times the text may be seven times the work, never sixteen."""

from __future__ import annotations

import pytest

from jackfield_guardrail.finding import RegexFinder
from jackfield_guardrail.links import LinkFinder
from jackfield_guardrail.scanning import Budget, Scanner, Watch
from jackfield_testkit.streams import work_of

HOSTILE = {
    "letters": "a",
    "spaces": " ",
    "brackets": "[",
    "openings": "](",
    "open addresses": "](a",
    "definitions": "\n[a]: ",
    "attributes": "src=",
    "open quotes": 'src="',
    "schemes": "a:",
    "slashes": "//",
    "hosts": "a.",
    "entities": "](&",
    "backslashes": "](\\",
    "good links": "https://good.example ",
    "bad links": "https://evil.example ",
    "keys": "sk-x",
    "beginnings": "begin",
}
WATCHES = (
    Watch("links", LinkFinder(["good.example"]), "count"),
    Watch("keys", RegexFinder(r"sk-\w+", 64), "count"),
    Watch("between", RegexFinder(r"(?s)begin.*end", 64), "count"),
    Watch("spaces", RegexFinder(r"\s+x", 64), "count"),
)


def _scan(text: str) -> object:
    budget = Budget()
    budget.add(1 << 30, 1)  # counting the work takes several times as long as the work
    scanner = Scanner(WATCHES, budget)
    return [*(scanner.feed(text[start : start + 16]) for start in range(0, len(text), 16)), scanner.finish()]


@pytest.mark.parametrize("name", HOSTILE)
def test_four_times_the_text_is_no_sixteen_times_the_work(name: str) -> None:
    text = (HOSTILE[name] * 4_000)[:4_000]
    assert work_of(lambda: _scan(text), [0]) < 7 * work_of(lambda: _scan(text[:1000]), [0])


@pytest.mark.timeout(40)
@pytest.mark.parametrize("name", ["letters", "spaces", "brackets", "schemes", "slashes", "hosts", "keys", "beginnings"])
def test_a_long_text_comes_to_its_end_where_expressions_do_the_work(name: str) -> None:
    """Their steps cannot be counted: one that grows with the square would take many minutes for this text."""
    _scan((HOSTILE[name] * 100_000)[:100_000])


@pytest.fixture(scope="module")
def plain() -> int:
    """The work for a usual text."""
    text = ("call 0171 on 2024-01-02, see https://good.example/x and so on. " * 100)[:2000]
    return work_of(lambda: _scan(text), [0])


@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_is_far_more_work_than_any_other_of_its_length(name: str, plain: int) -> None:
    hostile = (HOSTILE[name] * 2000)[:2000]
    assert work_of(lambda: _scan(hostile), [0]) < 80 * plain
