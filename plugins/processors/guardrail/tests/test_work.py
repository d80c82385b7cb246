"""The work grows with the text, whatever the text: four times the text may take nine times the CPU, never sixteen."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from jackfield_guardrail.finding import RegexFinder
from jackfield_guardrail.links import LinkFinder
from jackfield_guardrail.scanning import Scanner, Watch

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


def _cpu_s(work: Callable[[], object]) -> float:
    """The best of a few: other processes make each slower, and none faster."""
    best = float("inf")
    for _ in range(2):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best


def _scan(text: str) -> object:
    scanner = Scanner(WATCHES)
    return [*(scanner.feed(text[start : start + 16]) for start in range(0, len(text), 16)), scanner.finish()]


@pytest.mark.parametrize("name", HOSTILE)
def test_four_times_the_text_is_no_sixteen_times_the_work(name: str) -> None:
    text = (HOSTILE[name] * 8_000)[:8_000]
    ratio = _cpu_s(lambda: _scan(text)) / max(_cpu_s(lambda: _scan(text[:2000])), 1e-4)
    assert ratio < 9


@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_is_far_more_work_than_any_other_of_its_length(name: str) -> None:
    plain = ("call 0171 on 2024-01-02, see https://good.example/x and so on. " * 100)[:4000]
    hostile = (HOSTILE[name] * 4000)[:4000]
    assert _cpu_s(lambda: _scan(hostile)) < 150 * _cpu_s(lambda: _scan(plain))
