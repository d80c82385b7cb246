"""Whatever a caller passes as a message, a part of one, or a history: it is taken, or refused by an error of ours."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from jackfield import FnCallAgent
from jackfield.errors import InvalidMessageError, JackfieldError, ToolArgumentError
from jackfield.messages import (
    ContentItem,
    FunctionCall,
    Message,
    ModelResponse,
    Usage,
    as_message,
    as_messages,
    read_arguments,
    refuse_empty_question,
)
from jackfield.testing import ScriptedModel, answer


def _deep() -> Any:
    value: Any = "x"
    for _ in range(2000):
        value = [value]
    return value


def _circular() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


JUNK: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, float("nan"), b"x", bytearray(b"x"), "", "a", "\ud800", "\0", 10**5000),
    *([], [[]], [None], {}, {"a": 1}, {1: 2}, {None: None, "role": "user"}, object(), object, {1}, (1, 2), range(3)),
    *({"role": ["user"]}, {"text": "a", "image": "b"}, {"type": "image_url"}, {"type": "text"}, {"type": 1}),
    *({"type": "odd"}, {"type": "file", "file": {"file_id": "x"}}, [{"text": 1}], [{"text": "a", "x": 1}]),
    *({"name": "", "arguments": ""}, {"name": "f"}, {"name": 1, "arguments": {}}, [{"function": {}}]),
    *([{"function": {"name": "f", "arguments": 1.5}}], "user", "tool", ValueError("x"), iter(()), _deep(), _circular()),
)
KEYS = ("role", "content", "reasoning_content", "name", "function_call", "extra", "origin")
OPENAIS = ("tool_calls", "tool_call_id", "refusal", "reasoning", "x", 1)
ROLES = ("user", "assistant", "system", "function", "tool", "developer")


def _some_message(dice: random.Random) -> Any:
    message: dict[Any, Any] = {key: dice.choice(JUNK) for key in dice.sample(KEYS + OPENAIS, dice.randrange(1, 5))}
    if dice.random() < 0.7:
        message["role"] = dice.choice(ROLES)
    return message


def _something(dice: random.Random) -> Any:
    match dice.randrange(5):
        case 0:
            return dice.choice(JUNK)
        case 1:
            return [Message("user", "hi"), _some_message(dice)]
        case 2:
            return _some_message(dice)
    return [_some_message(dice) for _ in range(dice.randrange(1, 3))]


def _by_names(make: Callable[..., object], name: str) -> Callable[[Any], object]:
    """A value as the fields of a part, or as one field of it."""

    def call(value: Any) -> object:
        return make(**value) if isinstance(value, dict) and set(map(type, value)) == {str} else make(**{name: value})

    return call


def _entries() -> dict[str, Callable[[Any], object]]:
    """Each way in which a caller's messages come in."""
    model = ScriptedModel([answer("fine")] * 5000)
    agent = FnCallAgent([], model)
    return {
        "as_messages": as_messages,
        "as_message": as_message,
        "Message": _by_names(Message, "content"),
        "ContentItem": _by_names(ContentItem, "text"),
        "FunctionCall": _by_names(FunctionCall, "name"),
        "Usage": _by_names(Usage, "prompt_tokens"),
        "ModelResponse": _by_names(ModelResponse, "messages"),
        "read_arguments": lambda value: read_arguments("f", value),
        "role": lambda value: Message(value, "x"),
        "replace": lambda value: Message("user", "x").replace(content=value),
        "assign": lambda value: setattr(Message("user", "x"), "function_call", value),
        "assign a key": lambda value: Message("user", "x").__setitem__("content", value),
        "agent.ask": agent.ask,
        "agent.ask, history": lambda value: agent.ask("x", history=value),
        "agent.run": lambda value: list(agent.run(value)),
        "agent.run_nonstream": agent.run_nonstream,
        "agent.stream": lambda value: list(agent.stream(value)),
        "agent.aask": lambda value: asyncio.run(_wait(agent.aask, value)),
        "model.chat": lambda value: model.chat(value, stream=False),
        "model.chat, streamed": lambda value: list(model.chat(value, stream=True)),
        "model.ask": model.ask,
        "model.ask, history": lambda value: model.ask("x", history=value),
        "model.acomplete": lambda value: asyncio.run(_wait(model.acomplete, value)),
        "model.batch": lambda value: model.batch([value]),
    }


