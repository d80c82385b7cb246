"""Chat Completions, as OpenAI's client and curl read them."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import TypeAdapter

from jackfield import FnCallAgent, ToolContext, create_agent, tool
from jackfield.errors import ContextLengthError, ModelAuthError, RateLimitedError
from jackfield.events import ModelEvent, ModelFinished, StreamReset, TextDelta
from jackfield.request import ChatRequest, ModelFacts
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import ToolResult
from jackfield_serve import serving_app
from jackfield_testkit.faces import HttpRequest, ServedFace

COMPLETION: TypeAdapter[Any] = TypeAdapter(ChatCompletion)
CHUNK: TypeAdapter[Any] = TypeAdapter(ChatCompletionChunk)
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER: Any = {"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}
PIXEL = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
HTTP = httpx.Client(timeout=60)


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay somebody."""
    return f"paid {amount}"


@tool
def look_up(context: ToolContext) -> ToolResult:
    """Look something up."""
    return ToolResult("It is in the book.", metadata={"sources": ["https://example.org/book"]})


class Patient(ScriptedModel):
    """Sends a word and then waits until it is cancelled."""

    asked, cancelled = threading.Event(), threading.Event()

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        self.asked.set()
        yield TextDelta("one moment")
        try:
            await asyncio.sleep(60)
        finally:
            self.cancelled.set()


def script(request: ChatRequest) -> Sequence[ModelEvent | Exception]:
    last = request.messages[-1]
    text = last.get_text_content()
    if last.role == "function":
        return answer(f"It says: {text}")
    match text.split()[0]:
        case "weather":
            return calls(("weather", {"city": "Bonn"}), ("weather", {"city": "Köln"}), text="I look.")
        case "pay":
            return calls(("pay", {"amount": 3}))
        case "book":
            return calls(("look_up", {}), text="I look it up.")
        case "cut":
            return [TextDelta("half an ans"), ModelFinished("length")]
        case "again":
            return [TextDelta("The answ"), StreamReset("broken"), *answer("The answer.")]
        case "other":
            return [TextDelta("The answ"), StreamReset("broken"), *answer("Another.")]
    return answer(f"You said: {text}", reasoning="Let me think.")


def fails(error: Exception) -> FnCallAgent:
    return FnCallAgent(llm=ScriptedModel(lambda request: [error]))


def looks(request: ChatRequest) -> Sequence[ModelEvent]:
    return answer(" ".join(f"{item.type}:{item.value[:16]}" for item in request.messages[-1].items))


def reads(request: ChatRequest) -> Sequence[ModelEvent]:
    return answer("It has “48 sockets” [1]." if request.messages[-1].content != "wrong" else "64 [7].")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedFace]:
    guide = tmp_path_factory.mktemp("guides") / "guide.md"
    guide.write_text("# Panels\n\nA panel has 48 sockets.\n")
    facts = ModelFacts(images=True, audio=True, files=True)
    agents = {
        "helper": FnCallAgent([pay, look_up], llm=ScriptedModel(script), name="helper"),
        "limited": FnCallAgent([look_up], llm=ScriptedModel(script), limits={"turns": 1}),
        "eyes": FnCallAgent(llm=ScriptedModel(looks, facts=facts)),
        "reader": create_agent("assistant", llm=ScriptedModel(reads), files=[guide]),
        "patient": FnCallAgent(llm=Patient([])),
        "key": fails(ModelAuthError("the key sk-secret is not valid")),
        "long": fails(ContextLengthError("the context has room for 10 tokens")),
        "busy": fails(RateLimitedError("too many requests")),
    }
    with ServedFace(serving_app(agents, faces=["openai"])) as face:
        yield face


@pytest.fixture
def client(served: ServedFace) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0, timeout=60) as made:
        yield made


def ask(served: ServedFace, text: str, model: str = "helper", **more: Any) -> httpx.Response:
    body = {"model": model, "messages": [{"role": "user", "content": text}], **more}
    return HTTP.post(f"{served.url}/v1/chat/completions", json=body)


def chunks_of(reply: httpx.Response) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in reply.text.splitlines() if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


@pytest.mark.parametrize("text", ["Hi", "weather", "book", "cut", "again"])
def test_the_stream_adds_up_to_the_whole_answer(served: ServedFace, text: str) -> None:
    whole = ask(served, text, tools=[WEATHER]).json()
    COMPLETION.validate_python(whole, strict=True)
    chunks = chunks_of(ask(served, text, tools=[WEATHER], stream=True, stream_options={"include_usage": True}))
    for chunk in chunks:
        CHUNK.validate_python(chunk, strict=True)
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    message = whole["choices"][0]["message"]
    assert "".join(delta.get("content") or "" for delta in deltas) == (message["content"] or "")
    assert "".join(delta.get("reasoning_content") or "" for delta in deltas) == message.get("reasoning_content", "")
    streamed = [call["function"] for delta in deltas for call in delta.get("tool_calls", ())]
    assert streamed == [call["function"] for call in message.get("tool_calls", ())]
    assert [one for delta in deltas for one in delta.get("annotations", ())] == message.get("annotations", [])
    assert chunks[-2]["choices"][0]["finish_reason"] == whole["choices"][0]["finish_reason"]
    assert (chunks[-1]["choices"], chunks[-1]["usage"]) == ([], whole["usage"])
    assert all(chunk["usage"] is None for chunk in chunks[:-1])


