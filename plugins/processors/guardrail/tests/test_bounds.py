"""A regular expression that tries ever more ways to match is stopped, and nothing is passed on."""

from __future__ import annotations

import pytest

from jackfield.errors import ConfigError
from jackfield_guardrail.finding import RegexFinder
from jackfield_guardrail.regexes import fault_of_regex


@pytest.mark.timeout(30)
@pytest.mark.parametrize("regex", ["(?:a|aa)+$", "(?:a|aa|aaa)+$"])
def test_a_search_that_takes_too_long_is_an_error_and_not_a_pass(regex: str) -> None:
    assert fault_of_regex(regex) == ""  # it repeats no repeat
    with pytest.raises(ConfigError, match=r"takes more than 0\.1 s for a part of this text"):
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
