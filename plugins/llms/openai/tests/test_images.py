"""A model that makes images, asked as OpenAI documents it, on loopback."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from typing import Any

import pytest

from jackfield import sync
from jackfield.errors import (
    ContentFilterError,
    MissingSecretError,
    ModelAuthError,
    ModelRequestError,
    ModelResponseError,
    ModelServiceError,
    RateLimitedError,
    UnsupportedInputError,
)
from jackfield.events import MediaDelta
from jackfield.messages import ModelResponse
from jackfield.plugins import PluginHost
from jackfield.settings import Settings
from jackfield.streams import closing
from jackfield_openai.images import OpenAIImages
from jackfield_testkit.web import WebAnswer, WebServer

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"pixels" * 100).decode()
ANSWER = WebAnswer.json(
    {
        "created": 1_760_000_000,
        "data": [{"b64_json": PNG}],
        "output_format": "png",
        "usage": {"input_tokens": 12, "output_tokens": 4000, "total_tokens": 4012},
    }
)


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)
    with WebServer() as server:
        server.put("/v1/images/generations", ANSWER)
        yield server


def ask(web: WebServer, question: Any = "A lighthouse.", *, options: Any = None, **config: Any) -> ModelResponse:
    settings = {"model": "gpt-image", "base_url": f"{web.url}/v1", "api_key": "sk-image-1234", **config}
    model = OpenAIImages(settings | {"generate_cfg": {"max_retries": 0}}, host=PluginHost(Settings()))

    async def once() -> ModelResponse:
        try:
            return await model.acomplete(question, config=options)
        finally:
            await model.aclose()

    return sync.run(once())


def test_an_image_inside_the_answer_is_its_content(web: WebServer) -> None:
    answer = ask(web, size="1024x1536", quality="low", options={"extra_body": {"background": "transparent"}})
    (message,) = answer.messages
    assert message.items[0].image == f"data:image/png;base64,{PNG}"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (12, 4000, 4012)
    assert (answer.model, answer.created, answer.finish_reason) == ("gpt-image", 1_760_000_000, "stop")
    (request,) = web.requests
    assert request.headers["authorization"] == "Bearer sk-image-1234"
    assert request.json == {
        "model": "gpt-image",
        "prompt": "A lighthouse.",
        "n": 1,
        "size": "1024x1536",
        "quality": "low",
        "background": "transparent",
    }


def test_a_parameter_of_the_server_wins_over_a_setting(web: WebServer) -> None:
    ask(web, size="1024x1536", count=2, options={"extra_body": {"n": 1, "size": "auto"}})
    assert web.requests[0].json == {"model": "gpt-image", "prompt": "A lighthouse.", "n": 1, "size": "auto"}


def test_images_at_urls_are_given_by_their_urls(web: WebServer) -> None:
    data = [{"url": "https://cdn.example/1.png?sig=x", "revised_prompt": "A"}, {"url": "https://cdn.example/2.png"}]
    web.put("/v1/images/generations", WebAnswer.json({"created": 1, "data": data}))
    (message,) = ask(web, count=2).messages
    assert [item.image for item in message.items] == [image["url"] for image in data]
    assert web.requests[0].json["n"] == 2


def test_the_prompt_is_what_the_user_said_last_behind_the_system_message(web: WebServer) -> None:
    ask(
        web,
        [
            {"role": "system", "content": "In water colours."},
            {"role": "user", "content": "A cat."},
            {"role": "assistant", "content": "Here."},
            {"role": "user", "content": [{"text": "Now a dog."}]},
        ],
    )
    assert web.requests[0].json["prompt"] == "In water colours.\n\nNow a dog."


@pytest.mark.parametrize(
    "option", [{"temperature": 0.5}, {"max_tokens": 5}, {"response_format": {"type": "text"}}, {"seed": 1}]
)
def test_an_option_of_texts_is_refused_before_anybody_is_asked(web: WebServer, option: dict[str, Any]) -> None:
    with pytest.raises(
        UnsupportedInputError, match=f"gpt-image generates images and does not support {next(iter(option))}"
    ):
        ask(web, options=option)
    assert web.requests == []


def test_tools_are_refused_before_anybody_is_asked(web: WebServer) -> None:
    model = OpenAIImages({"model": "gpt-image", "base_url": f"{web.url}/v1", "api_key": "sk-image-1234"})
    tool: Any = {"name": "f", "description": "", "parameters": {"type": "object", "properties": {}, "required": []}}
    with pytest.raises(UnsupportedInputError, match="generates images and cannot call tools"):
        sync.run(model.acomplete("A cat.", [tool]))
    assert web.requests == []


def test_calls_at_the_same_time_are_all_answered_also_after_one_that_was_left(web: WebServer) -> None:
    model = OpenAIImages({"model": "gpt-image", "base_url": f"{web.url}/v1", "api_key": "sk-image-1234"})

    async def several() -> list[ModelResponse]:
        async with closing(model.astream("A cat.")) as left:
            assert isinstance(await anext(left), MediaDelta)
        try:
            return await asyncio.gather(*(model.acomplete("A cat.") for _ in range(4)))
        finally:
            await model.aclose()

    assert [answer.messages[0].items[0].type for answer in sync.run(several())] == ["image"] * 4


@pytest.mark.parametrize(
    "question",
    [
        [{"role": "user", "content": " "}],
        [{"role": "assistant", "content": "x"}],
        [{"role": "system", "content": "x"}],
    ],
)
def test_a_prompt_is_needed(web: WebServer, question: Any) -> None:
    with pytest.raises(ModelRequestError, match="must describe the image"):
        ask(web, question)


@pytest.mark.parametrize(
    "data",
    [
        [],
        None,
        [{}],
        [{"b64_json": "!!"}],
        [{"b64_json": "aGVsbG8gd29ybGQh"}],
        [{"url": "file:///etc/passwd"}],
        [7],
        "x",
    ],
)
def test_an_answer_without_an_image_is_an_error(web: WebServer, data: object) -> None:
    for usage in ({}, {"usage": {"input_tokens": 12, "output_tokens": 0, "total_tokens": 12}}):
        web.put("/v1/images/generations", WebAnswer.json({"created": 1, "data": data, **usage}))
        with pytest.raises(ModelResponseError, match=r"no image|not part of a response"):
            ask(web)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (WebAnswer.json({"error": {"message": "no", "code": "invalid_api_key"}}, status=401), ModelAuthError),
        (WebAnswer.json({"error": {"message": "slow"}}, status=429, headers={"retry-after": "9"}), RateLimitedError),
        (
            WebAnswer.json({"error": {"message": "unsafe", "code": "content_policy_violation"}}, status=400),
            ContentFilterError,
        ),
        (WebAnswer(b"<html>", {"content-type": "text/html"}), ModelResponseError),
        (WebAnswer(b'{"data": [', {"content-type": "application/json"}), ModelResponseError),
    ],
)
def test_a_refusal_is_the_error_that_says_what_to_do(
    web: WebServer, answer: WebAnswer, error: type[ModelServiceError]
) -> None:
    web.put("/v1/images/generations", answer)
    with pytest.raises(error):
        ask(web)


def test_openai_itself_needs_a_key(web: WebServer) -> None:
    with pytest.raises(MissingSecretError, match="OPENAI_API_KEY"):
        ask(web, base_url=None, api_key=None)


@pytest.mark.parametrize(
    "image",
    [
        {"url": "file:///etc/passwd"},
        {"url": "ftp://h/a.png"},
        {"url": None},
        {},
        {"b64_json": "!" + PNG},
        {"b64_json": base64.b64encode(b"<html><script>" * 9).decode()},
        {"b64_json": base64.b64encode(b"%PDF-1.7" * 9).decode()},
    ],
    ids=["file", "ftp", "none", "empty", "not base64", "HTML", "PDF"],
)
def test_what_is_no_image_is_an_error_that_says_so(web: WebServer, image: dict[str, Any]) -> None:
    web.put("/v1/images/generations", WebAnswer.json({"data": [{"b64_json": PNG}, image]}))
    with pytest.raises(ModelResponseError, match="not part of a response"):
        ask(web)


def test_an_image_at_an_address_without_encryption_is_given_and_content_wins_over_an_address(web: WebServer) -> None:
    both = {"url": "https://cdn.example/1.png", "b64_json": PNG}
    web.put("/v1/images/generations", WebAnswer.json({"data": [{"url": "http://cdn.example/1.png"}, both]}))
    answer = ask(web)
    assert [item.image for item in answer.messages[0].items] == [
        "http://cdn.example/1.png",
        f"data:image/png;base64,{PNG}",
    ]
    assert (answer.created, answer.usage.total_tokens) == (None, 0)
