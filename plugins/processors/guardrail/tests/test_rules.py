"""A rule has usual settings and limits, and says in two languages what was wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from jackfield.config import Lang
from jackfield.errors import ConfigError
from jackfield.events import ModelEvent, ModelFinished, PluginEvent, TextDelta
from jackfield.request import ChatRequest
from jackfield_guardrail.config import RuleConfig
from jackfield_guardrail.links import LinkFinder
from jackfield_guardrail.processor import OutputGuardrail
from jackfield_guardrail.rules import Check
from jackfield_guardrail.whole import LanguageCheck
from tests.support.promises import check_limit

Ask = Callable[..., list[ModelEvent]]


def test_a_rule_has_these_defaults() -> None:
    rule = RuleConfig(name="a", deny="x")
    left = rule.model_dump(exclude={"name", "deny"})
    assert {name: value for name, value in left.items() if value is not None} == {
        "action": "block",
        "retries": 1,
        "hint": "",
        "window": 64,
        "parts": ("text", "reasoning"),
    }
    check = Check(name="a", function=bool)
    assert (check.action, check.replacement, check.retries, check.hint) == ("block", None, 1, "")


@pytest.mark.parametrize(
    ("setting", "last", "beyond", "needed"),
    [
        ("max_length", 0, -1, {}),
        ("retries", 1, 0, {"deny": "x"}),
        ("retries", 10, 11, {"deny": "x"}),
        ("window", 1, 0, {"deny": "x"}),
        ("window", 1024, 1025, {"require": "x"}),
        ("parts", ("arguments",), (), {"hosts": []}),
        ("parts", ("text",), ("title",), {"deny": "x"}),
        ("name", "a" * 40, "a" * 41, {"deny": "x"}),
        ("name", "a_1", "1a", {"deny": "x"}),
        ("action", "note", "warn", {"deny": "x"}),
    ],
)
def test_a_rule_has_these_limits(setting: str, last: object, beyond: object, needed: dict[str, Any]) -> None:
    check_limit(RuleConfig, setting, last, beyond, {"name": "rule", **needed})


@pytest.mark.parametrize(
    "host", ["www.example.org", "*.example.org", "localhost:8000", "example.org:1", "münchen.example"]
)
def test_a_host_is_a_name_with_or_without_a_port_and_subdomains(host: str) -> None:
    assert RuleConfig(name="a", hosts=(host,)).hosts == (host,)


@pytest.mark.parametrize(
    "host",
    ["", "a b", "https://a.example", "a.example/x", "u@a.example", "a.*.example", "*", "a:", "a:b", "a?b", "a#b"],
)
def test_what_is_no_host_is_refused(host: str) -> None:
    with pytest.raises((ConfigError, ValueError), match=r"is not a valid host, such as www\.example\.org"):
        RuleConfig(name="a", hosts=(host,))


def again(ask: Ask, question: ChatRequest, lang: Lang, rule: dict[str, Any], said: str) -> str:
    """The note with which the model is asked again."""
    asked: list[ChatRequest] = []
    guardrail = OutputGuardrail(rules=[{"name": "rule_1", "action": "retry", "replacement": "-", **rule}])
    script = [[TextDelta(said), ModelFinished("stop")], [TextDelta("yes yes"), ModelFinished("stop")]]

    async def model(request: ChatRequest) -> Any:
        asked.append(request)
        for event in script.pop(0):
            yield event

    async def read() -> None:

        async for _ in guardrail.around(replace(question, lang=lang), model):
            pass

    asyncio.run(read())
    assert asked[1].messages[:-1] == question.messages
    assert asked[1].messages[-1].role == "user"
    return asked[1].messages[-1].get_text_content()


@pytest.mark.parametrize(
    ("rule", "said", "en", "zh"),
    [
        ({"deny": "no"}, "no", "it contains what the rule rule_1 forbids", "其中有规则 rule_1 禁止的内容"),
        ({"require": "yes"}, "no", "it lacks what the rule rule_1 asks for", "其中缺少规则 rule_1 要求的内容"),
        ({"max_length": 7}, "12345678", "it is longer than 7 characters", "它超过了 7 个字符"),
        (
            {"hosts": ["a.example", "b.example"]},
            "https://c.example/x",
            "it has links or images of other hosts than the allowed ones (a.example, b.example)",
            "其中有指向其他主机的链接或图片，只允许这些主机：a.example, b.example",
        ),
        (
            {"hosts": []},
            "https://c.example/x",
            "it has links or images of other hosts than the allowed ones (-)",
            "其中有指向其他主机的链接或图片，只允许这些主机：-",
        ),
        (
            {"language": "en"},
            "数据数据数据数据数据数据",
            "it must be written in English",
            "它必须用英文书写",
        ),
        ({"language": "zh"}, "It is only English.", "it must be written in Chinese", "它必须用中文书写"),
        ({"deny": "no", "hint": "be kind"}, "no", "be kind", "be kind"),
    ],
)
def test_the_model_is_told_what_was_wrong_in_the_language_of_the_conversation(
    ask: Ask, question: ChatRequest, rule: dict[str, Any], said: str, en: str, zh: str
) -> None:
    note = again(ask, question, "en", rule, said)
    assert f"was not passed on, because {en}. Nobody has seen it." in note
    note = again(ask, question, "zh", rule, said)
    assert f"原因是：{zh}。没有人看到它。" in note


def test_an_answer_that_is_no_json_is_explained_to_the_model(ask: Ask, question: ChatRequest) -> None:
    for lang, text in (
        ("en", "it must be one JSON document and nothing else ("),
        ("zh", "它必须是一个 JSON 文档，别无其他 ("),
    ):
        assert text in again(ask, question, lang, {"json_schema": True}, "{")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("action", "lang", "note"),
    [
        ("replace", "en", "the answer was replaced (rule a)"),
        ("replace", "zh", "回答已被替换（规则 a）"),
        ("retry", "en", "the model is asked again (rule a)"),
        ("retry", "zh", "正在重新请求回答（规则 a）"),
        ("note", "en", "the answer violates the rule a"),
        ("note", "zh", "回答不符合规则 a"),
    ],
)
def test_an_event_says_to_people_what_happened(question: ChatRequest, action: str, lang: Lang, note: str) -> None:

    guardrail = OutputGuardrail(rules=[{"name": "a", "deny": "no", "action": action, "replacement": "-"}])
    script = [[TextDelta("no"), ModelFinished("stop")], [TextDelta("yes"), ModelFinished("stop")]]

    async def model(request: ChatRequest) -> Any:
        for event in script.pop(0):
            yield event

    async def read() -> list[ModelEvent]:
        return [event async for event in guardrail.around(replace(question, lang=lang), model)]

    (told,) = [event for event in asyncio.run(read()) if isinstance(event, PluginEvent)]
    assert told.name == "jackfield-guardrail.rule"
    assert told.data == {"rule": "a", "action": action, "count": 1, "note": note}


@pytest.mark.parametrize(
    ("language", "text", "passes"),
    [
        ("en", "a" * 80 + "я" * 20, True),
        ("en", "a" * 79 + "я" * 21, False),
        ("en", "é" * 80 + "я" * 20, True),
        ("en", "я" * 9, True),
        ("en", "я" * 10, False),
        ("zh", "数" * 30 + "a" * 70, True),
        ("zh", "数" * 29 + "a" * 71, False),
        ("zh", "数" * 91 + "の" * 9, True),
        ("zh", "数" * 90 + "の" * 10, False),
        ("zh", "数" * 90 + "カ" * 10, False),
        ("zh", "a" * 9, True),
        ("zh", "a" * 10, False),
        ("zh", "```\n" + "a" * 99 + "\n``` `" + "a" * 99 + "` 数", True),
        ("zh", "```\n" + "a" * 99, True),
        ("zh", "`" + "a" * 99 + "\n`", False),
        ("en", "12345 67890 !?", True),
    ],
)
def test_a_language_is_known_by_the_share_of_its_letters(language: Lang, text: str, passes: bool) -> None:
    assert asyncio.run(LanguageCheck(language)(text, "en")).passes is passes


def test_a_guardrail_shows_its_rules_by_name() -> None:
    guardrail = OutputGuardrail(
        rules=[{"name": "a", "deny": "secret"}], checks=[Check(name="b", function=lambda text: True)]
    )
    assert repr(guardrail) == "<OutputGuardrail rules=['a', 'b']>"


@pytest.mark.parametrize(
    "text", ["see http://example.org/a ", "see HTTPS://EXAMPLE.ORG/a ", "see http://a.example.net "]
)
def test_hosts_may_be_written_with_capitals_in_the_settings_and_in_the_text(text: str) -> None:
    hosts = ["Example.ORG", "*.Example.NET"]
    assert LinkFinder(hosts).find(text, 0, complete=True) is None
    assert LinkFinder(["other.org"]).find("see http://example.org/a ", 0, complete=True) is not None
