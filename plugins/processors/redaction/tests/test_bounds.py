"""A pattern that tries ever more ways to match is stopped, and nothing is passed on."""

from __future__ import annotations

import json
from contextlib import nullcontext

import pytest

from jackfield.errors import ConfigError
from jackfield_redaction import scanner
from jackfield_redaction.arguments import ArgumentsScanner
from jackfield_redaction.config import RedactionConfig
from jackfield_redaction.scanner import Finder, Scanner, replace_in


@pytest.mark.timeout(30)
@pytest.mark.parametrize("regex", ["(?:a|aa)+!", "(?:a|aa|aaa)+!"])
def test_a_match_that_takes_too_long_is_an_error_and_not_a_pass(regex: str) -> None:
    config = RedactionConfig.parse({"patterns": [{"name": "mine", "regex": regex, "max_length": 500}]})
    finder = Finder(config)
    with pytest.raises(ConfigError, match=r"the pattern 'mine' took more than 20 ms on 500 characters"):
        finder.next_value("a" * 2000, 0, finder.make_budget(), final=True)


class StallingPattern:
    """A pattern whose first matches come too late, as if the machine had no time for them."""

    def __init__(self, stalls: int) -> None:
        self.stalls = stalls

    def match(self, text: str, place: int, *, timeout: float) -> None:
        self.stalls -= 1
        if self.stalls >= 0:
            raise TimeoutError


@pytest.mark.parametrize(("stalls", "is_error"), [(2, False), (3, True)])
def test_a_machine_that_stalls_for_a_moment_is_no_error(
    stalls: int, is_error: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanner.regexes, "compile", lambda *_: StallingPattern(stalls))
    finder = Finder(RedactionConfig.parse({"patterns": [{"name": "mine", "regex": "a", "max_length": 5}]}))
    with pytest.raises(ConfigError) if is_error else nullcontext():
        assert finder.next_value("text", 0, finder.make_budget(), final=True) is None


SLOW = {"patterns": [{"name": "mine", "regex": "(?:a|aa){1,14}!", "max_length": 40}]}  # about 1 ms at each place


def _keep(kind: str, value: str) -> str:
    return value


@pytest.mark.timeout(60)
@pytest.mark.parametrize("length", [4000, 20_000])
@pytest.mark.parametrize("piece", [1, 50, 20_000])
def test_a_text_takes_time_for_its_length_however_slow_each_place_is(length: int, piece: int) -> None:
    scanning = Scanner(Finder(RedactionConfig.parse(SLOW)), _keep)
    given: list[str] = []
    with pytest.raises(ConfigError, match="took too long on this text"):
        given.extend(scanning.feed("a" * piece) for _ in range(length // piece + 1))
    assert len("".join(given)) < length / 2


@pytest.mark.timeout(60)
def test_all_strings_of_a_call_have_one_budget() -> None:
    scanning = ArgumentsScanner(Finder(RedactionConfig.parse(SLOW)), _keep)
    with pytest.raises(ConfigError, match="took too long on this text"):
        scanning.feed(json.dumps({"many": ["a" * 45] * 500}))


def test_the_time_that_others_take_between_two_pieces_does_not_count() -> None:
    scanning = Scanner(Finder(RedactionConfig.parse(SLOW)), _keep)
    for _ in range(3):
        scanning.feed("b" * 100)
        sum(range(20_000_000))  # some tenths of a second
    scanning.finish()


def test_a_long_text_with_usual_patterns_is_passed_on() -> None:
    patterns = [{"name": f"p{n}", "regex": rf"CUST{n}-[0-9]{{6}}|\bE{n}-\d+", "max_length": 40} for n in range(5)]
    text = "An ordinary line of text with CUST3-123456 and E-12 in it.\n" * 2000
    replaced = replace_in(text, Finder(RedactionConfig.parse({"patterns": patterns})), lambda kind, _: f"[{kind}]")
    assert replaced.count("[p3] and E-12") == 2000
