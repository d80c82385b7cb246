"""A pattern that tries ever more ways to match is stopped, and nothing is passed on."""

from __future__ import annotations

import json

import pytest

from jackfield.errors import ConfigError
from jackfield_redaction.arguments import ArgumentsScanner
from jackfield_redaction.config import RedactionConfig
from jackfield_redaction.scanner import Finder, Scanner, replace_in


@pytest.mark.timeout(30)
@pytest.mark.parametrize("regex", ["(?:a|aa)+!", "(?:a|aa|aaa)+!"])
def test_a_match_that_takes_too_long_is_an_error_and_not_a_pass(regex: str) -> None:
    config = RedactionConfig.parse({"patterns": [{"name": "mine", "regex": regex, "max_length": 500}]})
    finder = Finder(config)
    with pytest.raises(ConfigError, match=r"the pattern 'mine' takes more than 20 ms for 500 characters"):
        finder.next_value("a" * 2000, 0, finder.make_budget(), final=True)


SLOW = {"patterns": [{"name": "mine", "regex": "(?:a|aa){1,14}!", "max_length": 40}]}  # about 1 ms at each place


def _keep(kind: str, value: str) -> str:
    return value


@pytest.mark.timeout(60)
@pytest.mark.parametrize("length", [4000, 20_000])
@pytest.mark.parametrize("piece", [1, 50, 20_000])
def test_a_text_takes_time_for_its_length_however_slow_each_place_is(length: int, piece: int) -> None:
    scanner = Scanner(Finder(RedactionConfig.parse(SLOW)), _keep)
    given: list[str] = []
    with pytest.raises(ConfigError, match="take too long for this text"):
        given.extend(scanner.feed("a" * piece) for _ in range(length // piece + 1))
    assert len("".join(given)) < length / 2


@pytest.mark.timeout(60)
def test_all_strings_of_a_call_have_one_budget() -> None:
    scanner = ArgumentsScanner(Finder(RedactionConfig.parse(SLOW)), _keep)
    with pytest.raises(ConfigError, match="take too long for this text"):
        scanner.feed(json.dumps({"many": ["a" * 45] * 500}))


def test_the_time_that_others_take_between_two_pieces_does_not_count() -> None:
    scanner = Scanner(Finder(RedactionConfig.parse(SLOW)), _keep)
    for _ in range(3):
        scanner.feed("b" * 100)
        sum(range(20_000_000))  # some tenths of a second
    scanner.finish()


def test_a_long_text_with_usual_patterns_is_passed_on() -> None:
    patterns = [{"name": f"p{n}", "regex": rf"CUST{n}-[0-9]{{6}}|\bE{n}-\d+", "max_length": 40} for n in range(5)]
    text = "An ordinary line of text with CUST3-123456 and E-12 in it.\n" * 2000
    replaced = replace_in(text, Finder(RedactionConfig.parse({"patterns": patterns})), lambda kind, _: f"[{kind}]")
    assert replaced.count("[p3] and E-12") == 2000
