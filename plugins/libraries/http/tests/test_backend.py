"""A backend over HTTP writes where, what and how to read it; the rest is here, once."""

from __future__ import annotations

import asyncio
import pickle
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest

from jackfield import sync
from jackfield.config import LLMConfig
from jackfield.errors import (
    ConfigError,
    MissingSecretError,
    ModelAuthError,
    ModelConnectionError,
    ModelRequestError,
    ModelResponseError,
    ModelServiceError,
)
from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.messages import ContentItem, Message
from jackfield.plugins import PluginHost
from jackfield.quoting import SentSecrets
from jackfield.request import ChatRequest, ModelFacts
from jackfield.settings import Settings
from jackfield_http import (
    Access,
    AnswerReader,
    DataLineDecoder,
    Failures,
    Post,
    Server,
    Wire,
    class_of_status,
    configured_url,
    count_of,
    json_bytes,
    transport,
)
from jackfield_http.backend import MAX_REFUSAL_BYTES, Exchange, HTTPBackend, ModelPage, reads_files, with_query
from jackfield_http.keys import FoundKey, KeyRule
from jackfield_testkit import replies
from jackfield_testkit.server import FakeOpenAI

HELLO = [Message("user", "hello")]


@dataclass(frozen=True, slots=True)
class Place(Server):
    """A server, and the word that it wants."""

    word: str = "old"


class SaidReader(AnswerReader):
    """`{"say": text}`, and at the end `{"bye": true}`."""

    advice: ClassVar[str] = "check that it says"
    texts: ClassVar[frozenset[str]] = frozenset({"say"})
    end_mark: ClassVar[bytes | None] = b"[DONE]"
    complete = False

    def read_event(self, wire: Wire) -> list[ModelEvent]:
        self.complete = "bye" in wire
        return [TextDelta(wire["say"])] if "say" in wire else []

    def last_events(self) -> list[ModelEvent]:
        return [ModelFinished("stop")]


class ImpatientReader(SaidReader):
    decoder = DataLineDecoder

    def read_event(self, wire: Wire) -> list[ModelEvent]:
        events = super().read_event(wire)
        self.enough = self.complete
        return events


class AcmeConfig(LLMConfig):
    images: bool = True
    context_tokens: int | None = None


class Acme(HTTPBackend[Place]):
    backend: ClassVar[str] = "acme"
    config_class: ClassVar[type[LLMConfig]] = AcmeConfig
    key_rule: ClassVar[KeyRule] = KeyRule("ACME_API_KEY", ("api.acme.example",), "ACME_URL")
    reader_class: ClassVar[type[SaidReader]] = SaidReader
    posted_in: threading.Thread | None = None

    def server(self) -> Place:
        url = self.configured_url() or "https://api.acme.example"
        key = self.find_key(url, needed=True)
        return Place(f"{url}/say", {"authorization": f"Bearer {key.value}"}, key)

    def post(self, request: ChatRequest, server: Place) -> Post:
        self.posted_in = threading.current_thread()
        return Post(json_bytes({"word": server.word}), headers={"x-word": server.word})

    def reader(self, exchange: Exchange[Place]) -> SaidReader:
        return self.reader_class(exchange.failures, patience_s=exchange.patience_s)

    def refusal(self, failures: Failures, status: int, body: bytes) -> ModelServiceError:
        return failures.refused(class_of_status(status), body.decode(), status=status)

    def adjust_server(self, request: ChatRequest, server: Place, status: int, body: bytes) -> Place | None:
        return replace(server, word="new") if b"say new" in body and server.word == "old" else None


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


