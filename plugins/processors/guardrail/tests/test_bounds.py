"""A regular expression that tries ever more ways to match is stopped, and nothing is passed on."""

from __future__ import annotations

import json

import pytest

from jackfield.errors import ConfigError
from jackfield_guardrail.arguments import ArgumentsScan
from jackfield_guardrail.finding import RegexFinder
from jackfield_guardrail.regexes import fault_of_regex
from jackfield_guardrail.scanning import CHARACTER_S, TEXT_S, Budget, Scanner, Watch


@pytest.mark.timeout(30)
@pytest.mark.parametrize("regex", ["(?:a|aa)+$", "(?:a|aa|aaa)+$"])
def test_a_search_that_takes_too_long_is_an_error_and_not_a_pass(regex: str) -> None:
    assert fault_of_regex(regex) == ""  # it repeats no repeat
    with pytest.raises(ConfigError, match=r"took more than 0\.1 s on a part of this text"):
        RegexFinder(regex, 64).find("a" * 2000 + "!", 0, complete=True)


def test_a_regex_means_the_same_as_in_python() -> None:
    for regex, text, place in (
        (r"\b密码\b", "这 密码 是", (2, 4)),
        (r"(?<=k)ey\d", "key1", (1, 4)),
        (r"(a)\1", "baa", (1, 3)),
    ):
        found = RegexFinder(regex, 64).find(text, 0, complete=True)
        assert found is not None
        assert (found.start, found.end) == place
    assert RegexFinder("x", 64).find("\ud800x", 0, complete=True) is not None


SLOW = Watch("mine", RegexFinder("(?:a|aa){1,12}!", 40), "stop")  # about 0.2 ms at each of 70 places


@pytest.mark.timeout(60)
@pytest.mark.parametrize("length", [8000, 20_000])
@pytest.mark.parametrize("piece", [50, 20_000])
def test_a_text_takes_time_for_its_length_however_slow_each_place_is(length: int, piece: int) -> None:
    scanner = Scanner([SLOW])
    given: list[str] = []
    with pytest.raises(ConfigError, match="took too long on this text \\(last rule: 'mine'\\)"):
        given.extend(scanner.feed("a" * piece) for _ in range(length // piece + 1))
    assert len("".join(given)) < length / 2


@pytest.mark.timeout(60)
def test_all_strings_of_a_call_have_one_budget() -> None:
    with pytest.raises(ConfigError, match="took too long on this text"):
        ArgumentsScan([SLOW]).of(json.dumps({"many": ["a" * 45] * 1000}))


def test_a_long_text_with_usual_rules_is_passed_on() -> None:
    watches = [Watch(f"r{n}", RegexFinder(rf"CUST{n}-[0-9]{{6}}|\bE{n}-\d+", 40), "take", "[]") for n in range(5)]
    scanner = Scanner(watches)
    text = "An ordinary line of text with CUST3-123456 and E9-12 in it.\n" * 2000
    assert (scanner.feed(text) + scanner.finish()).count("with [] and E9-12") == 2000


def test_each_character_adds_time_for_each_rule() -> None:
    budget = Budget()
    budget.add(characters=10_000, watches=3)
    budget.spend(0.99 * (TEXT_S + 30_000 * CHARACTER_S), "mine")
    with pytest.raises(ConfigError, match="took too long on this text"):
        budget.spend(0.02 * (TEXT_S + 30_000 * CHARACTER_S), "mine")