async def _wait(call: Callable[[Any], Any], value: Any) -> None:
    await call(value)


ENTRIES = _entries()


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.filterwarnings("error")
def test_anything_is_taken_or_refused_by_an_error_of_ours(name: str) -> None:
    dice = random.Random(name)
    refusals: list[str] = []
    for value in (*JUNK, *(_something(dice) for _ in range(25 if "agent" in name or "model" in name else 150))):
        try:
            ENTRIES[name](value)
        except JackfieldError as error:
            refusals.append(str(error))
    assert len(refusals) > 10 or "batch" in name  # which returns its errors
    assert all(0 < len(text.encode()) < 2000 for text in refusals)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Message("robot", "x"), "'role' of a Message is not valid: 'robot' is not a valid role: use one of"),
        (lambda: Message("user", 5), "'content' of a Message is not valid"),
        (lambda: Message("user", [{"text": "a"}, {"text": "a", "image": "b"}]), "'content.1' of a Message"),
        (lambda: Message("user", "x", nam="y"), "'nam' of a Message is not valid: .*its fields are role, content"),
        (ContentItem, "must set one of text, image, file, audio, video"),
        (lambda: ContentItem(text=1), "'text' of a ContentItem is not valid"),
        (lambda: FunctionCall("f"), "'arguments' of a FunctionCall is not valid: Field required"),
        (
            lambda: as_messages([{"role": "user", "content": "a"}, {"role": "user", "contents": "b"}]),
            "message 2 of 2: ",
        ),
        (lambda: as_messages(5), "got int"),
        (lambda: as_messages([{"role": "assistant", "tool_calls": 5}]), "'tool_calls' must be a list, got int"),
        (
            lambda: as_messages([{"role": "tool", "tool_call_id": {}, "content": [1.5], "name": 2.5}]),
            "'name' must be a string",
        ),
    ],
)
def test_an_error_names_the_field_and_what_to_write(make: Callable[[], object], text: str) -> None:
    with pytest.raises(InvalidMessageError, match=text):
        make()


def test_a_value_is_not_repeated_in_the_error_because_it_may_be_secret() -> None:
    with pytest.raises(InvalidMessageError) as caught:
        Message("user", {"password": "hunter2" * 1000})  # type: ignore[arg-type]
    assert "hunter2" not in str(caught.value)


def test_a_refused_change_leaves_a_message_as_it_was() -> None:
    message = Message("user", "x")
    for name, value in (("role", "function"), ("content", {1: 2}), ("nothing", 1)):
        with pytest.raises(InvalidMessageError):
            setattr(message, name, value)
    assert message == Message("user", "x")


# --- errors to the letter ---


