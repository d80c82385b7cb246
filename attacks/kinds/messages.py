"""Malformed messages, everywhere that messages are accepted."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from typing import Any

from attacks.kind import Attempt, Kind
from attacks.speaking import model_of, server_of
from jackfield.agents import FnCallAgent
from jackfield.messages import ContentItem, FunctionCall, Message, as_messages
from jackfield_testkit import replies

KEYS = (
    "role",
    "content",
    "reasoning_content",
    "name",
    "function_call",
    "extra",
    "origin",
    "tool_calls",
    "tool_call_id",
)
PLACES = ("as_messages", "Message", "part", "call", "agent", "history", "model", "batch", "change")
BACKENDS = ("openai", "openai_responses", "qwen_dashscope")
TRIES = 50


def _value(dice: random.Random, depth: int = 0) -> Any:
    """Return a value that may occur in a message, or any other value."""
    simple: tuple[Any, ...] = (
        None,
        True,
        -1,
        1.5,
        b"x",
        "",
        "a",
        "\ud800",
        "\0",
        "user",
        "tool",
        object(),
        {1},
        range(2),
    )
    match dice.randrange(5 if depth < 3 else 1):
        case 0 | 1:
            return dice.choice(simple)
        case 2:
            return [_value(dice, depth + 1) for _ in range(dice.randrange(3))]
        case 3:
            names = dice.sample(("text", "image", "type", "name", "arguments", "function", "id", "x", 1), 2)
            return {name: _value(dice, depth + 1) for name in names}
    return _message(dice, depth + 1)


def _message(dice: random.Random, depth: int = 0) -> Any:
    message = {key: _value(dice, depth + 1) for key in dice.sample(KEYS, dice.randrange(1, 4))}
    if dice.random() < 0.7:
        message["role"] = dice.choice(("user", "assistant", "system", "function", "tool", "developer"))
    return message


def _take(place: str, value: Any, backend: str) -> object:
    model = model_of(backend)
    match place:
        case "as_messages":
            return as_messages(value)
        case "Message":
            return Message("user", value)
        case "part":
            return ContentItem(text=value)
        case "call":
            return FunctionCall(value, value)
        case "agent":
            return FnCallAgent([], model).ask(value)
        case "history":
            return FnCallAgent([], model).ask("x", history=value)
        case "batch":
            return model.batch([value])
        case "change":
            return setattr(Message("user", "x"), "content", value)
    return model.chat(value, stream=False)


def _all(place: str, backend: str, seed: float) -> None:
    from jackfield.errors import JackfieldError

    server = server_of(backend)
    server.clear()
    server.respond(lambda _: replies.text("fine"))
    dice = random.Random(seed)
    for _ in range(TRIES):
        value = _value(dice) if dice.random() < 0.3 else [_message(dice), *([_message(dice)] * dice.randrange(2))]
        try:
            _take(place, value, backend)
        except JackfieldError as error:
            str(error).encode()


def _attempts(dice: random.Random) -> Iterator[Attempt]:
    while True:
        for backend in BACKENDS:
            for place in PLACES:
                act = partial(_all, place, backend, dice.random())
                yield Attempt(f"{TRIES} messages for {place} ({backend})", act, counts=TRIES, timeout_s=60)


KIND = Kind("A malformed message is accepted, or rejected with a Jackfield error.", _attempts, 0.5, quick=27)
