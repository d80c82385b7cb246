"""What follows when an answer does not keep a rule: on the fly, at its end, in reasoning and in calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal

import pytest

from jackfield import sync
from jackfield.errors import ConfigError, ContentFilterError, ModelOverloadedError
from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    StreamReset,
    TextDelta,
    UsageReported,
)
from jackfield.messages import ContentItem, ModelResponse, Usage
from jackfield.models import fold
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_guardrail.processor import RULE_EVENT, OutputGuardrail
from jackfield_guardrail.rules import Check
from jackfield_guardrail.whole import Verdict

Ask = Callable[..., list[ModelEvent]]


def _said(text: str, *, usage: Usage | None = None) -> list[ModelEvent]:
    """An answer that comes one character at a time."""
    events: list[ModelEvent] = [TextDelta(letter) for letter in text]
    return [*events, *([UsageReported(usage)] if usage else []), ModelFinished("stop")]


def _call(arguments: str, *, name: str = "fetch") -> list[ModelEvent]:
    halves = arguments[:5], arguments[5:]
    return [
        FunctionCallDelta(0, "c1", name, halves[0]),
        FunctionCallDelta(0, arguments=halves[1]),
        ModelFinished("tool_calls"),
    ]


def _text(events: list[ModelEvent]) -> str:
    return "".join(str(message.content) for message in fold(events).messages)


def _rule(**fields: Any) -> OutputGuardrail:
    return OutputGuardrail(rules=[{"name": "mine", **fields}])


def _told(events: list[ModelEvent]) -> list[tuple[str, str, int]]:
    return [
        (event.data["rule"], event.data["action"], event.data["count"])
        for event in events
        if isinstance(event, PluginEvent) and event.name == RULE_EVENT
    ]


def _cost(prompt_tokens: int) -> Usage:
    return Usage(prompt_tokens=prompt_tokens, completion_tokens=1, cost=Decimal(prompt_tokens), currency="USD")


# --- block ---


def test_a_blocked_answer_is_an_error_that_names_the_rule_and_nothing_of_the_text(ask: Ask) -> None:
    with pytest.raises(ContentFilterError) as caught:
        ask(_rule(deny="sword.*"), _said("before it " * 9 + "swordfish"))
    assert "'mine'" in str(caught.value)
    assert "sword" not in repr(caught.value) + repr(caught.value.__dict__)
    assert (caught.value.code, caught.value.retryable) == ("output_guardrail", False)


def test_what_the_caller_has_of_a_blocked_answer_ends_before_what_was_found() -> None:
    model = ScriptedModel([answer("well and good, " * 20 + "swordfish and more")], processors=[_rule(deny="swordfish")])
    with pytest.raises(ContentFilterError) as caught:
        sync.run(model.acomplete([{"role": "user", "content": "Hi"}]))
    assert caught.value.partial_text.startswith("well and good")
    assert "sword" not in caught.value.partial_text


def test_a_rule_is_found_across_the_pieces_of_a_stream_even_with_reasoning_between_them(ask: Ask) -> None:
    events = [TextDelta("sword"), ReasoningDelta("hm"), TextDelta("fish"), ModelFinished("stop")]
    with pytest.raises(ContentFilterError):
        ask(_rule(deny="swordfish"), events)


def test_an_answer_that_keeps_the_rules_comes_as_it_is(ask: Ask) -> None:
    said = answer("All is well.", reasoning="Let me see.")
    assert fold(ask(_rule(deny="swordfish"), said)) == fold(said)


def test_the_first_rule_that_is_not_kept_is_named(ask: Ask) -> None:
    rules = [{"name": "one", "deny": "fish"}, {"name": "two", "deny": "sword"}]
    with pytest.raises(ContentFilterError, match="'two'"):
        ask(OutputGuardrail(rules=rules), _said("a sword, then a fish"))


@pytest.mark.parametrize("order", [1, -1])
def test_each_of_several_lengths_is_checked(ask: Ask, order: int) -> None:
    rules = [{"name": "long", "max_length": 100}, {"name": "short", "max_length": 10}][::order]
    assert _text(ask(OutputGuardrail(rules=rules), _said("a" * 10))) == "a" * 10
    with pytest.raises(ContentFilterError, match="'short'"):
        ask(OutputGuardrail(rules=rules), _said("a" * 11))


@pytest.mark.parametrize("more", [[], [{"name": "all", "require": "well"}]], ids=["streaming", "complete"])
def test_a_short_thought_comes_before_the_text_that_it_led_to(ask: Ask, more: list[dict[str, Any]]) -> None:
    rules = [{"name": "mine", "deny": "swordfish"}, *more]
    events = ask(OutputGuardrail(rules=rules), answer("All is well.", reasoning="Let me see."))
    assert [type(event) for event in events if event.is_delta] == [ReasoningDelta, TextDelta]


# --- replace ---


def test_another_text_takes_the_place_of_the_answer(ask: Ask) -> None:
    end = ModelFinished("stop", model="m", response_id="r", created=5, data={"output": "swordfish"})
    said = [TextDelta("it is well " * 20), TextDelta("swordfish"), UsageReported(_cost(3)), end]
    events = ask(_rule(deny="swordfish", action="replace", replacement="No."), said)
    came = fold(events)
    assert came == ModelResponse(
        messages=came.messages, usage=_cost(3), model="m", finish_reason="content_filter", response_id="r", created=5
    )
    assert [message.content for message in came.messages] == ["No."]
    assert "sword" not in repr(events)
    assert _told(events) == [("mine", "replace", 1)]


def test_what_was_shown_of_a_replaced_answer_is_taken_back_and_otherwise_nothing_is(ask: Ask) -> None:
    guardrail = _rule(deny="swordfish", action="replace", replacement="No.")
    assert StreamReset("rule mine") in ask(guardrail, _said("it is well " * 20 + "swordfish"))
    assert StreamReset("rule mine") not in ask(guardrail, _said("swordfish"))


def test_calls_of_a_replaced_answer_are_gone_too(ask: Ask) -> None:
    said = [TextDelta("swordfish"), *calls(("fetch", {"url": "x"}))]
    came = fold(ask(_rule(deny="swordfish", action="replace", replacement="No."), said))
    assert [(message.content, message.function_call) for message in came.messages] == [("No.", None)]


@pytest.mark.parametrize("action", ["replace", "retry"])
def test_an_empty_replacement_leaves_an_empty_answer(ask: Ask, action: Literal["replace", "retry"]) -> None:
    check = Check(name="mine", function=lambda said: "fish" not in said, action=action, replacement="")
    for guardrail in (_rule(deny="fish", action=action, replacement=""), OutputGuardrail(checks=[check])):
        events = ask(guardrail, _said("fish"), _said("fish"))
        assert _text(events) == ""
        assert _told(events)[-1] == ("mine", "replace", 1)


# --- redact ---


def test_what_is_found_is_replaced_and_never_shown_for_a_moment(ask: Ask) -> None:
    events = ask(_rule(deny=r"sk-\w+", action="redact"), _said("key: sk-abcdef, and sk-" + "x" * 300 + "!"))
    assert _text(events) == "key: [removed], and [removed]!"
    assert "sk-" not in repr(events)
    assert _told(events) == [("mine", "redact", 2)]


def test_what_is_too_long_to_be_redacted_blocks_the_answer(ask: Ask) -> None:
    with pytest.raises(ContentFilterError, match="'mine'"):
        ask(_rule(deny=r"sk-\w+", action="redact"), _said("sk-" + "x" * 5000 + " "))


@pytest.mark.parametrize("order", [1, -1])
def test_several_rules_redact_side_by_side(ask: Ask, order: int) -> None:
    rules = [
        {"name": "keys", "deny": r"sk-\w+", "action": "redact", "replacement": "[key]"},
        {"name": "links", "hosts": ["good.example"], "action": "redact", "replacement": ""},
    ]
    events = ask(
        OutputGuardrail(rules=rules[::order]),
        _said("sk-abc ![](https://evil.example/sk-abc) https://good.example/sk-x"),
    )
    assert _text(events) == "[key] ![]() https://good.example/[key]"
    assert sorted(_told(events)) == [("keys", "redact", 2), ("links", "redact", 1)]


# --- retry ---


def test_the_model_is_asked_again_with_a_note_of_what_was_wrong(ask: Ask, question: ChatRequest) -> None:
    asked: list[ChatRequest] = []
    guardrail = _rule(json_schema={"type": "object", "required": ["a"]}, action="retry", retries=2)
    events = ask(guardrail, answer("Sure!"), answer('{"b": 1}'), answer('{"a": 1}'), asked=asked)
    assert _text(events) == '{"a": 1}'
    assert asked[0] is question
    notes = [request.messages[-1] for request in asked[1:]]
    assert [request.messages[:-1] for request in asked[1:]] == [question.messages] * 2
    assert all(note.role == "user" for note in notes)
    assert "one JSON document" in str(notes[0].content)
    assert "'a' is a required property" in str(notes[1].content)
    assert "Sure!" not in str(notes[0].content)


def test_a_function_is_asked_only_about_answers_that_keep_the_rules_of_the_settings(ask: Ask) -> None:
    seen: list[str] = []
    check = Check(name="look", function=lambda text: not seen.append(text), action="retry")  # type: ignore[func-returns-value]
    guardrail = OutputGuardrail(rules=[{"name": "json", "json_schema": True, "action": "retry"}], checks=[check])
    assert _text(ask(guardrail, _said("no"), _said("[]"))) == "[]"
    assert seen == ["[]"]


def test_a_hint_of_a_function_is_what_the_model_is_told(ask: Ask) -> None:
    asked: list[ChatRequest] = []
    check = Check(name="calm", function=lambda text: not text.isupper(), action="retry", hint="it must not shout")
    ask(OutputGuardrail(checks=[check]), _said("NO!"), _said("No."), asked=asked)
    assert "because it must not shout." in str(asked[1].messages[-1].content)


def test_a_hint_of_ones_own_is_what_the_model_is_told(ask: Ask) -> None:
    asked: list[ChatRequest] = []
    ask(_rule(deny="fish", action="retry", hint="it names an animal"), _said("fish"), _said("bread"), asked=asked)
    assert "because it names an animal." in str(asked[1].messages[-1].content)


def test_after_its_retries_a_rule_blocks_or_replaces(ask: Ask) -> None:
    with pytest.raises(ContentFilterError, match="'mine'"):
        ask(_rule(deny="fish", action="retry", retries=2), _said("fish"), _said("fish"), _said("fish"))
    guardrail = _rule(deny="fish", action="retry", replacement="No.")
    events = ask(guardrail, _said("fish"), _said("fish"))
    assert _text(events) == "No."
    assert _told(events) == [("mine", "retry", 1), ("mine", "replace", 1)]


def test_each_rule_has_its_own_retries(ask: Ask) -> None:
    guardrail = OutputGuardrail(
        rules=[{"name": "one", "deny": "fish", "action": "retry"}, {"name": "two", "deny": "meat", "action": "retry"}]
    )
    assert _text(ask(guardrail, _said("fish"), _said("meat"), _said("bread"))) == "bread"


def test_rules_that_take_turns_do_not_ask_forever(ask: Ask) -> None:
    rules = [{"name": name, "deny": name, "action": "retry"} for name in ("sword", "fish")]
    with pytest.raises(ContentFilterError, match="'sword'"):
        ask(OutputGuardrail(rules=rules), _said("sword"), _said("fish"), _said("sword"))


@pytest.mark.parametrize("action", ["replace", "retry"])
@pytest.mark.parametrize("rule", [{"require": "bread"}, {"language": "en"}, {"json_schema": {"const": "bread"}}])
def test_what_needs_the_whole_is_not_shown_before_it_is_checked(ask: Ask, rule: dict[str, Any], action: str) -> None:
    events = ask(_rule(**rule, action=action, replacement='"bread"'), _said("数据" * 50), _said('"bread"'))
    assert not any(isinstance(event, StreamReset) for event in events)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == '"bread"'


def test_what_was_shown_of_an_answer_is_taken_back_before_the_next(ask: Ask) -> None:
    events = ask(_rule(deny="swordfish", action="retry"), _said("it is well " * 20 + "swordfish"), _said("bread"))
    assert _text(events) == "bread"
    assert sum(isinstance(event, StreamReset) for event in events) == 1


def test_all_answers_are_paid_for(ask: Ask) -> None:
    said = [_said("fish", usage=_cost(number)) for number in (100, 20, 3)]
    events = ask(_rule(deny="fish", action="retry", retries=2, replacement="No."), *said)
    assert fold(events).usage == _cost(100) + _cost(20) + _cost(3)
    silent = ask(_rule(deny="fish", action="retry"), _said("fish", usage=_cost(100)), _said("bread"))
    assert fold(silent).usage == _cost(100), "also if the last answer says nothing of its cost"


def test_a_chinese_conversation_gets_a_chinese_note() -> None:
    model = ScriptedModel([answer("fish"), answer("bread")], processors=[_rule(deny="fish", action="retry")])
    model.quick_chat("你好")
    assert "重新回答" in str(model.requests[1].messages[-1].content)


# --- note ---


def test_a_note_is_all_that_follows_and_nothing_waits(ask: Ask) -> None:
    guardrail = OutputGuardrail(
        rules=[
            {"name": "fish", "deny": "fish", "action": "note"},
            {"name": "thanks", "require": "(?i)thank", "action": "note"},
            {"name": "short", "max_length": 20, "action": "note"},
            {"name": "json", "json_schema": True, "action": "note"},
        ]
    )
    events = ask(guardrail, _said("a fish, and another fish" + " " * 200))
    assert _text(events) == "a fish, and another fish" + " " * 200
    assert sorted(_told(events)) == [
        ("fish", "note", 2),
        ("json", "note", 1),
        ("short", "note", 1),
        ("thanks", "note", 1),
    ]
    first = next(place for place, event in enumerate(events) if isinstance(event, TextDelta))
    assert len(events) - first > 10, "it came in pieces"
    notes = [event.data["note"] for event in events if isinstance(event, PluginEvent)]
    assert all("violates the rule" in note for note in notes)


def test_what_thoughts_and_arguments_contain_is_noted_with_what_the_text_contains(ask: Ask) -> None:
    said = [ReasoningDelta("fish"), TextDelta("fish, fish"), *_call('{"a": "fish", "b": ["fish"]}')]
    guardrail = _rule(deny="fish", action="note", parts=["text", "reasoning", "arguments"])
    events = ask(guardrail, said)
    assert fold(events).messages == fold(said).messages
    assert _told(events) == [("mine", "note", 5)]


# --- each thing that is checked ---


@pytest.mark.parametrize(
    ("rule", "kept", "not_kept"),
    [
        ({"require": r"\[\d+\]"}, "As said [12].", "As said."),
        ({"max_length": 5}, "12345", "123456"),
        ({"max_length": 0}, "", "1"),
        ({"json_schema": True}, ' {"a": [1]}\n', '{"a": [1]} and more'),
        ({"json_schema": True}, "[]", "[" * 100_000),
        ({"json_schema": {"type": "array", "maxItems": 1}}, "[1]", "[1, 2]"),
        ({"language": "en"}, "The answer is 42, 数据.", "答案是四十二，没有别的可能。"),
        ({"language": "en"}, "```\n这是代码，不算在内。\n``` is all there is to it", "Это очень длинный ответ."),
        ({"language": "zh"}, "可以用 Python 的 asyncio 模块来写这个程序。", "You can write it in Python, 好。"),
        ({"language": "zh"}, "42", "これは日本語で書かれた答えですよ。"),
        ({"hosts": ["good.example"]}, "https://good.example/x", "https://evil.example/x"),
        ({"deny": "(?i)swordfish"}, "sword fish", "SwordFish"),
    ],
)
def test_a_rule_is_kept_or_not(ask: Ask, rule: dict[str, Any], kept: str, not_kept: str) -> None:
    came = ask(_rule(**rule), _said(kept))
    assert _text(came) == kept
    assert not [event for event in came if isinstance(event, PluginEvent)]
    with pytest.raises(ContentFilterError):
        ask(_rule(**rule), _said(not_kept))


def test_what_needs_the_whole_holds_back_the_text_the_calls_and_the_media(ask: Ask) -> None:
    picture = MediaDelta(ContentItem(image="https://example.org/a.png"))
    said = [ReasoningDelta("hm"), TextDelta("Nein, wirklich nicht: 数据数据数据数据数据"), picture, *calls(("f", {}))]
    came: list[ModelEvent] = []
    with pytest.raises(ContentFilterError):
        sync.run(_into(came, _rule(language="en"), said))
    assert came == [ReasoningDelta("hm")]


async def _into(came: list[ModelEvent], guardrail: OutputGuardrail, said: list[ModelEvent]) -> None:
    model = ScriptedModel([said], processors=[guardrail])
    async for event in model.astream([{"role": "user", "content": "Hi"}]):
        came += [] if isinstance(event, UsageReported) else [event]


def test_the_first_rule_that_an_answer_violates_decides(ask: Ask) -> None:
    first = {"name": "first", "deny": "x", "window": 8, "action": "replace", "replacement": "A"}
    second = {"name": "second", "max_length": 200, "action": "replace", "replacement": "B"}
    for said, replaced in (("x" + "-" * 300, "A"), ("-" * 300 + "x", "B")):
        events = [*map(TextDelta, said), ModelFinished("stop")]
        assert _text(ask(OutputGuardrail(rules=[first, second]), events)) == replaced


def test_a_match_of_any_length_is_noted_and_none_that_is_too_long_is_taken_out(ask: Ask) -> None:
    guardrail = _rule(deny="a+", action="note")
    assert _text(ask(guardrail, _said("a" * 5000))) == "a" * 5000
    with pytest.raises(ContentFilterError):  # one that takes out cannot tell where the match ends
        ask(_rule(deny="a+", action="redact", replacement="[a]"), _said("a" * 5000))


def test_an_answer_with_calls_needs_neither_be_json_nor_have_what_is_required(ask: Ask) -> None:
    guardrail = OutputGuardrail(
        rules=[{"name": "json", "json_schema": True}, {"name": "sources", "require": "Sources:"}]
    )
    said = calls(("fetch", {"url": "x"}), text="Let me look.")
    assert fold(ask(guardrail, said)) == fold(said)


def test_an_empty_answer_lacks_what_is_required(ask: Ask) -> None:
    with pytest.raises(ContentFilterError):
        ask(_rule(require="x"), [ModelFinished("stop")])


def test_an_answer_that_breaks_off_is_not_passed_on_as_if_it_were_checked(ask: Ask) -> None:
    assert ask(_rule(language="en"), [TextDelta("half an answer")]) == []


def test_an_error_passes_and_what_waited_does_not() -> None:
    model = ScriptedModel([[TextDelta("half"), ModelOverloadedError("busy")]], processors=[_rule(language="en")])
    with pytest.raises(ModelOverloadedError) as caught:
        sync.run(model.acomplete([{"role": "user", "content": "Hi"}]))
    assert caught.value.partial_text == ""


def test_what_waited_is_forgotten_when_the_answer_begins_again(ask: Ask) -> None:
    said: list[ModelEvent] = [
        TextDelta("fish"),
        StreamReset("again"),
        TextDelta("bread and butter"),
        ModelFinished("stop"),
    ]
    for rule in ({"language": "en"}, {"deny": "butterfish"}):
        assert _text(ask(_rule(**rule), said)) == "bread and butter"


# --- parts ---


def test_reasoning_is_looked_at_unless_told_otherwise(ask: Ask) -> None:
    said: list[ModelEvent] = [
        *(ReasoningDelta("sword"), ReasoningDelta("fish")),
        *(TextDelta("no"), ModelFinished("stop")),
    ]
    with pytest.raises(ContentFilterError):
        ask(_rule(deny="swordfish"), said)
    assert fold(ask(_rule(deny="swordfish", parts=["text"]), said)) == fold(said)
    redacted = fold(ask(_rule(deny="swordfish", action="redact"), said))
    assert redacted.messages[0].reasoning_content == "[removed]"


def test_arguments_are_looked_at_only_if_told_to(ask: Ask) -> None:
    said = _call('{"url": "https://evil.example/?q=1"}')
    assert fold(ask(_rule(hosts=[]), said)) == fold(said)
    with pytest.raises(ContentFilterError):
        ask(_rule(hosts=[], parts=["arguments"]), said)


@pytest.mark.parametrize(
    "arguments",
    [
        '{"a": ["x", {"swordfish": 1}]}',
        '{"a": "sword\\u0066ish"}',
        '{"a": "\\u0073wordfish", "b": 2}',
        "print('swordfish')",
        '{"a": "swordfish',
        "{'a': 'swordfish'}",
        '```json\n{"a": "sword\\u0066ish"}\n```',
        *('{"a": ' * depth + '"swordfish"' + "}" * depth for depth in (600, 50_000)),
    ],
)
def test_arguments_are_read_as_a_tool_reads_them(ask: Ask, arguments: str) -> None:
    with pytest.raises(ContentFilterError):
        ask(_rule(deny="swordfish", parts=["arguments"]), _call(arguments))


def test_the_id_and_the_name_of_a_call_may_come_apart(ask: Ask) -> None:
    said = [FunctionCallDelta(0, "c1"), FunctionCallDelta(0, "", "fetch"), *_call('{"a": 1}', name="")[1:]]
    assert fold(ask(_rule(deny="swordfish", parts=["arguments"]), said)) == fold(said)


def test_true_false_and_null_in_arguments_are_no_text(ask: Ask) -> None:
    said = _call('{"a": true, "b": [false, null]}')
    assert fold(ask(_rule(deny="(?i)true|false|null|none", parts=["arguments"]), said)) == fold(said)


@pytest.mark.parametrize("number", ["4930123456", "-4930123456", "4930123456.5"])
def test_numbers_in_arguments_are_looked_at_too(ask: Ask, number: str) -> None:
    with pytest.raises(ContentFilterError):
        ask(_rule(deny=r"\d{10}", parts=["arguments"]), _call(f'{{"to": [{number}]}}'))


def test_redacted_arguments_stay_json_and_others_stay_as_they_were_written(ask: Ask) -> None:
    guardrail = _rule(deny='sword"fish', action="redact", replacement='"', parts=["arguments"])
    (message,) = fold(ask(guardrail, _call(json.dumps({"a": ['the sword"fish'], "ü": 1})))).messages
    assert message.function_call is not None
    assert json.loads(message.function_call.arguments) == {"a": ['the "'], "ü": 1}
    plain = '{ "a" :  "\\u00fc" }'
    (message,) = fold(ask(guardrail, _call(plain))).messages
    assert message.function_call is not None
    assert message.function_call.arguments == plain


# --- functions ---


def test_a_function_decides(ask: Ask) -> None:
    async def calm(text: str) -> str | bool:
        return "it shouts" if text.isupper() else True

    asked: list[ChatRequest] = []
    guardrail = OutputGuardrail(checks=[Check(name="calm", function=calm, action="retry")])
    assert _text(ask(guardrail, _said("NO!"), _said("No."), asked=asked)) == "No."
    assert "because it shouts." in str(asked[1].messages[-1].content)
    seen: list[str] = []
    several = [Check(name=name, function=lambda text: not seen.append(text)) for name in "ab"]  # type: ignore[func-returns-value]
    guardrail = OutputGuardrail(checks=[*several, Check(name="calm", function=calm, action="retry")])
    assert _text(ask(guardrail, _said("NO!"), _said("No."))) == "No."
    assert seen == ["NO!", "NO!", "No.", "No."], "each function gets the answer"


def test_a_function_may_say_what_it_cost(ask: Ask) -> None:
    guardrail = OutputGuardrail(checks=[Check(name="paid", function=lambda _: Verdict(True, usage=_cost(5)))])
    assert fold(ask(guardrail, _said("x", usage=_cost(3)))).usage == _cost(3) + _cost(5)
    assert fold(ask(guardrail, _said("x"))).usage == _cost(5)
    costs = [Check(name=f"n{cost}", function=lambda _, cost=cost: Verdict(True, usage=_cost(cost))) for cost in (5, 7)]  # type: ignore[misc]
    assert fold(ask(OutputGuardrail(checks=costs), _said("x", usage=_cost(3)))).usage == _cost(3) + _cost(5) + _cost(7)


def test_a_function_that_fails_lets_nothing_pass(ask: Ask) -> None:
    def broken(_: str) -> bool:
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        ask(OutputGuardrail(checks=[Check(name="broken", function=broken)]), _said("x"))


def test_a_function_sees_what_the_caller_would_get(ask: Ask) -> None:
    seen: list[str] = []
    guardrail = OutputGuardrail(
        rules=[{"name": "keys", "deny": r"sk-\w+", "action": "redact"}],
        checks=[Check(name="look", function=lambda text: not seen.append(text))],  # type: ignore[func-returns-value]
    )
    ask(guardrail, [ReasoningDelta("A key."), *_said("sk-abc!")])
    assert seen == ["[removed]!"]
    ask(guardrail, [TextDelta(" \n"), *calls(("fetch", {}))])
    assert seen == ["[removed]!"], "white space beside a call is no answer"


@pytest.mark.parametrize(
    ("check", "fault"),
    [
        ({"name": "A"}, "not a valid name"),
        ({"name": "mine"}, "two rules"),
        ({"name": "a", "action": "redact"}, "cannot redact"),
        ({"name": "a", "action": "replace"}, "`replacement`"),
    ],
)
def test_a_check_that_does_not_fit_is_refused(check: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        OutputGuardrail(rules=[{"name": "mine", "deny": "x"}], checks=[Check(**{"function": bool, **check})])