def test_an_answer_and_all_of_its_chunks_show_when_it_was_made(served: ServedFace) -> None:
    before = int(time.time())
    chunks = chunks_of(ask(served, "Hi", stream=True))
    times = [ask(served, "Hi").json()["created"], *{chunk["created"] for chunk in chunks}]
    assert len(times) == 2
    assert {*times} <= {*range(before, int(time.time()) + 1)}


def test_a_run_that_stops_at_its_limit_is_cut_off(served: ServedFace) -> None:
    reply = ask(served, "book", model="limited").json()
    assert reply["choices"][0]["finish_reason"] == "length"
    chunks = chunks_of(ask(served, "book", model="limited", stream=True))
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"


def test_texts_of_several_turns_are_joined_and_sources_cited(served: ServedFace) -> None:
    message = ask(served, "book").json()["choices"][0]["message"]
    assert message["content"] == "I look it up.\n\nIt says: It is in the book."
    (annotation,) = message["annotations"]
    assert annotation["url_citation"]["start_index"] == len(message["content"])
    assert annotation["url_citation"]["url"] == "https://example.org/book"


@pytest.mark.parametrize("way", ["chat", "stream", "responses"])
def test_a_citation_is_an_annotation_of_its_mark(served: ServedFace, way: str) -> None:
    if way == "responses":
        body = {"model": "reader", "input": "How many sockets?"}
        (part,) = HTTP.post(f"{served.url}/v1/responses", json=body).json()["output"][-1]["content"]
        text, annotations = part["text"], part["annotations"]
    elif way == "stream":
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks_of(ask(served, "sockets", "reader", stream=True))]
        text = "".join(delta.get("content") or "" for delta in deltas)
        annotations = [one["url_citation"] for delta in deltas for one in delta.get("annotations", [])]
    else:
        message = ask(served, "sockets", model="reader").json()["choices"][0]["message"]
        text, annotations = message["content"], [one["url_citation"] for one in message["annotations"]]
    (annotation,) = annotations
    assert text[annotation["start_index"] : annotation["end_index"]] == "[1]"
    assert (annotation["title"], annotation["url"]) == ("[1] guide.md, Panels: “48 sockets”", "file:guide.md")


def test_without_citations_the_sources_are_annotations(served: ServedFace) -> None:
    message = ask(served, "wrong", model="reader").json()["choices"][0]["message"]
    (annotation,) = message["annotations"]
    assert annotation["url_citation"]["title"] == "guide.md"


def test_an_answer_that_is_cut_off_says_so(served: ServedFace) -> None:
    assert ask(served, "cut").json()["choices"][0]["finish_reason"] == "length"


def test_an_answer_that_begins_again_in_other_words_is_an_error(served: ServedFace) -> None:
    assert ask(served, "other").status_code == 502
    lines = ask(served, "other", stream=True).text.splitlines()
    assert json.loads(lines[-2].removeprefix("data: "))["error"]["code"] == "answer_broke_off"


def test_a_result_continues_the_run_that_waits_for_it(client: openai.OpenAI) -> None:
    messages: list[Any] = [{"role": "user", "content": "weather"}]
    first = client.chat.completions.create(model="helper", messages=messages, tools=[WEATHER])
    message = first.choices[0].message
    assert first.choices[0].finish_reason == "tool_calls"
    assert message.tool_calls is not None
    messages.append(message.model_dump())
    messages += [
        {"role": "tool", "tool_call_id": call.id, "content": "rain", "name": "weather"} for call in message.tool_calls
    ]
    second = client.chat.completions.create(model="helper", messages=messages, tools=[WEATHER])
    assert second.id == first.id  # the same run
    assert second.choices[0].message.content == "It says: rain"
    assert second.usage is not None
    assert second.usage.total_tokens == 2
    third = client.chat.completions.create(model="helper", messages=messages, tools=[WEATHER])
    assert third.id != first.id  # it was answered before: the conversation stands on its own
    assert third.choices[0].message.content == "It says: rain"


def test_a_call_that_needs_approval_is_an_error(served: ServedFace) -> None:
    reply = ask(served, "pay")
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "approval_needed")


