"""The backend over real connections: where it asks, as whom, and a conversation that keeps its reasoning."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield import sync
from jackfield.agents import FnCallAgent
from jackfield.errors import ConfigError, MissingSecretError, UnsupportedInputError
from jackfield.messages import ContentItem, Message
from jackfield.tools import tool
from jackfield_openai.responses.backend import OpenAIResponses
from jackfield_testkit.forks import output_of
from jackfield_testkit.replies import chunks, error, text
from jackfield_testkit.responses import FakeResponses, ResponsesRequest

MakeModel = Callable[..., OpenAIResponses]
Told = Any  # of conftest.py, which tests cannot import
HELLO = [Message("user", "hello")]


def ask(model: OpenAIResponses) -> str:
    return sync.run(model.acomplete(HELLO)).get_content()


def native(server: FakeResponses, number: int = -1) -> dict[str, Any]:
    request = server.requests[number]
    assert isinstance(request, ResponsesRequest)
    assert isinstance(request.native, dict)
    return request.native


# --- where, and as whom ---


def test_the_endpoint_stands_behind_the_address(server: FakeResponses, make_model: MakeModel) -> None:
    server.default = text("hello")
    for address in (server.url, server.url + "/"):
        assert ask(make_model(base_url=address)) == "hello"
        request = server.requests[-1]
        assert isinstance(request, ResponsesRequest)
        assert request.native_path == "/v1/responses"


def test_who_asks_is_said_as_the_sdk_says_it_and_nothing_about_the_machine(
    server: FakeResponses, make_model: MakeModel, clean_environment: pytest.MonkeyPatch
) -> None:
    clean_environment.setenv("OPENAI_BASE_URL", server.url)
    clean_environment.setenv("OPENAI_API_KEY", "sk-environment")
    server.reply(text("hello"))
    extra = {"extra_headers": {"X-Mine": "1"}}
    ask(make_model(base_url=None, organization="org-1", project="proj-1", generate_cfg=extra))
    headers = server.requests[0].headers
    assert headers["authorization"] == "Bearer sk-environment"
    assert (headers["openai-organization"], headers["openai-project"], headers["x-mine"]) == ("org-1", "proj-1", "1")
    assert [name for name in headers if name.startswith("x-stainless")] == []


def test_a_server_of_ones_own_needs_no_key_and_openai_does(server: FakeResponses, make_model: MakeModel) -> None:
    server.reply(text("hello"))
    ask(make_model())
    assert server.requests[0].headers["authorization"] == "Bearer EMPTY"
    for address in (None, "https://api.openai.com/v1"):
        with pytest.raises(MissingSecretError, match="OPENAI_API_KEY"):
            ask(make_model(base_url=address))


def test_a_word_for_a_server_that_it_does_not_know_is_refused(make_model: MakeModel) -> None:
    with pytest.raises(ConfigError, match="model_server"):
        make_model(model_server="dashscope")
    assert make_model(model_server="openai").config.model_server == "openai"


def test_a_key_that_the_server_repeats_is_not_shown_and_its_variable_is_named(
    server: FakeResponses, make_model: MakeModel
) -> None:
    server.reply(error(401, "no such key: sk-do-not-show"))
    with pytest.raises(Exception, match=r"\[key\].*OPENAI_API_KEY") as caught:
        ask(make_model(api_key="sk-do-not-show"))
    assert "sk-do-not-show" not in str(caught.value)


# --- what it can do ---


def test_a_model_of_openai_has_its_price_and_one_of_another_server_none() -> None:
    config = {"model": "gpt-4.1-mini", "api_key": "k"}
    assert OpenAIResponses(config).facts.prices
    assert OpenAIResponses({**config, "model_server": "http://else.example/v1"}).facts.prices == ()


@pytest.mark.parametrize(
    ("address", "context_tokens"),
    [
        (None, 1_047_576),
        ("https://api.openai.com/v1", 1_047_576),
        ("https://API.OpenAI.com:443/v1", 1_047_576),
        ("https://api.openai.com.example/v1", None),
        ("http://127.0.0.1:8000/v1", None),
    ],
)
def test_the_models_of_openai_are_known_there_only(
    address: str | None, context_tokens: int | None, make_model: MakeModel
) -> None:
    facts = make_model(model="gpt-4.1", base_url=address).facts
    assert (facts.context_tokens, bool(facts.prices)) == (context_tokens, context_tokens is not None)


def test_facts_are_as_configured(make_model: MakeModel) -> None:
    facts = make_model(context_tokens=8000, images=False, tokenizer="t", reasoning=False).facts
    assert (facts.context_tokens, facts.images, facts.tokenizer, facts.reasoning) == (8000, False, "t", False)
    assert (facts.native_tools, facts.json_schema, facts.audio, facts.video) == (True, True, False, False)


def test_audio_is_refused_before_anything_is_sent(server: FakeResponses, make_model: MakeModel) -> None:
    question = [Message("user", [ContentItem(audio="data:audio/wav;base64,AAAA")])]
    with pytest.raises(UnsupportedInputError, match="does not support audio input"):
        sync.run(make_model().acomplete(question))
    with pytest.raises(ConfigError, match="unknown setting 'audio'"):
        make_model(audio=True)
    assert server.requests == []


def test_a_pdf_is_sent_where_the_model_takes_it(server: FakeResponses, make_model: MakeModel, tmp_path: Path) -> None:
    paper = tmp_path / "paper.pdf"
    paper.write_bytes(b"%PDF-1.7 hello")
    server.reply(text("read"))
    sync.run(make_model(files=True).acomplete([Message("user", [ContentItem(file=str(paper))])]))
    (part,) = native(server)["input"][0]["content"]
    assert (part["type"], part["filename"]) == ("input_file", "paper.pdf")


# --- a conversation ---


@tool
def get_time() -> str:
    """The time."""
    return "noon"


def test_an_agents_next_request_holds_its_reasoning_before_the_call_it_led_to(
    server: FakeResponses, make_model: MakeModel, told: Told
) -> None:
    first = [told.reasoning("what time is it"), told.call("get_time", call_id="call_a")]
    second = [told.reasoning("now I know", id="rs2"), told.message("It is noon.")]
    server.reply(chunks(told.all(first)), chunks(told.all(second)), chunks(told.all(second)))
    agent = FnCallAgent(llm=make_model(), function_list=[get_time])

    history = [*HELLO, *agent.run_nonstream(HELLO)]
    assert history[-1].content == "It is noon."
    output = {"type": "function_call_output", "call_id": "call_a", "output": "noon"}
    assert native(server, 1)["input"][1:] == [*first, output]

    kept = [Message.model_validate_json(message.model_dump_json()) for message in history]
    agent.run_nonstream([*kept, Message("user", "and now?")])
    assert native(server, 2)["input"][1:-1] == [*first, output, *second]


def test_another_server_is_not_sent_what_this_one_has_encrypted(
    server: FakeResponses, make_model: MakeModel, told: Told
) -> None:
    server.reply(chunks(told.all([told.reasoning("r"), told.message("hi")])))
    said = sync.run(make_model().acomplete(HELLO)).messages
    with FakeResponses(default=text("ok")) as other:
        sync.run(make_model(base_url=other.url).acomplete([*HELLO, *said, *HELLO]))
        assert [item.get("content") for item in native(other)["input"]] == ["hello", "hi", "hello"]
        assert b"gAAAA" not in other.requests[0].body


def test_one_model_serves_many_calls_at_once(server: FakeResponses, make_model: MakeModel) -> None:
    server.respond(lambda request: text(request.json["messages"][-1]["content"], chars=2).paced(0.001))
    model = make_model()

    async def many() -> list[str]:
        questions = [[Message("user", f"question {number}")] for number in range(12)]
        return [answer.get_content() for answer in await asyncio.gather(*map(model.acomplete, questions))]

    assert sync.run(many()) == [f"question {number}" for number in range(12)]


def test_making_a_model_loads_no_sdk_and_no_http() -> None:
    code = (
        "import sys; from jackfield_openai.responses.backend import OpenAIResponses; "
        "OpenAIResponses({'model': 'm', 'api_key': 'k'}); "
        "print([name for name in ('openai', 'httpx2', 'httpcore2') if name in sys.modules])"
    )
    assert output_of(code) == "[]"
