"""What a model is asked, what comes out of its answer, and what nobody is told."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from jackfield.errors import ConfigError
from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    TextDelta,
)
from jackfield.messages import ContentItem, FunctionCall, Message, ModelResponse
from jackfield.models import Retry, fold
from jackfield.processors import CallFormat, CallFormatProcessor, CallNext, Phase, Processor, in_order
from jackfield.request import ChatRequest
from jackfield_redaction.answer import AnswerTransform
from jackfield_redaction.config import RedactionConfig
from jackfield_redaction.placeholders import Vault
from jackfield_redaction.processor import Redaction
from jackfield_redaction.scanner import Finder, Scanner

Ask = Callable[..., tuple[ChatRequest, list[ModelEvent]]]

BOB = "bob@example.com"
EVE = "eve@example.com"
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----"


def _answer(events: list[ModelEvent]) -> ModelResponse:
    return fold(events)


def _reply(text: str) -> list[ModelEvent]:
    return [*map(TextDelta, text), ModelFinished("stop")]


def _call(arguments: str, *, size: int = 3) -> list[ModelEvent]:
    pieces = [arguments[start : start + size] for start in range(0, len(arguments), size)]
    deltas = [FunctionCallDelta(0, arguments=piece) for piece in pieces]
    return [FunctionCallDelta(0, id="c1", name="send"), *deltas, ModelFinished("tool_calls")]


# --- the request ---


def test_every_text_of_every_message_is_rewritten(ask: Ask) -> None:
    messages = [
        Message("system", f"You work for {BOB}."),
        Message("user", [ContentItem(text=f"I am {EVE}"), ContentItem(file="notes.txt")]),
        Message("assistant", "", reasoning_content=f"Is {EVE} known?"),
        Message("assistant", "", function_call=FunctionCall("find", json.dumps({"who": EVE}))),
        Message("function", f"{EVE} is not {BOB}", name="find"),
    ]
    asked, _ = ask(Redaction(), messages, _reply("ok"))
    assert [message.model_dump() for message in asked.messages] == [
        {"role": "system", "content": "You work for [EMAIL_1]."},
        {"role": "user", "content": [{"text": "I am [EMAIL_2]"}, {"file": "notes.txt"}]},
        {"role": "assistant", "content": "", "reasoning_content": "Is [EMAIL_2] known?"},
        {"role": "assistant", "content": "", "function_call": {"name": "find", "arguments": '{"who": "[EMAIL_2]"}'}},
        {"role": "function", "content": "[EMAIL_2] is not [EMAIL_1]", "name": "find"},
    ]


def test_a_request_without_values_goes_on_as_the_same_object(ask: Ask) -> None:
    messages = [Message("user", "hello"), Message("assistant", "", function_call=FunctionCall("f", '{"a":"\\u00e9"}'))]
    for mode in ("placeholder", "remove"):
        asked, _ = ask(Redaction(mode=mode), messages, _reply("ok"))
        assert all(new is old for new, old in zip(asked.messages, messages, strict=True))


def test_a_history_that_grows_keeps_its_placeholders(ask: Ask) -> None:
    history = [Message("user", f"{BOB} and {EVE}"), Message("assistant", f"Hello {EVE}")]
    first, _ = ask(Redaction(), history[:1], _reply("ok"))
    second, _ = ask(Redaction(), [*history, Message("user", f"ada@example.com, {BOB}")], _reply("ok"))
    assert second.messages[:1] == first.messages
    assert [message.content for message in second.messages[1:]] == ["Hello [EMAIL_2]", "[EMAIL_3], [EMAIL_1]"]


def test_arguments_keep_their_numbers_order_and_layout(ask: Ask) -> None:
    arguments = (
        '{ "to":"bob@example.com",\n "n": 1.50, "big": 12345678901234567890, "to": null, "card": 4111111111111111 }'
    )
    call = Message("assistant", "", function_call=FunctionCall("send", arguments))
    asked, _ = ask(Redaction(), [call], _reply("ok"))
    sent = asked.messages[0].function_call
    assert sent is not None
    assert sent.arguments == (
        '{ "to":"[EMAIL_1]",\n "n": 1.50, "big": 12345678901234567890, "to": null, "card": "[CARD_1]" }'
    )


def test_a_value_behind_an_escape_is_found_in_arguments(ask: Ask) -> None:
    arguments = '{"text": "call\\n13812345678\\tor \\u0062ob@example.com"}'
    asked, _ = ask(Redaction(), [Message("assistant", "", function_call=FunctionCall("f", arguments))], _reply("ok"))
    assert asked.messages[0].function_call == FunctionCall("f", '{"text": "call\\n[PHONE_1]\\tor [EMAIL_1]"}')


# --- the answer ---


def test_placeholders_come_back_as_values_in_text_and_reasoning(ask: Ask) -> None:
    events = [*map(ReasoningDelta, "So [EMAIL_1]."), *_reply("Hello [EMAIL_1], not [EMAIL_2] or [EMAIL_1")]
    _, came = ask(Redaction(), [Message("user", BOB)], events)
    reasoning, text = _answer(came).messages
    assert reasoning.reasoning_content == f"So {BOB}."
    assert text.content == f"Hello {BOB}, not [EMAIL_2] or [EMAIL_1"


def test_text_that_waits_is_shown_before_what_follows_it(ask: Ask) -> None:
    events = [ReasoningDelta("why [EMAIL"), TextDelta("so [EM"), *_call("{}")]
    _, came = ask(Redaction(), [Message("user", BOB)], events)
    kinds = [type(event) for event in came if not isinstance(event, PluginEvent)]
    assert kinds == sorted(kinds, key=[ReasoningDelta, TextDelta, FunctionCallDelta, ModelFinished].index)


def test_values_come_back_into_arguments_escaped_as_json_behind_white_space(ask: Ask) -> None:
    messages = [Message("user", f"My key: {PEM}")]
    _, events = ask(Redaction(), messages, _call('\n {"key": "[PRIVATE_KEY_1]"}', size=1))
    (message,) = _answer(events).messages
    assert message.function_call is not None
    assert json.loads(message.function_call.arguments) == {"key": PEM}


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_values_come_back_into_arguments_escaped_as_json(ask: Ask, size: int) -> None:
    patterns = [{"name": "path", "regex": r'C:\\\w+"\w', "max_length": 20}]
    said = f'{PEM} and C:\\new"x'
    events = _call('{"key": "[PRIVATE_KEY_1]", "path": "<[PATH_1]>"}', size=size)
    _, came = ask(Redaction(patterns=patterns), [Message("user", said)], events)
    (call,) = _answer(came).get_function_calls()
    assert json.loads(call.arguments) == {"key": PEM, "path": '<C:\\new"x>'}


def test_values_come_back_unescaped_into_arguments_that_are_code(ask: Ask) -> None:
    _, came = ask(Redaction(), [Message("user", PEM)], _call('key = """[PRIVATE_KEY_1]"""'))
    (call,) = _answer(came).get_function_calls()
    assert call.arguments == f'key = """{PEM}"""'


@pytest.mark.parametrize("arguments", ["send({}, 4", '{{"to": "{} and', '{{"to": {}1', "\n ", "[{}, 12"])
def test_calls_that_end_in_the_middle_and_ids_that_come_alone_are_passed_on(ask: Ask, arguments: str) -> None:
    reply = [
        *(FunctionCallDelta(number, id=f"c{number}") for number in (0, 1)),
        *(FunctionCallDelta(number, name="run") for number in (0, 1)),
        *(FunctionCallDelta(number, arguments=arguments.format(number)) for number in (0, 1)),
        ModelFinished("tool_calls"),
    ]
    _, events = ask(Redaction(mode="remove"), [Message("user", "hello")], reply)
    assert fold(events).messages == fold(reply).messages


def test_arguments_of_calls_that_arrive_interleaved_are_kept_apart(ask: Ask) -> None:
    events = [
        FunctionCallDelta(0, "a", "send", '{"to": "[EMA'),
        FunctionCallDelta(1, "b", "send", '{"to": "[EMAIL_'),
        FunctionCallDelta(0, arguments='IL_1]"}'),
        FunctionCallDelta(1, arguments='2]"}'),
        ModelFinished("tool_calls"),
    ]
    _, came = ask(Redaction(), [Message("user", f"{BOB} {EVE}")], events)
    assert [call.get_parsed_arguments() for call in _answer(came).get_function_calls()] == [{"to": BOB}, {"to": EVE}]


@pytest.mark.parametrize("where", ["user", "tool schema", "arguments", "reasoning"])
def test_a_placeholder_that_a_text_already_contains_is_not_mixed_up(ask: Ask, where: str) -> None:
    messages = [Message("user", f"Write to {BOB}" + (" and keep [EMAIL_1]" if where == "user" else ""))]
    functions: list[dict[str, Any]] = []
    if where == "tool schema":
        functions.append({"name": "f", "description": "Takes [EMAIL_1]", "parameters": {"type": "object"}})
    if where == "arguments":
        messages.append(Message("assistant", "", function_call=FunctionCall("f", '{"x": "[EMAIL_1]"}')))
    if where == "reasoning":
        messages.append(Message("assistant", "", reasoning_content="[EMAIL_1]"))
    asked, came = ask(Redaction(), messages, _reply("[EMAIL_1] [EMAIL_2]"), functions=tuple(functions))
    assert str(asked.messages[0].content).startswith("Write to [EMAIL_2]")
    assert _answer(came).get_content() == f"[EMAIL_1] {BOB}"


def test_what_is_removed_never_comes_back_and_is_removed_from_answers_too(ask: Ask) -> None:
    events = [
        *map(ReasoningDelta, f"ask {EVE}"),
        *map(TextDelta, f"It is [EMAIL], or {EVE}."),
        *_call(f'{{"to": "{EVE}", "n": 4111111111111111}}'),
    ]
    asked, came = ask(Redaction(mode="remove"), [Message("user", f"I am {BOB}")], events)
    assert asked.messages[0].content == "I am [EMAIL]"
    answer = _answer(came)
    assert answer.messages[0].reasoning_content == "ask [EMAIL]"
    assert answer.get_content() == "It is [EMAIL], or [EMAIL]."
    assert answer.get_function_calls()[0].arguments == '{"to": "[EMAIL]", "n": "[CARD]"}'


# --- its place ---


class _Nothing(Processor):
    """A processor with a name and a phase."""

    def __init__(self, its_name: str, its_phase: Phase) -> None:
        self.name = its_name  # type: ignore[misc]
        self.phase = its_phase  # type: ignore[misc]

    def around(self, request: ChatRequest, call_next: CallNext) -> Any:
        return call_next(request)


class _Format(CallFormat):
    name = "any"

    def render(self, request: ChatRequest) -> ChatRequest:
        return request

    def reader(self, request: ChatRequest) -> Any:
        raise NotImplementedError


def test_all_that_adds_text_stands_outside_and_the_call_format_and_retries_inside() -> None:
    others = [_Nothing("zzz", "input"), _Nothing("retrieval", "context"), _Nothing("cache", "transport")]
    chain = in_order([Retry(), CallFormatProcessor(_Format()), Redaction(), *others])
    assert [one.name for one in chain] == ["zzz", "retrieval", "redaction", "call_format", "cache", "retry"]


# --- what is told ---


def test_an_event_tells_how_many_values_there_are_by_kind_and_nothing_else(ask: Ask) -> None:
    said = [Message("user", f"{BOB}, {BOB}, {EVE}, 13812345678")]
    _, came = ask(Redaction(), said, _reply("[EMAIL_1]"))
    assert [event for event in came if isinstance(event, PluginEvent)] == [
        PluginEvent("jackfield-redaction.request", {"email": 3, "phone": 1})
    ]
    _, came = ask(Redaction(mode="remove"), said, _reply(f"{EVE}"))
    assert [event for event in came if isinstance(event, PluginEvent)] == [
        PluginEvent("jackfield-redaction.request", {"email": 3, "phone": 1}),
        PluginEvent("jackfield-redaction.answer", {"email": 1}),
    ]
    _, came = ask(Redaction(), [Message("user", "hello")], _reply("hello"))
    assert not [event for event in came if isinstance(event, PluginEvent)]


def test_no_value_is_in_a_repr_a_log_or_an_error(ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    processor = Redaction(keep=[EVE], patterns=[{"name": "boss", "regex": "Ada L", "max_length": 9}])
    vault = Vault([])
    vault.placeholder("email", BOB)
    ask(processor, [Message("user", f"{BOB}, {EVE}, Ada L")], _reply("[EMAIL_1]"))
    shown = [repr(processor), repr(processor.config), str(processor.config), repr(vault), caplog.text]
    assert not [text for text in shown if BOB in text or EVE in text or "Ada L" in text]
    assert repr(processor) == "<Redaction mode=placeholder kinds=all patterns=['boss']>"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"mode": "hide"}, "mode"),
        ({"kinds": ["emial"]}, "kinds"),
        ({"patterns": [{"name": "x", "regex": "Ada(", "max_length": 9}]}, "patterns.0.regex"),
        ({"patterns": [{"name": "x", "regex": "(Ada)?", "max_length": 9}]}, "matches the empty string"),
        (
            {"patterns": [{"name": "x", "regex": "(?:(?:ab){300}c){300}", "max_length": 9}]},
            "contains too many repetitions",
        ),
        ({"patterns": [{"name": "x", "regex": "Ada"}]}, "max_length"),
        ({"patterns": [{"name": "x", "regex": "Ada", "max_length": 100_000}]}, "max_length"),
        ({"patterns": [{"name": "X Y", "regex": "Ada", "max_length": 9}]}, "patterns.0.name"),
        ({"patterns": [{"name": "email", "regex": "Ada", "max_length": 9}]}, "built-in kind"),
        ({"patterns": [{"name": "x", "regex": "Ada", "max_length": 9}] * 2}, "two patterns"),
        ({"patterns": [{"name": "x", "regexp": "Ada", "max_length": 9}]}, "regexp"),
    ],
)
def test_settings_that_do_not_fit_are_named_without_their_values(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        Redaction(**settings)
    assert "Ada" not in str(caught.value)


def test_settings_can_travel_to_another_process() -> None:
    config = RedactionConfig.parse({"kinds": ["email"], "keep": ["a@b.cn"], "mode": "remove"})
    assert pickle.loads(pickle.dumps(config)) == config


def test_pieces_of_a_call_that_wait_are_no_events_of_their_own() -> None:
    finder = Finder(RedactionConfig())

    def make() -> Scanner:
        return Scanner(finder, lambda kind, _: f"[{kind}]")

    transform = AnswerTransform(make, make, {})
    pieces = ["1381234", "5678", "", " and"]
    events = [FunctionCallDelta(0, id="c", name="send"), *(FunctionCallDelta(0, arguments=one) for one in pieces)]
    came = [out for event in [*events, ModelFinished("stop")] for out in transform.feed(event)]
    assert "".join(event.arguments for event in came if isinstance(event, FunctionCallDelta)) == "[phone] and"
    assert all(event.id or event.arguments for event in came if isinstance(event, FunctionCallDelta))


def test_texts_around_a_call_or_a_picture_are_texts_of_their_own() -> None:
    finder = Finder(RedactionConfig())

    def make() -> Scanner:
        return Scanner(finder, lambda kind, _: f"[{kind}]")

    counts: dict[str, int] = {}
    transform = AnswerTransform(make, make, counts)
    picture = MediaDelta(ContentItem(image="a.png"))
    events: list[ModelEvent] = [
        TextDelta("x"),
        FunctionCallDelta(0, id="c", name="send", arguments='{"a": 1}'),
        TextDelta("13812345678"),
        picture,
        TextDelta("13812345678"),
        TextDelta(" and x"),
        ReasoningDelta("13812345678"),
        ModelFinished("stop"),
    ]
    assert [out for event in events for out in transform.feed(event)] == [
        TextDelta("x"),
        FunctionCallDelta(0, id="c", name="send", arguments='{"a": 1}'),
        TextDelta("[phone]"),
        picture,
        TextDelta("[phone] and "),
        TextDelta("x"),
        ReasoningDelta("[phone]"),
        ModelFinished("stop"),
    ]