@pytest.fixture
def make(server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Acme]]:
    for name in ("ACME_API_KEY", "ACME_URL", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    made: list[Acme] = []

    def acme(made_class: type[Acme] = Acme, **config: Any) -> Acme:
        settings = {
            "model": "m",
            "base_url": server.url,
            "api_key": "sk-do-not-show",
            "generate_cfg": {"max_retries": 0},
        }
        made.append(made_class({**settings, **config}, host=PluginHost(Settings())))
        return made[-1]

    yield acme
    for model in made:
        sync.run(model.aclose())


def events(*data: str) -> replies.Reply:
    return replies.raw("".join(f"data: {one}\n\n" for one in data).encode(), {"Content-Type": "text/event-stream"})


def ask(model: Acme, messages: list[Message] = HELLO) -> str:
    return sync.run(model.acomplete(messages)).get_content()


# --- asking ---


def test_what_a_backend_writes_is_asked_and_read(server: FakeOpenAI, make: Callable[..., Acme]) -> None:
    server.reply(events('{"say": "good "}', '{"say": "day"}', '{"bye": true}', "[DONE]", '{"say": "!"}'))
    assert ask(make()) == "good day"
    (request,) = server.requests
    assert (request.path, request.json) == ("/v1/say", {"word": "old"})
    headers = {"authorization": "Bearer sk-do-not-show", "x-word": "old", "accept-encoding": "identity"}
    assert headers.items() <= dict(request.headers.items()).items()


def test_an_answer_of_one_object_is_read_too(server: FakeOpenAI, make: Callable[..., Acme]) -> None:
    server.reply(replies.raw(b'{"say": "whole", "bye": true}', {"Content-Type": "application/json; charset=utf-8"}))
    assert ask(make()) == "whole"


def test_a_character_in_two_objects_is_one(server: FakeOpenAI, make: Callable[..., Acme]) -> None:
    server.reply(events('{"say": "\\ud83d"}', '{"say": "\\ude00"}', '{"bye": true}'))
    assert ask(make()) == "\U0001f600"


@pytest.mark.parametrize("data", ['{"say": 1', '{"say": "\\x"}', "[]", "null", '"text"'])
def test_what_is_no_part_of_an_answer_is_shown_with_what_to_check(
    server: FakeOpenAI, make: Callable[..., Acme], data: str
) -> None:
    server.reply(events('{"say": "so"}', data))
    with pytest.raises(ModelResponseError, match=r"not part of a response.*; check that it says") as caught:
        ask(make())
    assert caught.value.partial_text == "so"


@pytest.mark.parametrize(
    ("data", "told"), [((), "no response: check that"), (('{"say": "so"}',), "before the response was complete")]
)
def test_an_answer_without_its_end_is_an_error(
    server: FakeOpenAI, make: Callable[..., Acme], data: tuple[str, ...], told: str
) -> None:
    server.reply(events(*data))
    with pytest.raises(ModelResponseError, match=told):
        ask(make())


def test_what_is_not_worth_waiting_for_is_read_if_it_is_there(server: FakeOpenAI, make: Callable[..., Acme]) -> None:
    class Impatient(Acme):
        reader_class: ClassVar[type[SaidReader]] = ImpatientReader

    server.reply(events('{"say": "a", "bye": true}'), events('{"say": "b", "bye": true}'))
    model = make(Impatient)
    assert [ask(model), ask(model)] == ["a", "b"]
    assert server.connections == 1


def test_nobody_waits_for_a_server_that_holds_a_finished_answer_open(
    server: FakeOpenAI, make: Callable[..., Acme], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Streaming(Acme):
        def post(self, request: ChatRequest, place: Place) -> Post:
            return Post(json_bytes({"stream": True}))

    monkeypatch.setattr(transport, "REST_S", 300)
    server.reply(replies.chunks([{"say": "a"}, {"bye": True}]).without("usage").held_open())
    model = make(Streaming)
    assert sync.run(asyncio.wait_for(model.acomplete(HELLO), 10)).get_content() == "a"


def test_an_answer_that_is_enough_does_not_wait_for_a_server_that_goes_silent(
    server: FakeOpenAI, make: Callable[..., Acme], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Impatient(Acme):
        reader_class: ClassVar[type[SaidReader]] = ImpatientReader

        def post(self, request: ChatRequest, place: Place) -> Post:
            return Post(json_bytes({"stream": True}))

    monkeypatch.setattr(transport, "REST_S", 0.01)
    server.reply(replies.chunks([{"say": "a", "bye": True}, {"say": "b"}]).stall_after(1))
    model = make(Impatient, generate_cfg={"max_retries": 0, "request_timeout": 300})
    assert sync.run(asyncio.wait_for(model.acomplete(HELLO), 30)).get_content() == "a"


def test_a_refused_word_is_replaced_for_this_call_and_later_ones(server: FakeOpenAI, make: Callable[..., Acme]) -> None:
    server.reply(replies.error(400, "say new"), events('{"bye": true}'), events('{"bye": true}'))
    model = make()
    ask(model)
    ask(model)
    assert [request.json["word"] for request in server.requests] == ["old", "new", "new"]
    server.reply(replies.error(400, "say new"))
    with pytest.raises(ModelRequestError):
        ask(model)


def test_files_are_read_in_a_worker_thread_and_nothing_else_is(server: FakeOpenAI, make: Callable[..., Acme]) -> None:
    server.default = events('{"bye": true}')
    model = make()

    async def posted_elsewhere(item: ContentItem) -> bool:
        await model.acomplete([Message("user", [item])])
        return model.posted_in is not threading.current_thread()

    assert not asyncio.run(posted_elsewhere(ContentItem(text="a.png")))
    assert asyncio.run(posted_elsewhere(ContentItem(image="a.png")))


@pytest.mark.parametrize(
    ("item", "reads"),
    [
        (ContentItem(image="a.png"), True),
        (ContentItem(image="http://h/a.png"), False),
        (ContentItem(file="a.pdf"), True),
        (ContentItem(file="http://h/a.pdf"), False),
        (ContentItem(text="a.png"), False),
    ],
)
def test_only_what_is_on_disk_is_read_there(item: ContentItem, reads: bool) -> None:
    assert reads_files(ChatRequest("m", (Message("user", "hi"), Message("user", [item])))) is reads


def test_a_later_file_of_a_message_is_found() -> None:
    items = [ContentItem(text="a"), ContentItem(image="http://h/a.png"), ContentItem(image="a.png")]
    assert reads_files(ChatRequest("m", (Message("user", items), Message("user", "hi"))))


def test_an_answer_ends_at_its_end_mark_even_if_the_server_goes_on(
    server: FakeOpenAI, make: Callable[..., Acme]
) -> None:
    server.reply(events('{"say": "a"}', '{"bye": true}', "[DONE]", '{"say": "b"}').cut(at=range(1, 200, 7)))
    assert ask(make()) == "a"


def test_each_part_of_a_request_overrides_the_one_before(server: FakeOpenAI, make: Callable[..., Acme]) -> None:
    class Elsewhere(Acme):
        def server(self) -> Place:
            found = super().server()
            return replace(found, headers={**found.headers, "User-Agent": "acme", "x-word": "server"})

        def post(self, request: ChatRequest, place: Place) -> Post:
            return Post(b"{}", f"{place.url}/more", {"X-Word": "post", "x-own": "1"})

    server.default = events('{"bye": true}')
    model = make(Elsewhere)
    ask(model)
    sync.run(model.acomplete(HELLO, config={"extra_headers": {"X-Own": "extra", "accept": "text/plain"}}))
    names = ("user-agent", "x-word", "x-own", "accept", "content-type", "accept-encoding", "authorization")
    sent = [[request.headers[name] for name in names] for request in server.requests]
    key = "Bearer sk-do-not-show"
    assert sent == [
        ["acme", "post", "1", "text/event-stream", "application/json", "identity", key],
        ["acme", "post", "extra", "text/plain", "application/json", "identity", key],
    ]
    assert {request.path for request in server.requests} == {"/v1/say/more"}


def test_a_secret_in_an_extra_header_is_not_shown_either(server: FakeOpenAI, make: Callable[..., Acme]) -> None:
    server.reply(replies.error(400, "no sk-do-not-show and no tok-do-not-show"))
    with pytest.raises(ModelRequestError, match=r"no \[key\] and no \[key\]"):
        sync.run(make().acomplete(HELLO, config={"extra_headers": {"x-token": "tok-do-not-show"}}))


@pytest.mark.parametrize(
    ("config", "timeout_s", "patience_s"),
    [
        ({}, 120, 1200),
        ({"request_timeout": 7}, 7, 70),
        ({"event_timeout": 3}, 120, 3),
        ({"request_timeout": 7, "event_timeout": 3}, 7, 3),
    ],
)
def test_the_time_outs_are_those_of_the_request_and_ten_times_that_for_comments(
    server: FakeOpenAI, make: Callable[..., Acme], config: dict[str, Any], timeout_s: float, patience_s: float
) -> None:
    seen: list[float] = []

    class Noting(Acme):
        def reader(self, exchange: Exchange[Place]) -> SaidReader:
            assert exchange.request.config.request_timeout == config.get("request_timeout")
            seen.append(exchange.patience_s)
            return super().reader(exchange)

    server.reply(events('{"bye": true}'))
    model = make(Noting)

    async def note_timeout() -> None:
        opened = await model.access.open()
        post = opened.client.post

        def noting(*args: Any, **options: Any) -> Any:
            seen.append(options["timeout_s"])
            return post(*args, **options)

        opened.client.post = noting  # type: ignore[method-assign]
        await model.acomplete(HELLO, config=config)

    sync.run(note_timeout())
    assert seen == [timeout_s, patience_s]


@pytest.mark.parametrize("status", [300, 302, 307, 308, 399])
@pytest.mark.parametrize("way", ["answer", "list"])
def test_a_redirect_is_an_error_that_names_the_setting(
    server: FakeOpenAI, make: Callable[..., Acme], way: str, status: int
) -> None:
    redirect = replies.raw(b'{"say": "a", "bye": true, "data": []}', {"Location": "/elsewhere"}, status=status)
    server.reply(redirect)
    server.reply_to_listing(redirect)
    with pytest.raises(ModelRequestError, match=f"HTTP {status}: the server redirects .set base_url"):
        ask(make()) if way == "answer" else listed(make())
    assert len(server.requests) + len(server.listings) == 1


def test_a_closed_model_has_no_connection_and_looks_its_key_up_again(
    server: FakeOpenAI, make: Callable[..., Acme], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.default = events('{"bye": true}')
    model = make(api_key=None)
    for key in ("sk-first", "sk-second"):
        monkeypatch.setenv("ACME_API_KEY", key)
        ask(model)
        assert server.requests[-1].headers["authorization"] == f"Bearer {key}"
        sync.run(model.aclose())
        assert server.wait_until(lambda s: s.open_connections == 0, timeout_s=20)


def test_a_long_refusal_is_read_in_part(server: FakeOpenAI, make: Callable[..., Acme]) -> None:
    read: list[int] = []

    class Noting(Acme):
        def refusal(self, failures: Failures, status: int, body: bytes) -> ModelServiceError:
            read.append(len(body))
            return super().refusal(failures, status, body)

    server.reply(replies.raw(b"x" * 2_000_000, status=400))
    with pytest.raises(ModelRequestError):
        ask(make(Noting))
    assert MAX_REFUSAL_BYTES <= read[0] < 1_000_000


def test_a_paused_answer_is_continued_by_another_request(server: FakeOpenAI, make: Callable[..., Acme]) -> None:
    class PausedReader(SaidReader):
        paused = False

        def read_event(self, wire: Wire) -> list[ModelEvent]:
            self.paused = "pause" in wire
            said = super().read_event(wire)
            self.complete = self.complete or self.paused
            return said

        def last_events(self) -> list[ModelEvent]:
            return [] if self.paused else super().last_events()

    class Pausing(Acme):
        reader_class: ClassVar[type[SaidReader]] = PausedReader

        def post(self, request: ChatRequest, place: Place) -> Post:
            return Post(json_bytes({"n": len(request.messages)}))

        def resume(self, request: ChatRequest, reader: AnswerReader) -> ChatRequest | None:
            more = (*request.messages, Message("assistant", "so far"))
            return replace(request, messages=more) if isinstance(reader, PausedReader) and reader.paused else None

    server.reply(events('{"say": "a", "pause": 1}', "[DONE]"), events('{"say": "b"}', '{"bye": true}', "[DONE]"))
    assert ask(make(Pausing)) == "ab"
    assert [request.json["n"] for request in server.requests] == [1, 2]


# --- lists of models ---


def listed(model: Acme, read_page: Any = None) -> list[str]:
    return sync.run(model.fetch_model_ids(lambda place: place.url.replace("/say", "/models?limit=2"), read_page))


def page(*names: str, **more: Any) -> replies.Reply:
    return replies.raw(json_bytes({"data": [{"id": name} for name in names], **more}))


def test_a_key_is_missing_only_where_one_is_needed(make: Callable[..., Acme]) -> None:
    backend = make(api_key="")
    assert (backend.find_key(None).value, backend.find_key(None, KeyRule("OTHER")).variable) == ("", "OTHER")
    with pytest.raises(MissingSecretError, match="ACME_API_KEY"):
        backend.find_key(None, needed=True)


def test_a_list_of_models_is_read_page_by_page_each_name_once(server: FakeOpenAI, make: Callable[..., Acme]) -> None:
    server.reply_to_listing(page("a", "b", has_more=True), page("b", "c", has_more=True), page("d", has_more=False))
    assert listed(make(generate_cfg={"max_retries": 0, "extra_headers": {"x-mine": "1"}})) == ["a", "b", "c", "d"]
    assert [request.path for request in server.listings] == [
        "/v1/models?limit=2",
        "/v1/models?limit=2&after_id=b",
        "/v1/models?limit=2&after_id=c",
    ]
    for request in server.listings:
        assert (request.headers["accept"], request.headers["x-mine"]) == ("application/json", "1")
        assert request.headers["authorization"] == "Bearer sk-do-not-show"


@pytest.mark.parametrize(("configured_s", "timeout_s"), [(None, 120), (7, 7)])
def test_a_list_of_models_is_waited_for_as_long_as_an_answer(
    server: FakeOpenAI, make: Callable[..., Acme], configured_s: float | None, timeout_s: float
) -> None:
    server.reply_to_listing(page("a"))
    model = make(generate_cfg={"max_retries": 0, "request_timeout": configured_s})
    waited: list[float] = []

    async def note_timeout() -> None:
        client = (await model.access.open()).client
        exchange = client.exchange

        def noting(*args: Any, **options: Any) -> Any:
            waited.append(options["timeout_s"])
            return exchange(*args, **options)

        client.exchange = noting  # type: ignore[method-assign]
        await model.fetch_model_ids(lambda place: place.url.replace("/say", "/models"))

    sync.run(note_timeout())
    assert waited == [timeout_s]


def test_a_refused_list_of_models_shows_no_secret(server: FakeOpenAI, make: Callable[..., Acme]) -> None:
    server.reply_to_listing(replies.error(400, "no sk-do-not-show and no tok-do-not-show"))
    with pytest.raises(ModelRequestError, match=r"no \[key\] and no \[key\]"):
        listed(make(generate_cfg={"max_retries": 0, "extra_headers": {"x-token": "tok-do-not-show"}}))


def test_a_server_that_repeats_a_page_is_asked_no_more(server: FakeOpenAI, make: Callable[..., Acme]) -> None:
    server.reply_to_listing(page("a", has_more=True), page("a", has_more=True))
    assert listed(make()) == ["a"]
    server.reply_to_listing(page("a", has_more=True), page(has_more=True))
    assert listed(make()) == ["a"]


def test_a_list_of_models_is_asked_for_again_if_that_may_help(server: FakeOpenAI, make: Callable[..., Acme]) -> None:
    again = replies.error(503, "later", headers={"retry-after": "0"})
    server.reply_to_listing(again, page("a"))
    assert listed(make(generate_cfg={"max_retries": 1})) == ["a"]
    server.reply_to_listing(again, page("a"))
    with pytest.raises(ModelServiceError, match="HTTP 503"):
        listed(make())


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"<html>", b'{"data": [{"name": "a"}]}', b'{"data": 3}', b'{"data": [1]}']
)
def test_what_is_no_list_of_models_is_an_error_that_says_so(
    server: FakeOpenAI, make: Callable[..., Acme], body: bytes
) -> None:
    server.reply_to_listing(replies.raw(body))
    with pytest.raises(ModelResponseError, match="it provides no list of models"):
        listed(make())


def test_a_backend_reads_pages_of_its_own(server: FakeOpenAI, make: Callable[..., Acme]) -> None:
    def read_page(value: Any, url: str) -> ModelPage:
        return ModelPage(value["data"], with_query(url, page=2, limit="") if "limit=2" in url else None)

    server.reply_to_listing(replies.raw(b'{"data": ["x"]}'), replies.raw(b'{"data": ["y"]}'))
    assert listed(make(), read_page) == ["x", "y"]
    assert server.listings[1].path == "/v1/models?limit=&page=2"


@pytest.mark.parametrize(
    ("url", "parameters", "expected"),
    [
        ("http://h/a", {"b": 1}, "http://h/a?b=1"),
        ("http://h/a?b=1&c=", {"b": 2}, "http://h/a?b=2&c="),
        ("http://h/a?x=%26", {"y": "ä &"}, "http://h/a?x=%26&y=%C3%A4+%26"),
        ("http://h/a#f", {}, "http://h/a#f"),
    ],
)
def test_a_query_is_extended_or_replaced(url: str, parameters: dict[str, object], expected: str) -> None:
    assert with_query(url, **parameters) == expected


def test_facts_are_the_settings_that_are_called_so(make: Callable[..., Acme]) -> None:
    assert make(context_tokens=7).facts == replace(ModelFacts(), images=True, context_tokens=7)


# --- the server ---


def test_the_key_of_the_environment_goes_to_the_provider_alone(
    make: Callable[..., Acme], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MissingSecretError, match="ACME_API_KEY") as caught:
        make(api_key=None).server()
    assert caught.value.needed_by == f"backend {Acme.backend}"
    monkeypatch.setenv("ACME_API_KEY", "sk-environment")
    assert make(api_key=None, base_url=None).server().key.value == "sk-environment"
    with pytest.raises(ConfigError, match=r"ACME_API_KEY is not sent to elsewhere\.example"):
        make(api_key=None, base_url="https://elsewhere.example").server()
    monkeypatch.setenv("ACME_URL", "https://elsewhere.example/v1/")
    model = make(api_key=None, base_url=None)
    assert (model.server().url, model.server().key.value) == ("https://elsewhere.example/v1/say", "sk-environment")
    assert model.server_name == "acme@elsewhere.example"


def test_an_address_is_given_by_the_configuration_else_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = KeyRule("K", url_variable="ACME_URL")
    monkeypatch.delenv("ACME_URL", raising=False)
    assert configured_url(None, rule) is None
    monkeypatch.setenv("ACME_URL", "http://environment/")
    assert (configured_url(None, rule), configured_url("http://set", rule)) == ("http://environment", "http://set")
    assert configured_url("", KeyRule("K")) is None
    with pytest.raises(ConfigError, match="endpoint must start with"):
        configured_url("ftp://h", rule, setting="endpoint")


def test_an_unusable_address_is_named_by_the_backends_own_setting(
    make: Callable[..., Acme], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Endpoint(Acme):
        url_setting: ClassVar[str] = "endpoint"

    monkeypatch.setenv("ACME_URL", "ftp://h")
    for model_class, setting in ((Acme, "base_url"), (Endpoint, "endpoint")):
        with pytest.raises(ConfigError, match=f"^{setting} must start with"):
            make(model_class, base_url=None).configured_url()


def test_a_server_is_found_once_however_many_ask_at_once_and_again_after_closing() -> None:
    found: list[Server] = []

    def find() -> Server:
        found.append(Server("http://127.0.0.1:1"))
        return found[-1]

    async def ask_and_close() -> None:
        access = Access(find, backend="acme")
        opened = await asyncio.gather(*(access.open() for _ in range(8)))
        assert len(found) == 1
        assert len(set(map(id, opened))) == 1
        await access.aclose()
        assert (await access.open()).server is found[1]

    asyncio.run(ask_and_close())


def test_other_parameters_of_a_server_are_kept_unless_another_server_was_found_meanwhile() -> None:
    async def change() -> None:
        access = Access(find_nowhere, backend="acme")
        first = await access.open()
        second = access.change(first, replace(first.server, url="http://127.0.0.1:1/b"))
        assert (second.client, second.server.url) == (first.client, "http://127.0.0.1:1/b")
        assert await access.open() is second
        late = access.change(first, replace(first.server, url="http://127.0.0.1:1/late"))
        assert late.server.url == "http://127.0.0.1:1/late"
        assert await access.open() is second
        await access.aclose()
        access.change(second, second.server)
        assert (await access.open()).server.url == "http://127.0.0.1:1"

    asyncio.run(change())


def test_a_server_is_found_in_a_worker_thread() -> None:
    threads: list[threading.Thread] = []

    def find() -> Server:
        threads.append(threading.current_thread())
        return find_nowhere()

    asyncio.run(Access(find, backend="acme").open())
    assert threads != [threading.current_thread()]


def find_nowhere() -> Server:
    return Server("http://127.0.0.1:1", {"x-api-key": "sk-do-not-show"}, FoundKey("sk-do-not-show"))


def test_an_access_is_pickled_without_what_it_found() -> None:
    access = Access(find_nowhere, backend="acme")
    opened = asyncio.run(access.open())
    assert "sk-do-not-show" not in repr(opened)
    pickled = pickle.dumps(access)
    assert b"sk-do-not-show" not in pickled
    assert asyncio.run(pickle.loads(pickled).open()).server == opened.server


# --- errors ---


def test_an_error_says_what_the_server_says_and_what_to_do_and_no_secret() -> None:
    now = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
    headers = {"x-request-id": "req sk-do-not-show", "retry-after": "Thu, 01 Jan 2026 12:00:07 GMT"}
    failures = Failures("acme", SentSecrets("sk-do-not-show"), headers, FoundKey(variable="ACME_API_KEY"), now)
    error = failures.refused(ModelAuthError, "bad\nkey SK-DO-NOT-SHOW", status=401, code="no sk-do-not-show")
    assert str(error) == (
        "acme: HTTP 401: bad key [key] (check the API key (api_key, ACME_API_KEY), its permissions, and the account's "
        "quota and balance)"
    )
    assert (error.code, error.request_id, error.retry_after_s) == ("no [key]", "req [key]", 7)
    cut = failures.in_answer(ModelRequestError, "", code="odd", status=422, advice="do it", request_id="its own")
    assert str(cut) == "acme: error in the response: odd (do it)"
    assert (cut.status, cut.request_id, cut.retry_after_s) == (422, "its own", None)
    assert "sk-do-not-show" not in repr(failures)
    assert "[key]" in str(failures.unreadable(b"sk-do-not-show \xff", advice="look"))


@pytest.mark.parametrize(
    "made",
    ["refused", "refused, by code", "in_answer", "in_answer, by code", "unreadable", "wrong", "wrong, by header"],
)
@pytest.mark.parametrize("repeated", ["sk-do-not-show", "SK-DO-NOT-SHOW", "c2stZG8tbm90LXNob3c=", "sk%2Ddo-not-show"])
def test_no_part_of_any_error_shows_a_secret_that_the_server_repeats(made: str, repeated: str) -> None:
    text = f"not {repeated}"
    failures = Failures("acme", SentSecrets("sk-do-not-show"), {"x-request-id": text})
    error: ModelServiceError
    match made:
        case "refused":
            error = failures.refused(ModelAuthError, text, status=401, code=text, request_id=text)
        case "refused, by code":
            error = failures.refused(ModelAuthError, "", status=401, code=text)
        case "in_answer, by code":
            error = failures.in_answer(ModelRequestError, "", code=text)
        case "in_answer":
            error = failures.in_answer(ModelRequestError, text, code=text, request_id=text)
        case "unreadable":
            error = failures.unreadable(text.encode(), advice="look")
        case "wrong":
            error = failures.wrong("it broke off", request_id=text)
        case _:
            error = failures.wrong("it broke off")
    shown = f"{error} {error!r} {vars(error)}"
    assert repeated not in shown
    assert "do-not-show" not in shown.lower()
    assert "[key]" in shown


def test_a_redirect_and_a_key_that_was_withheld_have_advice_of_their_own() -> None:
    failures = Failures("acme", key=FoundKey(withheld="ACME_API_KEY is not sent there"))
    assert "(set base_url to its current location)" in str(failures.refused(ModelRequestError, "x", status=302))
    for advice in (None, "renew the key"):
        error = failures.refused(ModelAuthError, "x", status=401, advice=advice)
        assert "(ACME_API_KEY is not sent there)" in str(error)
    assert "not sent" not in str(failures.refused(ModelRequestError, "x", status=400))


@pytest.mark.parametrize(("value", "count"), [(3, 3), (2.9, 2), (0, 0), (-1, 0), ("3", 0), (None, 0), (2**63, 0)])
def test_a_count_that_is_none_is_0(value: object, count: int) -> None:
    assert count_of(value) == count


def test_a_server_that_cannot_be_reached_is_said_with_the_name_of_the_backend(make: Callable[..., Acme]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ModelConnectionError, match=r"^acme") as caught:
        ask(make(base_url=f"http://127.0.0.1:{port}"))
    assert caught.value.backend == "acme"
