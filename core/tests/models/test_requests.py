"""Requests of a model: what a call and its model put into one, its language and its media, and which are refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from jackfield.config import GenerateConfig
from jackfield.errors import ConfigError, MissingFileError
from jackfield.events import ModelEvent, ModelFinished
from jackfield.messages import ContentItem, Message
from jackfield.models import BaseChatModel
from jackfield.models._base import name_of_server
from jackfield.request import ChatRequest, ModelFacts, language_of, with_media_noted
from jackfield.testing import ScriptedModel, answer

LOOK = {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {}}}


def test_a_request_has_what_the_call_and_the_model_say() -> None:
    facts = ModelFacts(images=True)
    configured = {"model": "m", "model_server": "http://h:8000/v1", "generate_cfg": {"seed": 1, "top_p": 0.5}}
    model = ScriptedModel([], facts=facts, config=configured)
    request = model.make_request(
        "Hi", [LOOK, {"type": "function", "function": {**LOOK, "name": "other"}}], config={"seed": 2},
        metadata={"a": 1}, lang="zh", files="name",
    )  # fmt: skip
    assert (request.model, request.server, request.facts) == ("m", "scripted@h:8000", facts)
    assert request.messages == (Message("user", "Hi"),)
    assert [function["name"] for function in request.functions] == ["look", "other"]
    assert (request.config.seed, request.config.top_p) == (2, 0.5)
    assert (request.metadata, request.lang, request.files) == ({"a": 1}, "zh", "name")
    plain = model.make_request("你好")
    assert (plain.metadata, plain.lang, plain.files, plain.functions) == ({}, "zh", "read", ())
    assert model.make_request("你好", lang="en").lang == "en"
    assert model.make_request("你好", lang="en", config={"lang": "zh"}).lang == "zh"


@pytest.mark.parametrize(
    ("functions", "said"),
    [
        ([5], "functions must be a list of schemas, such as [tool.function], but contains int"),
        ([{"description": "x"}], "a function needs a 'name' next to 'description' and 'parameters'"),
        ([{"name": 5}], "a function needs a 'name' next to 'description' and 'parameters'"),
        ([{"type": "function", "function": 5}], "a function needs a 'name' next to 'description' and 'parameters'"),
    ],
    ids=str,
)
def test_a_function_that_is_none_is_refused(functions: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ScriptedModel([]).make_request("Hi", functions)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], "messages cannot be empty: pass at least one question"),
        (
            [Message("system", "a"), Message("user", "b"), Message("system", "c")],
            "there are two system messages: merge them into one at the start",
        ),
    ],
    ids=["none", "two system messages"],
)
def test_a_conversation_that_cannot_be_asked_is_refused(messages: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ScriptedModel([]).make_request(messages)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (None, "b"),
        ("", "b"),
        ("http://127.0.0.1:8000/v1", "b@127.0.0.1:8000"),
        ("https://user:key@h/v1?key=secret", "b@h"),
        ("https://a@b@h", "b@h"),
        ("no url", "b"),
    ],
)
def test_a_server_is_named_without_what_may_be_a_key(url: str | None, name: str) -> None:
    assert name_of_server("b", url) == name


def test_an_address_that_is_none_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        name_of_server("b", "http://[secret")
    assert str(caught.value) == "the server URL is not valid: use the form http://host:port/path"


def test_a_backend_that_states_nothing_takes_text_alone() -> None:
    class Plain(BaseChatModel):
        backend = "plain"

        async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
            yield ModelFinished("stop")

    model = Plain({"model": "m"})
    assert (model.facts, model.address, repr(model)) == (ModelFacts(native_tools=False), "plain:m", "<Plain plain:m>")
    assert model.call_format_name(GenerateConfig()) == "nous"
    assert model.call_format_name(GenerateConfig(use_raw_api=True)) == "native"
    assert model.call_format_name(GenerateConfig(fncall_prompt_type="qwen")) == "qwen"
    assert ScriptedModel([]).call_format_name(GenerateConfig()) == "native"
    raw = GenerateConfig(use_raw_api=True, fncall_prompt_type="qwen")
    assert ScriptedModel([]).call_format_name(raw) == "native"


def test_media_in_results_are_noted_and_in_questions_kept() -> None:
    item, text = ContentItem(image="https://h/i.png"), ContentItem(text="t")
    result, question = Message("function", [text, item], name="f"), Message("user", [item])
    noted = with_media_noted(result, ModelFacts())
    assert [one.text for one in noted.items] == ["t", "(image omitted: not supported by this model)"]
    assert with_media_noted(result, ModelFacts(images=True)) is result
    assert with_media_noted(question, ModelFacts()) is question
    plain = Message("function", "t", name="f")
    assert with_media_noted(plain, ModelFacts()) is plain


@pytest.mark.parametrize(
    ("messages", "lang"),
    [
        ([Message("user", "你好")], "zh"), ([Message("user", "héllo")], "en"), ([Message("assistant", "你好")], "en"),
        ([Message("system", "你好"), Message("user", "hi")], "zh"), ([], "en"), ([Message("user", "日")], "zh"),
    ],
)  # fmt: skip
def test_the_language_is_that_of_the_user_and_the_system(messages: list[Message], lang: str) -> None:
    assert language_of(messages) == lang


@pytest.mark.parametrize("role", ["assistant", "function"])
def test_a_request_names_no_file_that_a_model_or_a_result_named(role: str) -> None:
    foreign = Message(role, [ContentItem(image="/srv/a.png")], name="look")
    request = ScriptedModel([]).make_request([Message("user", "a"), foreign, Message("user", "b")])
    assert request.messages[1].get_text_content() == "[image: a.png]"


def test_files_are_handled_as_the_caller_says() -> None:
    asked = [Message("user", [ContentItem(text="q"), ContentItem(file="/srv/missing.txt")])]
    model = ScriptedModel([answer("a")])

    async def ask(files: Any) -> None:
        async for _ in model.astream(asked, files=files):
            pass

    asyncio.run(ask("name"))
    assert "missing.txt" in model.requests[0].messages[0].get_text_content()
    with pytest.raises(MissingFileError):
        asyncio.run(ask("read"))
