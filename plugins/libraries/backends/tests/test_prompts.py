"""A conversation becomes the prompt of an image."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import GenerateConfig
from jackfield.errors import ModelRequestError, UnsupportedInputError
from jackfield.messages import Message
from jackfield.request import ChatRequest
from jackfield_backends.prompts import image_prompt

SYSTEM, USER, MODEL = (Message(role, f"{role}.") for role in ("system", "user", "assistant"))


def prompt(*messages: Message, functions: tuple[Any, ...] = (), takes: tuple[str, ...] = (), **options: Any) -> str:
    request = ChatRequest("painter", messages, functions, GenerateConfig(**options))
    return image_prompt(request, takes=takes)


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([USER], "user."),
        ([Message("user", "first"), MODEL, USER], "user."),
        ([SYSTEM, Message("user", "first"), USER, MODEL], "system.\n\nuser."),
        ([Message("system", " "), USER], "user."),
        ([SYSTEM, USER, Message("system", "later")], "system.\n\nlater\n\nuser."),
        ([Message("user", [{"text": "a"}, {"image": "http://h/a.png"}, {"text": "b"}])], "a\nb"),
    ],
)
def test_the_prompt_is_the_last_message_of_the_user_after_that_of_the_system(
    messages: list[Message], expected: str
) -> None:
    assert prompt(*messages) == expected


@pytest.mark.parametrize(
    "messages", [[], [SYSTEM], [Message("user", "first"), Message("user", " \n")], [USER, Message("user", "")]]
)
def test_a_prompt_without_a_text_of_the_user_is_refused(messages: list[Message]) -> None:
    with pytest.raises(
        ModelRequestError, match=r"^painter generates images: the last user message must describe the image$"
    ):
        prompt(*messages)


def test_a_painter_calls_no_tools() -> None:
    with pytest.raises(
        UnsupportedInputError,
        match=r"^painter generates images and cannot call tools: remove the tools from the request",
    ):
        prompt(USER, functions=({"name": "f"},))
    with pytest.raises(UnsupportedInputError, match="cannot call tools"):
        prompt(USER, functions=({"name": "f"},), function_choice="none")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("temperature", 0.0),
        ("top_p", 0.5),
        ("top_k", 1),
        ("presence_penalty", 0.0),
        ("frequency_penalty", 0.1),
        ("repetition_penalty", 1.1),
        ("max_tokens", 5),
        ("seed", 0),
        ("response_format", {"type": "json_object"}),
        ("reasoning_effort", "low"),
    ],
)
def test_an_option_for_texts_is_refused_unless_the_model_takes_it(option: str, value: object) -> None:
    with pytest.raises(
        UnsupportedInputError, match=f"painter generates images and does not support {option}: remove that option"
    ):
        prompt(USER, **{option: value})
    assert prompt(USER, takes=("top_p", option), **{option: value}) == "user."


def test_other_options_do_not_matter() -> None:
    assert prompt(USER, stop=["x"], max_retries=3, lang="zh") == "user."
