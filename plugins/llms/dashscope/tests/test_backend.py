"""A model at DashScope, asked over HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from jackfield import sync
from jackfield.errors import (
    ConfigError,
    ContentFilterError,
    MissingSecretError,
    ModelConnectionError,
    ModelRequestError,
    ModelServiceError,
    RateLimitedError,
)
from jackfield.events import MediaDelta, ModelEvent, PluginEvent
from jackfield.messages import ContentItem, Message
from jackfield.request import ChatRequest
from jackfield_dashscope.backend import QwenAudioChat, QwenChat
from jackfield_http import Failures
from jackfield_http.backend import Exchange
from jackfield_testkit import replies
from jackfield_testkit.dashscope import DashScopeRequest, FakeDashScope
from jackfield_testkit.replies import Reply, ToolCall
from jackfield_testkit.server import RecordedRequest

HELLO = [Message("user", "hello")]
TEXT_PATH = "/api/v1/services/aigc/text-generation/generation"
MULTIMODAL_PATH = "/api/v1/services/aigc/multimodal-generation/generation"
WAV = b"RIFF\x24\0\0\0WAVEfmt "
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)

MakeModel = Any  # of conftest.py, which tests cannot import


def last(server: FakeDashScope) -> DashScopeRequest:
    """The last request, as it was sent."""
    request = server.requests[-1]
    assert isinstance(request, DashScopeRequest)
    return request


def events_of(model: QwenChat, messages: list[Message] = HELLO, **config: Any) -> list[ModelEvent]:
    """The events of one answer."""

    async def gather() -> list[ModelEvent]:
        return [event async for event in model.stream(model.make_request(messages, config=config or None))]

    return sync.run(gather())


# --- the request ---


def test_a_stream_is_asked_for_natively_with_increments(server: FakeDashScope, make_model: MakeModel) -> None:
    server.reply(replies.text("hi"))
    make_model().quick_chat("hello")
    request = last(server)
    assert request.native_path == TEXT_PATH
    assert request.headers["x-dashscope-sse"] == "enable"
    assert request.native == {
        "model": "test-model",
        "input": {"messages": [{"role": "user", "content": "hello"}]},
        "parameters": {"result_format": "message", "incremental_output": True},
    }


def test_what_the_configuration_says_of_thinking_and_searching_is_sent_with_every_request(
    server: FakeDashScope, make_model: MakeModel
) -> None:
    server.default = replies.text("hi")
    chosen = {
        "enable_thinking": True,
        "thinking_budget": 500,
        "enable_search": True,
        "search_options": {"forced_search": True},
    }
    model = make_model(**chosen)
    model.quick_chat("hello")
    assert chosen.items() <= last(server).native["parameters"].items()
    sync.run(model.acomplete(HELLO, config={"extra_body": {"enable_thinking": False}}))
    assert last(server).native["parameters"]["enable_thinking"] is False, "the call does not win over the model"


def test_two_models_with_two_keys_do_not_mix(server: FakeDashScope, make_model: MakeModel) -> None:
    def key_back(request: RecordedRequest) -> Reply:
        return replies.text([request.headers["authorization"], " ", request.headers["x-dashscope-workspace"]]).paced(
            0.002
        )

    server.respond(key_back)
    models = [make_model(api_key=f"sk-{name}", workspace=f"ws-{name}") for name in ("one", "two")]

    async def ask_all() -> list[str]:
        answers = await asyncio.gather(*(model.acomplete(HELLO) for model in models * 10))
        return [answer.get_content() for answer in answers]

    assert sync.run(ask_all()) == ["Bearer sk-one ws-one", "Bearer sk-two ws-two"] * 10


def test_nothing_of_the_sdk_is_set_for_the_whole_process(server: FakeDashScope, make_model: MakeModel) -> None:
    import dashscope

    before = (dashscope.api_key, dashscope.base_http_api_url, dashscope.settings.get_explicit("api_key"))
    server.reply(replies.text("hi"))
    make_model(api_key="sk-mine").quick_chat("hello")
    after = (dashscope.api_key, dashscope.base_http_api_url, dashscope.settings.get_explicit("api_key"))
    assert after == before
    assert "sk-mine" not in after


def test_an_answer_that_was_begun_is_marked_to_be_continued(server: FakeDashScope, make_model: MakeModel) -> None:
    server.reply(replies.text(" a time"))
    sync.run(make_model().acomplete([*HELLO, Message("assistant", "Once upon")]))
    assert last(server).native["input"]["messages"][-1] == {
        "role": "assistant",
        "content": "Once upon",
        "partial": True,
    }


# --- endpoints ---


@pytest.mark.parametrize(
    ("backend", "model", "path"),
    [
        ("qwen_dashscope", "some-model", TEXT_PATH),
        ("qwenvl_dashscope", "some-model", MULTIMODAL_PATH),
        ("qwenaudio_dashscope", "some-model", MULTIMODAL_PATH),
        ("qwen_dashscope", "qwen3.5-plus-2026-02-15", MULTIMODAL_PATH),
        ("qwenvl_dashscope", "qwen3-max", TEXT_PATH),
    ],
)
def test_the_endpoint_is_that_of_the_model_else_of_the_backend(
    server: FakeDashScope, make_model: MakeModel, backend: str, model: str, path: str
) -> None:
    server.reply(replies.text("hi"))
    assert make_model(backend, model=model).quick_chat("hello") == "hi"
    assert last(server).native_path == path


def test_the_configured_endpoint_wins(server: FakeDashScope, make_model: MakeModel) -> None:
    server.reply(replies.text("hi"))
    make_model(model="qwen3.5-plus", endpoint="text").quick_chat("hello")
    assert last(server).native_path == TEXT_PATH


def test_a_message_with_an_image_goes_to_the_multimodal_endpoint(server: FakeDashScope, make_model: MakeModel) -> None:
    server.default = replies.text("a cat")
    model = make_model(images=True)
    sync.run(model.acomplete([Message("user", [ContentItem(image="http://127.0.0.1/cat.png")])]))
    assert last(server).native_path == MULTIMODAL_PATH
    model.quick_chat("and without?")
    assert last(server).native_path == TEXT_PATH


@pytest.mark.parametrize(("kind", "content", "media_type"), [("audio", WAV, "audio/wav"), ("image", PNG, "image/png")])
def test_a_local_file_is_sent_inside_the_request(
    server: FakeDashScope, make_model: MakeModel, tmp_path: Path, kind: str, content: bytes, media_type: str
) -> None:
    server.reply(replies.text("I see, I hear"))
    path = tmp_path / "file.bin"
    path.write_bytes(content)
    model = make_model("qwenaudio_dashscope", images=True)
    history = [Message("user", [ContentItem(text="What is it?"), ContentItem(**{kind: str(path)})])]
    assert sync.run(model.acomplete(history)).get_content() == "I see, I hear"
    parts = last(server).native["input"]["messages"][0]["content"]
    assert parts == [
        {"text": "What is it?"},
        {kind: f"data:{media_type};base64,{base64.b64encode(content).decode()}"},
    ]
    assert len(server.requests) == 1, "something was uploaded"


def test_an_address_in_the_providers_store_is_asked_to_be_looked_up(
    server: FakeDashScope, make_model: MakeModel
) -> None:
    server.default = replies.text("ok")
    model = make_model("qwenvl_dashscope")
    model.quick_chat("hello, what is oss://bucket?")
    assert "x-dashscope-ossresourceresolve" not in last(server).headers
    sync.run(model.acomplete([Message("user", [ContentItem(image="oss://bucket/cat.png")])]))
    assert last(server).headers["x-dashscope-ossresourceresolve"] == "enable"


@pytest.mark.parametrize("kind", ["image", "audio", "video"])
def test_media_of_any_kind_go_to_the_other_endpoint_unless_one_is_configured(
    server: FakeDashScope, make_model: MakeModel, kind: str
) -> None:
    server.default = replies.text("ok")
    question = Message("user", [ContentItem(**{kind: "oss://bucket/a"})])
    facts = {kind if kind != "image" else "images": True}
    sync.run(make_model(**facts).acomplete([question]))
    assert "/multimodal-generation/" in last(server).native_path
    sync.run(make_model(**facts, endpoint="text").acomplete([question]))
    assert last(server).native_path == TEXT_PATH


def test_comments_are_borne_with_as_long_as_the_request_allows(make_model: MakeModel) -> None:
    model = make_model()
    reader = model.reader(Exchange(ChatRequest("m", ()), model.server(), Failures("b"), 7.0))
    assert reader.events._patience_s == 7


# --- where, and with what ---


def test_without_a_key_the_first_call_names_the_variable_and_nothing_is_sent(
    server: FakeDashScope, make_model: MakeModel
) -> None:
    model = make_model(api_key=None)
    with pytest.raises(MissingSecretError, match="DASHSCOPE_API_KEY"):
        model.quick_chat("hello")
    assert server.requests == []


def test_the_key_is_read_at_the_first_call(
    server: FakeDashScope, make_model: MakeModel, clean_environment: pytest.MonkeyPatch
) -> None:
    server.reply(replies.text("hi"))
    clean_environment.setenv("DASHSCOPE_API_KEY", "sk-when-made")
    model = make_model(api_key=None)
    clean_environment.setenv("DASHSCOPE_API_KEY", "sk-when-asked")
    model.quick_chat("hello")
    assert last(server).headers["authorization"] == "Bearer sk-when-asked"


@pytest.mark.parametrize("key", ["sk-ä", "sk\nx", "sk-\x00"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(make_model: MakeModel, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_model(api_key=key).quick_chat("hello")
    assert key not in str(caught.value)


def test_addresses_are_taken_in_order(
    server: FakeDashScope, make_model: MakeModel, clean_environment: pytest.MonkeyPatch
) -> None:
    server.default = replies.text("hi")
    nowhere = "http://127.0.0.1:9/api/v1"
    clean_environment.setenv("DASHSCOPE_BASE_URL", nowhere)
    clean_environment.setenv("DASHSCOPE_HTTP_URL", server.url)
    assert make_model(base_url=None, model_server="dashscope").quick_chat("hello") == "hi"
    clean_environment.setenv("DASHSCOPE_HTTP_URL", nowhere)
    assert make_model(base_url=server.url).quick_chat("hello") == "hi"
    assert make_model(base_url=nowhere, base_http_api_url=server.url).quick_chat("hello") == "hi"
    clean_environment.delenv("DASHSCOPE_HTTP_URL")
    clean_environment.setenv("DASHSCOPE_BASE_URL", server.url)
    assert make_model(base_url=None).quick_chat("hello") == "hi", "the SDK's own variable is not heard"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"base_url": "https://dashscope.aliyuncs.com/compatible-mode/v1"}, "openai"),
        ({"base_url": "dashscope.aliyuncs.com/api/v1"}, "http://"),
        ({"base_url": None, "model_server": "somewhere"}, "model_server"),
        ({"region": "the-moon"}, "the-moon"),
        ({"base_url": "http://[::1/api/v1"}, "not a valid server URL"),
        ({"base_url": "http:///api/v1"}, "needs a valid host"),
    ],
)
def test_an_address_that_cannot_be_right_is_an_error_that_says_why(
    make_model: MakeModel, settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        make_model(**settings).quick_chat("hello")


@pytest.mark.parametrize("workspace", ["evil.example/", "a b", "a\n", ""])
def test_a_workspace_cannot_lead_to_another_server(make_model: MakeModel, workspace: str) -> None:
    with pytest.raises(ConfigError, match="workspace"):
        make_model(workspace=workspace)


def test_headers_in_any_alphabet_are_sent_and_broken_ones_refused_without_being_shown(
    server: FakeDashScope, make_model: MakeModel
) -> None:
    server.default = replies.text("hi")
    model = make_model()
    sync.run(model.acomplete(HELLO, config={"extra_headers": {"X-Note": "你好"}}))
    assert last(server).headers["x-note"].encode("latin-1").decode() == "你好"
    secret = "sk-" + "hidden"  # as a whole it stands in no line of this file, which a traceback shows
    with pytest.raises(ModelRequestError) as caught:
        sync.run(model.acomplete(HELLO, config={"extra_headers": {"X-Note": f"{secret}\nX-Other: 1"}}))
    assert secret not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("settings", "host"),
    [
        ({"region": "ap-southeast-1"}, "dashscope-intl.aliyuncs.com"),
        ({"region": "us-east-1", "workspace": "ws-mine"}, "ws-mine.us-east-1.maas.aliyuncs.com"),
        ({}, "dashscope.aliyuncs.com"),
    ],
)
@pytest.mark.filterwarnings("ignore:no workspace configured:UserWarning")
def test_without_an_address_the_region_and_the_workspace_say_where(
    make_model: MakeModel, clean_environment: pytest.MonkeyPatch, settings: dict[str, str], host: str
) -> None:
    # A proxy of ours is asked for the way there, and refuses.
    with _refusing_proxy() as (proxy, heard):
        clean_environment.setenv("HTTPS_PROXY", proxy)
        with pytest.raises(ModelConnectionError):
            make_model(base_url=None, api_key="sk-secret", **settings).quick_chat("hello")
    assert heard[0].startswith(f"CONNECT {host}:443 ".encode())
    assert b"sk-secret" not in b"".join(heard)


@contextmanager
def _refusing_proxy() -> Iterator[tuple[str, list[bytes]]]:
    """A proxy that lets nobody through: its address, and what it hears."""
    heard: list[bytes] = []

    def serve() -> None:
        with suppress(OSError):  # it is closed from outside
            while True:
                connection, _ = listening.accept()
                with connection, suppress(OSError):
                    heard.append(connection.recv(65536))
                    connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", heard
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


# --- the answer ---


def test_the_sources_of_a_search_are_an_event(server: FakeDashScope, make_model: MakeModel) -> None:
    sources = {"search_results": [{"index": 1, "title": "A page", "url": "http://127.0.0.1/a"}]}
    message = {"role": "assistant", "content": "as they say"}
    chunk = {"output": {"choices": [{"message": message, "finish_reason": "stop"}], "search_info": sources}}
    server.reply(_native(chunk))
    found = [event for event in events_of(make_model(enable_search=True)) if isinstance(event, PluginEvent)]
    assert found == [PluginEvent("jackfield-dashscope.search", sources)]


def test_an_image_that_a_model_made_is_an_event(server: FakeDashScope, make_model: MakeModel) -> None:
    content = [{"text": "here: "}, {"image": "http://127.0.0.1/made.png"}]
    server.reply(_native({"output": {"choices": [{"message": {"content": content}, "finish_reason": "stop"}]}}))
    events = events_of(make_model("qwenvl_dashscope"))
    assert MediaDelta(ContentItem(image="http://127.0.0.1/made.png")) in events


@pytest.mark.parametrize("streamed", [True, False])
def test_an_error_in_an_answer_that_calls_itself_a_success_is_an_error(
    server: FakeDashScope, make_model: MakeModel, streamed: bool
) -> None:
    problem = {"code": "DataInspectionFailed", "message": "Output data may contain …", "request_id": "abc"}
    server.reply(_native(problem, status=400) if streamed else _whole(problem))
    with pytest.raises(ContentFilterError) as caught:
        events_of(make_model())
    assert (caught.value.code, caught.value.request_id) == ("DataInspectionFailed", "abc")
    assert caught.value.status == (400 if streamed else None)


@pytest.mark.parametrize("form", ["event", "object"])
def test_a_refusal_is_read_in_both_of_its_forms(server: FakeDashScope, make_model: MakeModel, form: str) -> None:
    problem = b'{"code":"Throttling.RateQuota","message":"Requests rate limit exceeded","request_id":"abc"}'
    event = b"id:1\nevent:error\n:HTTP_STATUS/429\ndata:" + problem + b"\n\n"
    headers = {"Content-Type": "text/event-stream"} if form == "event" else {}
    server.reply(replies.raw(event if form == "event" else problem, headers, status=429))
    with pytest.raises(RateLimitedError, match="Requests rate limit exceeded") as caught:
        events_of(make_model())
    assert (caught.value.status, caught.value.code, caught.value.request_id) == (429, "Throttling.RateQuota", "abc")


def test_without_an_id_in_the_answer_that_of_the_response_counts(server: FakeDashScope, make_model: MakeModel) -> None:
    chunk = {"output": {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}}
    server.reply(_native(chunk), replies.raw(b"what?", status=500))
    model = make_model()
    assert sync.run(model.acomplete(HELLO)).response_id == "req_1"
    with pytest.raises(ModelServiceError) as caught:
        events_of(model)
    assert caught.value.request_id == "req_2"


@pytest.mark.parametrize("usage", [replies.DEFAULT_USAGE, None])
def test_an_answer_is_complete_although_the_server_does_not_end_the_response(
    server: FakeDashScope, make_model: MakeModel, usage: dict[str, Any] | None
) -> None:
    server.reply(replies.text(["all ", "of it"], usage=usage).stall_after(3))
    assert sync.run(make_model().acomplete(HELLO)).get_content() == "all of it"


def test_the_audio_backend_sees_nothing_and_says_so(make_model: MakeModel) -> None:
    model = make_model("qwenaudio_dashscope")
    assert isinstance(model, QwenAudioChat)
    assert (model.facts.audio, model.facts.images) == (True, False)


# --- beside the SDK ---


@pytest.mark.parametrize(
    "reply",
    [
        replies.text("naïve 你好 🙂", chars=2),
        replies.reasoning("hm, hm", then="so it is", chars=2),
        replies.tool_calls([ToolCall("f", {"a": 1}, "x"), ToolCall("g", {"b": "二"}, "y")], chars=3),
    ],
    ids=["text", "reasoning", "calls"],
)
def test_an_answer_is_what_the_sdk_makes_of_it(server: FakeDashScope, make_model: MakeModel, reply: Reply) -> None:
    import dashscope

    server.reply(reply, reply)
    ours = sync.run(make_model().acomplete(HELLO))
    with dashscope.Client(api_key="sk-test", base_url=server.url) as client:
        said: list[Any] = [{"role": "user", "content": "hello"}]
        theirs = client.chat.completions.create(model="test-model", messages=said, stream=True).get_final_message()
    assert theirs.usage is not None
    message = theirs.choices[0].message
    reasoning = "".join(str(m.reasoning_content) for m in ours.messages if m.reasoning_content)
    assert ours.get_content() == (message.content or "")
    assert reasoning == (message.reasoning_content or "")
    assert [(call.name, call.arguments) for call in ours.get_function_calls()] == [
        (call.function.name, call.function.arguments) for call in message.tool_calls or ()
    ]
    assert ours.response_id == theirs.request_id
    assert ours.finish_reason == theirs.choices[0].finish_reason
    assert (ours.usage.prompt_tokens, ours.usage.completion_tokens) == (
        theirs.usage.input_tokens,
        theirs.usage.output_tokens,
    )
    assert server.requests[0].native == server.requests[1].native  # type: ignore[attr-defined]


def _native(chunk: dict[str, Any], status: int = 200) -> Reply:
    kind = b"result" if status == 200 else b"error"
    body = b"id:1\nevent:%b\n:HTTP_STATUS/%d\ndata:%b\n\n" % (kind, status, json.dumps(chunk).encode())
    return replies.raw(body, {"Content-Type": "text/event-stream;charset=UTF-8"})


def _whole(value: dict[str, Any]) -> Reply:
    return replies.raw(json.dumps(value).encode())


# --- lists of models ---


def page(names: list[str], number: int, total: int, size: int = 2) -> Any:
    models = [{"model": name} for name in names]
    output = {"models": models, "page_no": number, "page_size": size, "total": total}
    return replies.raw(json.dumps({"output": output}).encode())


def test_models_are_listed_page_by_page_up_to_the_last(server: FakeDashScope, make_model: MakeModel) -> None:
    server.reply_to_listing(page(["a", "b"], 1, 5), page(["c", "d"], 2, 5), page(["e"], 3, 5))
    assert sync.run(make_model().alist_models()) == ["a", "b", "c", "d", "e"]
    queries = [request.path.partition("?")[2] for request in server.listings]
    assert queries == [f"page_no={number}&page_size=100" for number in (1, 2, 3)]
    server.reply_to_listing(page(["a", "b"], 1, 2))
    assert sync.run(make_model().alist_models()) == ["a", "b"]
    assert len(server.listings) == 4, "a full page may be the last"


@pytest.mark.parametrize(
    ("backend", "expected"),
    [
        ("qwen_dashscope", ["qwen3-max", "qwen-vl-max", "qwen-audio-turbo", "unknown"]),
        ("qwenvl_dashscope", ["qwen-vl-max", "unknown"]),
        ("qwenaudio_dashscope", ["qwen-audio-turbo", "unknown"]),
    ],
)
def test_models_that_are_known_not_to_fit_are_left_out(
    server: FakeDashScope, make_model: MakeModel, backend: str, expected: list[str]
) -> None:
    names = ["qwen3-max", "qwen-vl-max", "qwen-audio-turbo", "unknown"]
    server.reply_to_listing(page(names, 1, 4, 100))
    listed = sync.run(make_model(backend).alist_models())
    assert listed == expected


@pytest.mark.parametrize(
    ("backend", "images", "audio", "endpoint"),
    [
        ("qwen_dashscope", False, False, "text-generation"),
        ("qwenvl_dashscope", True, False, "multimodal-generation"),
        ("qwenaudio_dashscope", False, True, "multimodal-generation"),
    ],
)
def test_an_unknown_model_is_what_its_backend_is_for(
    server: FakeDashScope, make_model: MakeModel, backend: str, images: bool, audio: bool, endpoint: str
) -> None:
    model = make_model(backend, model="never-heard-of")
    assert (model.facts.images, model.facts.video, model.facts.audio) == (images, images, audio)
    assert model.facts.reasoning
    server.reply(replies.text("a"))
    sync.run(model.acomplete(HELLO))
    assert f"/{endpoint}/" in last(server).native_path