@pytest.mark.parametrize(
    ("model", "status", "code"),
    [("key", 500, "server_error"), ("long", 400, "context_length_exceeded"), ("busy", 429, "rate_limit_exceeded")],
)
def test_a_run_that_fails_is_an_error_without_secrets(served: ServedFace, model: str, status: int, code: str) -> None:
    reply = ask(served, "Hi", model)
    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)
    assert (reply.headers.get("retry-after") is not None) == (status == 429)
    streamed = ask(served, "Hi", model, stream=True)
    assert streamed.status_code == 200
    assert f'"code":"{code}"' in streamed.text
    assert "sk-secret" not in reply.text + streamed.text


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_ends_its_run_and_the_request_to_the_model(served: ServedFace, stream: bool) -> None:
    Patient.asked.clear()
    Patient.cancelled.clear()
    body = {"model": "patient", "messages": [{"role": "user", "content": "Hi"}], "stream": stream}
    if stream:
        with HTTP.stream("POST", f"{served.url}/v1/chat/completions", json=body) as reply:
            next(reply.iter_bytes())
    else:
        with served.connect() as connection:
            connection.sendall(HttpRequest(path="/v1/chat/completions", body=json.dumps(body).encode()).encode())
            assert Patient.asked.wait(30)
    assert Patient.cancelled.wait(30)


def test_images_audio_and_files_reach_the_model(served: ServedFace) -> None:
    audio = base64.b64encode(b"RIFF").decode()
    content = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": PIXEL}},
        {"type": "input_audio", "input_audio": {"data": audio, "format": "wav"}},
    ]
    body = {"model": "eyes", "messages": [{"role": "user", "content": content}]}
    reply = HTTP.post(f"{served.url}/v1/chat/completions", json=body).json()
    assert reply["choices"][0]["message"]["content"] == "text:look image:data:image/png;b audio:data:audio/wav;b"


def image(url: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]


REFUSED = [
    ({"n": 2}, "n"),
    ({"logprobs": True}, "logprobs"),
    ({"logit_bias": {"1": 1}}, "logit_bias"),
    ({"store": True}, "store"),
    ({"functions": []}, "functions"),
    ({"audio": {}}, "audio"),
    ({"modalities": ["audio"]}, "modalities"),
    ({"web_search_options": {}}, "web_search_options"),
    ({"frobnicate": 1}, "frobnicate"),
    ({"temperature": "hot"}, "temperature"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"stream_options": {"include_usage": True}}, "stream_options"),
    ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools.0.type"),
    ({"tools": [{"type": "function", "function": {"name": "look_up"}}]}, None),  # the agent's own tool has this name
    ({"tool_choice": "required"}, "tool_choice"),
    ({"response_format": {"type": "json_schema"}}, "response_format"),
    ({"messages": []}, "messages"),
    ({"messages": [{"role": "tool", "tool_call_id": "x", "content": "y"}]}, "messages.0.tool_call_id"),
    ({"messages": image("/etc/passwd")}, "messages.0.content.0.image_url"),
    ({"messages": image("file:///etc/passwd")}, "messages.0.content.0.image_url"),
    ({"messages": image("http://[")}, "messages.0.content.0.image_url"),
    ({"messages": [{"role": "user", "content": [{"type": "image", "image": "/etc/passwd"}]}]}, None),
    ({"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]}, None),
]


@pytest.mark.parametrize(("change", "param"), REFUSED, ids=lambda value: str(value)[:60])
def test_what_is_not_supported_is_refused_by_its_name(
    served: ServedFace, change: dict[str, Any], param: str | None
) -> None:
    body = {"model": "helper", "messages": [{"role": "user", "content": "Hi"}], **change}
    reply = HTTP.post(f"{served.url}/v1/chat/completions", json=body)
    assert reply.status_code == 400, reply.text
    error = reply.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert param is None or error["param"] == param


@pytest.mark.parametrize(
    "change",
    [
        {"n": 1}, {"logprobs": False}, {"store": False}, {"modalities": ["text"]}, {"user": "ada"}, {"seed": 1},
        {"stop": "x"}, {"stop": ["x", "y"]}, {"temperature": 0}, {"max_completion_tokens": 5}, {"tool_choice": "auto"},
        {"response_format": {"type": "text"}}, {"temperature": None}, {"service_tier": "auto"},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_supported_is_taken(served: ServedFace, change: dict[str, Any]) -> None:
    assert ask(served, "Hi", **change).status_code == 200


def test_agents_are_listed_as_models(client: openai.OpenAI) -> None:
    names = ["helper", "limited", "eyes", "reader", "patient", "key", "long", "busy"]
    assert [model.id for model in client.models.list()] == names
    assert client.models.retrieve("helper").owned_by == "jackfield"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nobody")


def test_curl_reads_a_stream(served: ServedFace) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("curl is not installed")
    body = json.dumps({"model": "helper", "messages": [{"role": "user", "content": "Hi"}], "stream": True})
    url = f"{served.url}/v1/chat/completions"
    command = [curl, "-sN", url, "-H", "content-type: application/json", "-d", body]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.endswith("data: [DONE]\n\n")


def test_many_streams_at_once_are_complete(served: ServedFace) -> None:
    async def run() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key="none") as client:

            async def one(number: int) -> str:
                messages: Any = [{"role": "user", "content": f"number {number}"}]
                stream = await client.chat.completions.create(model="helper", messages=messages, stream=True)
                return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

            return await asyncio.gather(*(one(number) for number in range(20)))

    texts = asyncio.run(run())
    assert texts == [f"You said: number {number}" for number in range(20)]