FIELDS = "role, content, reasoning_content, name, function_call, extra, origin"
REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a role": (
        lambda: Message("robot", "x"),
        "'role' of a Message is not valid: 'robot' is not a valid role: use one of system, user, assistant, function",
    ),
    "the role of OpenAI": (
        lambda: Message("tool", "x"),
        "'role' of a Message is not valid: 'tool' is not a valid role: use one of system, user, assistant, function; "
        "for tool results, use 'function'",
    ),
    "a role that is no text": (
        lambda: Message(5, "x"),  # type: ignore[arg-type]
        "'role' of a Message is not valid: a value of type int is not a valid role: use one of system, user, "
        "assistant, function",
    ),
    "a key": (
        lambda: Message("user", "x", nam="y"),
        f"'nam' of a Message is not valid: Extra inputs are not permitted (its fields are {FIELDS})",
    ),
    "a result without a name": (
        lambda: Message("function", "x"),
        "a Message is not valid: a function message needs `name`, the name of the tool that returned the result",
    ),
    "a content": (
        lambda: Message("user", 5),  # type: ignore[arg-type]
        "'content' of a Message is not valid: Input should be a valid string or Input should be a valid list",
    ),
    "an item": (
        lambda: ContentItem(text=1),
        "'text' of a ContentItem is not valid: Input should be a valid string",
    ),
    "a call": (lambda: FunctionCall("f"), "'arguments' of a FunctionCall is not valid: Field required"),
    "a key that is no text": (
        lambda: Message("user", "x", extra={"a": 1}, b=2).replace(c=3),
        f"'b' of a Message is not valid: Extra inputs are not permitted (its fields are {FIELDS})",
    ),
    "a dict with another key": (
        lambda: as_message({"role": "user", "content": "x", "nam": 1}),
        "a message has no key 'nam'; did you mean 'name'? Put custom data in 'extra'",
    ),
    "a dict with a key that is no text": (
        lambda: as_message({"role": "user", 5: 1}),  # type: ignore[dict-item]
        f"a message has no key of type int; known: {', '.join(sorted(FIELDS.split(', ')))}. Put custom data in 'extra'",
    ),
    "a dict without a role": (
        lambda: as_message({"content": "x"}),
        "a message needs 'role', one of system, user, assistant, function",
    ),
    "a question without content": (
        lambda: as_message({"role": "user"}),
        "a user message needs 'content', a string or a list of items",
    ),
    "a system message without content": (
        lambda: as_message({"role": "system"}),
        "a system message needs 'content', a string or a list of items",
    ),
    "no message": (
        lambda: as_message(5),  # type: ignore[arg-type]
        "a message must be a Message or a dict with 'role' and 'content', got int",
    ),
    "no messages": (
        lambda: as_messages(5),  # type: ignore[arg-type]
        "messages must be a string, a message or a list of messages, got int",
    ),
    "bytes": (
        lambda: as_messages(b"x"),  # type: ignore[arg-type]
        "messages must be a string, a message or a list of messages, got bytes",
    ),
    "one of two": (
        lambda: as_messages([{"role": "user", "content": "x"}, {"role": "user"}]),
        "message 2 of 2: a user message needs 'content', a string or a list of items",
    ),
    "one of one": (
        lambda: as_messages([{"role": "user"}]),
        "a user message needs 'content', a string or a list of items",
    ),
    "no text": (
        lambda: as_messages(""),
        "the question is empty: pass some text, or pass [] to continue a history",
    ),
    "an empty text": (
        lambda: as_messages(" \n"),
        "the question is empty: pass some text, or pass [] to continue a history",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_message_that_is_none_is_told_what_to_write(case: str) -> None:
    make, text = REFUSED[case]
    with pytest.raises(InvalidMessageError) as caught:
        make()
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("role", "robot", "'role' of a Message is not valid"),
        ("nothing", 1, "'nothing' of a"),
        ("role", "function", ""),
    ],
)
def test_a_refused_assignment_says_which_field_cannot_be_set(name: str, value: Any, said: str) -> None:
    message = Message("user", "x", extra={"a": 1})
    with pytest.raises(InvalidMessageError) as caught:
        setattr(message, name, value)
    assert said in str(caught.value)
    assert message.model_dump() == {"role": "user", "content": "x", "extra": {"a": 1}}


def test_arguments_that_are_no_json_have_a_cause_and_others_have_none() -> None:
    assert read_arguments("f", " ") == read_arguments("f", {}) == {}
    with pytest.raises(ToolArgumentError, match="the arguments to 'f' must be a single JSON object: ") as caught:
        read_arguments("f", "hello")
    assert caught.value.__cause__ is not None
    with pytest.raises(ToolArgumentError, match="the arguments to 'f' must be a JSON object, got list") as caught:
        read_arguments("f", "[1]")
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("content", "is_empty"),
    [("", True), (" \n", True), ([], True), ("a", False), ([ContentItem(image="https://h/a.png")], False)],
)
def test_only_a_question_of_the_user_can_be_empty(content: Any, is_empty: bool) -> None:
    refuse_empty_question([])
    refuse_empty_question([Message("assistant", content)])
    refuse_empty_question([Message("user", content), Message("assistant", "a")])
    if is_empty:
        with pytest.raises(InvalidMessageError, match="the question is empty"):
            refuse_empty_question([Message("user", "a"), Message("user", content)])
    else:
        refuse_empty_question([Message("user", content)])
