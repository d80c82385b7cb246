"""Which regular expressions are refused."""

from __future__ import annotations

import pytest

from jackfield.errors import ConfigError
from jackfield_guardrail.config import GuardrailConfig
from jackfield_guardrail.finding import Found, RegexFinder
from jackfield_guardrail.processor import OutputGuardrail
from jackfield_guardrail.regexes import fault_of_regex

REPEATED = [
    "(a+)+b", "(a*)*b", "(a|b+)+c", "((ab)*c)*d", "(?:x+y?)*z", r"(\w+\s?)+!", "(a{2,})+b", "(a+){20}b", "(?P<n>a+)+b",
    "(?i:a+)+b", "((a+))+b", "x(?=(a+)+)b", "(.*,)+x", r"([^)]+)*x", "(a+)+?b", "(a+b|c)*d", "((?>a)b+)+c",
    "(a{0,11})+b", "(a{11})+b", "(?P<q>x)(a+(?P=q)b)+c", "(x)?(a+(?(1)b|c)d)+e", "(x)?(?(1)a+|b)+c",
]  # fmt: skip
PLAIN = [
    "a+b", "(a)+b", r"sk-\w{20,}", r"(\d{1,3}\.){3}\d{1,3}", "(a++)+b", "(?>a+)+b", "(a+)++b", r"\(a+\)+", "[(a+)+]x",
    "(a+)?b", "(a+){2}b", "(ab?)+c", "a+b+c+", "(?#(a+)x+", r"(?P<q>['\"]).*?(?P=q)", "(?i)secret|password", "x{3}",
    r"(?<!\w)key(?=\s)", "(a+b){0,5}c", r"(\d++,)+x", "(?>(?:a+)b)+c", "(a{0,10})+b",
    "(a{10})+b", "(?P<q>a)b+(?P=q)+c", "(x)?(?(1)a|b)+c+",
]  # fmt: skip


@pytest.mark.parametrize("regex", REPEATED)
def test_a_repeat_inside_of_a_repeat_is_refused(regex: str) -> None:
    assert "possessive" in fault_of_regex(regex)


@pytest.mark.parametrize("regex", PLAIN)
def test_an_expression_without_one_is_taken(regex: str) -> None:
    assert fault_of_regex(regex) == ""


@pytest.mark.parametrize(
    ("regex", "fault"),
    [
        ("(", "a valid Python regular expression"),
        ("a*", "empty string"),
        ("", "empty string"),
        ("(?:(?:ab){300}c){300}", "contains too many repetitions"),
    ],
)
def test_what_is_no_expression_or_matches_nothing_is_refused(regex: str, fault: str) -> None:
    assert fault in fault_of_regex(regex)


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        ({"name": "a"}, "judge, got none"),
        ({"name": "a", "deny": "x", "max_length": 5}, "got deny and max_length"),
        ({"name": "a", "deny": "(a+)+"}, "possessive"),
        ({"name": "A b", "deny": "x"}, "name"),
        ({"name": "a", "deny": "x", "action": "replace"}, "`replacement` is required"),
        ({"name": "a", "max_length": 5, "action": "redact"}, "does not support redaction"),
        ({"name": "a", "max_length": 5, "parts": ["reasoning"]}, "`parts`"),
        ({"name": "a", "hosts": [], "window": 5}, "`window`"),
        ({"name": "a", "hosts": ["https://good.example/x"]}, "not a valid host"),
        ({"name": "a", "json_schema": {"type": 5}}, "not a valid JSON Schema"),
        ({"name": "a", "json_schema": False}, "`true` to accept any JSON"),
        ({"name": "a", "language": "fr"}, "language"),
        ({"name": "a", "judge": {"llm": "x"}}, "question"),
        ({"name": "a", "deny": "x", "windw": 5}, "windw"),
    ],
)
def test_a_rule_that_does_not_fit_is_refused_with_what_is_wrong(rule: dict[str, object], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        GuardrailConfig.parse({"rules": [rule]})


@pytest.mark.parametrize("names", ["aa", "baa", "aba", "baca"])
def test_two_rules_of_one_name_are_refused(names: str) -> None:
    with pytest.raises(ConfigError, match="two rules are named 'a'"):
        GuardrailConfig.parse({"rules": [{"name": name, "deny": "x"} for name in names]})


def test_a_guardrail_without_a_rule_is_refused() -> None:
    with pytest.raises(ConfigError, match="every answer would pass"):
        OutputGuardrail()


def test_an_empty_match_hides_no_later_one() -> None:
    finder = RegexFinder("(?=a)|b", 8)
    assert finder.find("ab", 0, complete=True) == Found(1, 2)
    assert finder.find("aab", 0, complete=True) == Found(2, 3)
    assert finder.find("aa", 0, complete=True) is None
