"""What a tool gets of a service, and what a model reads when the service fails."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from jackfield.errors import ConfigError, MissingSecretError, ToolServiceError
from jackfield.plugins import default_host
from jackfield_http import KeyRule
from jackfield_http.service import MAX_BYTES, JSONService, Place, RefusalInAnswerError, ServiceConfig
from jackfield_testkit.web import WebAnswer, WebServer

KEY = "sk-1234567890abcdef"
PLACE = Place("https://acme.example/search", KeyRule("ACME_KEY", ("acme.example",), "ACME_URL"), header="x-acme")
HELLO = WebAnswer.json({"said": "hello"})


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer() as server:
        server.put("/search", HELLO)
        yield server


def ask(url: str | None, *, place: Place = PLACE, key: str | None = KEY, **options: Any) -> Any:
    settings = {"url": url, "api_key": key, "max_retries": 0, "request_timeout": 60, **options.pop("config", {})}
    config = ServiceConfig.model_validate(settings)
    asked = JSONService("search (acme)", place, config, settings=lambda: default_host().settings)

    async def once() -> Any:
        try:
            return await asked.ask(options.pop("read", lambda wire: wire["said"]), **options)
        finally:
            await asked.aclose()

    return asyncio.run(once())


def test_a_question_is_posted_as_json_with_the_key_in_its_header(web: WebServer) -> None:
    assert ask(f"{web.url}/search", body={"q": "茶 \ud83d"}) == "hello"
    (request,) = web.requests
    assert (request.method, request.path, request.headers["x-acme"]) == ("POST", "/search", KEY)
    assert request.json == {"q": "茶 �"}


def test_a_question_is_a_query_with_the_key_among_its_parameters(
    web: WebServer, caplog: pytest.LogCaptureFixture
) -> None:
    place = Place(PLACE.url, PLACE.key, parameter="key")
    with caplog.at_level(logging.DEBUG):
        assert ask(web.url, place=place, path="/search", query={"q": "a&b=茶"}) == "hello"
    assert (web.requests[0].method, web.requests[0].query) == ("GET", {"q": "a&b=茶", "key": KEY})
    assert KEY not in caplog.text


def test_a_service_without_a_key_is_sent_none(web: WebServer) -> None:
    for place in (Place(open=True), Place(open=True, header="x-acme"), Place(open=True, parameter="key")):
        assert ask(f"{web.url}/search", place=place, key=None, query={"q": "x"}) == "hello"
        assert not {"authorization", "x-acme"} & web.requests[-1].headers.keys()
        assert web.requests[-1].query == {"q": "x"}


@pytest.mark.parametrize("body", [{}, [], "", 0, False])
def test_an_empty_body_is_posted_too(web: WebServer, body: object) -> None:
    assert ask(f"{web.url}/search", body=body) == "hello"
    assert (web.requests[0].method, web.requests[0].json) == ("POST", body)


def test_half_a_character_in_a_query_is_replaced(web: WebServer) -> None:
    assert ask(f"{web.url}/search", query={"q": "a\ud83d"}) == "hello"
    assert web.requests[0].query == {"q": "a?"}


def test_an_address_that_cannot_be_used_is_named_by_its_setting() -> None:
    with pytest.raises(ConfigError, match=r"^url must start with http"):
        ask("ftp://acme.example")


def test_a_key_is_needed_and_one_of_the_environment_goes_to_its_provider_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingSecretError, match="needs an API key: set the environment variable ACME_KEY") as caught:
        ask(None, key=None)
    assert caught.value.needed_by == "search (acme)"
    monkeypatch.setenv("ACME_KEY", KEY)
    with pytest.raises(ConfigError, match=r"ACME_KEY is not sent to other\.example"):
        ask("https://other.example/search", key=None)


def test_a_key_of_the_environment_goes_to_the_address_beside_it(
    web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_KEY", KEY)
    monkeypatch.setenv("ACME_URL", f"{web.url}/search")
    assert ask(None, key=None) == "hello"
    assert web.requests[0].headers["x-acme"] == KEY


def test_a_key_for_a_service_that_takes_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="accepts no API key: remove api_key"):
        ask(None, place=Place(open=True))


def test_a_service_of_ones_own_needs_its_address() -> None:
    with pytest.raises(ToolServiceError, match="needs a URL: set url"):
        ask(None, place=Place(open=True), key=None)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b'{"message": "Unauthorized."}', "Unauthorized. (check the API key (api_key, ACME_KEY)"),
        (403, b'{"error": {"detail": "no plan"}}', "no plan (check the API key"),
        (403, b"<html>" + b"x" * 9000, "HTTP 403: no reason given (check the API key"),
        (404, b"", "(check the setting url)"),
        (302, b"", "the server redirects: check the setting url"),
        (399, b"", "HTTP 399: the server redirects: check the setting url"),
        (204, b"", "HTTP 204: the server sent no response: check the setting url"),
        (300, b"", "HTTP 300: the server redirects"),
        (404, b'{"error": "gone"}', "HTTP 404: gone (check the setting url)"),
        (400, b'{"info": "odd", "detail": "x", "message": 3}', "HTTP 400: x (change the request)"),
        (400, b'{"error": {"error": "e", "message": "m"}, "message": "outer"}', "HTTP 400: m (change"),
        (400, b'{"error": "e", "message": "m"}', "HTTP 400: m (change"),
        (400, b'{"other": 1}', 'HTTP 400: {"other": 1} (change the request)'),
        (400, b"\xef\xbb\xbf <p>", "HTTP 400: no reason given (change"),
        (400, b"a < b", "HTTP 400: a < b (change"),
        (400, b"a \xff b", "HTTP 400: a \ufffd b (change"),
        (500, b"Oops", "HTTP 500: Oops (the server failed: try again)"),
        (400, b"[1]", "HTTP 400: [1] (change the request)"),
    ],
)
def test_a_refusal_says_what_to_do_and_never_the_key(web: WebServer, status: int, body: bytes, said: str) -> None:
    sent = body.replace(b"plan", b"plan " + KEY.encode())
    web.put("/search", WebAnswer(sent, {"location": "http://127.0.0.1:9/"}, status))
    with pytest.raises(ToolServiceError) as caught:
        ask(f"{web.url}/search")
    assert said in str(caught.value).replace(" [key]", "")
    assert str(caught.value).startswith("search (acme): ")
    assert caught.value.code == (str(status) if status >= 400 else None)
    assert KEY not in str(caught.value)
    assert len(str(caught.value)) < 700


def test_a_service_without_keys_says_itself_what_to_check(web: WebServer) -> None:
    web.put("/search", WebAnswer(status=403))
    with pytest.raises(ToolServiceError, match=r"HTTP 403: no reason given \(allow json\)"):
        ask(f"{web.url}/search", place=Place(open=True, refusing="allow json"), key=None)


def test_a_rate_limit_says_how_long_to_wait(web: WebServer) -> None:
    web.put("/search", WebAnswer.json({}, status=429, headers={"retry-after": "30"}))
    with pytest.raises(ToolServiceError, match=r"HTTP 429: \{\} \(try again in 30 s\)") as caught:
        ask(f"{web.url}/search", config={"max_retries": 5})
    assert caught.value.code == "429"
    assert len(web.requests) == 1  # nobody waits that long for a tool


@pytest.mark.parametrize(("wait_s", "attempts"), [("0", 3), ("5.5", 1)])
def test_a_service_is_asked_again_as_often_as_configured_unless_it_asks_for_a_long_pause(
    web: WebServer, wait_s: str, attempts: int
) -> None:
    web.put("/search", WebAnswer(b"busy", {"retry-after": wait_s}, 503))
    with pytest.raises(ToolServiceError, match="HTTP 503: busy"):
        ask(f"{web.url}/search", config={"max_retries": 2})
    assert len(web.requests) == attempts


def test_a_refusal_for_another_reason_is_not_explained_by_the_key_rule(web: WebServer) -> None:
    place = Place(open=True, refusing="allow json")
    for status, said in [
        (401, "allow json"),
        (429, "wait, or send fewer requests at once"),
        (404, "check the setting url"),
    ]:
        web.put("/search", WebAnswer(status=status))
        with pytest.raises(ToolServiceError, match=rf"HTTP {status}: no reason given \({said}\)"):
            ask(f"{web.url}/search", place=place, key=None)


def test_a_service_has_these_settings_by_default() -> None:
    config = ServiceConfig()
    assert (config.url, config.api_key, config.request_timeout, config.max_retries) == (None, None, 20, 2)
    for odd in ({"request_timeout": 0}, {"max_retries": -1}, {"max_retries": 101}):
        with pytest.raises((ConfigError, ValueError)):
            ServiceConfig.model_validate(odd)


def test_the_longest_answer_is_read(web: WebServer) -> None:
    body = b'{"said": "hello"}'
    web.put("/search", WebAnswer(body + b" " * (MAX_BYTES - len(body))))
    assert ask(f"{web.url}/search") == "hello"
    web.put("/search", WebAnswer(body + b" " * (MAX_BYTES - len(body) + 1)))
    with pytest.raises(ToolServiceError, match="sent more than 5,000,000 bytes"):
        ask(f"{web.url}/search")


def test_a_closed_service_looks_up_its_key_again(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_URL", f"{web.url}/search")
    service = JSONService("search (acme)", PLACE, ServiceConfig(), settings=lambda: default_host().settings)

    async def ask_twice() -> None:
        for key in ("old", "new"):
            monkeypatch.setenv("ACME_KEY", key)
            await service.ask(lambda wire: wire)
            await service.ask(lambda wire: wire)
            await service.aclose()

    asyncio.run(ask_twice())
    assert [request.headers["x-acme"] for request in web.requests] == ["old", "old", "new", "new"]
    assert {request.headers["accept"] for request in web.requests} == {"application/json"}


def test_what_may_help_is_tried_again(web: WebServer) -> None:
    answers = [WebAnswer(b"busy", {"retry-after": "0"}, 503), HELLO]
    web.put("/search", lambda _: answers.pop(0))
    assert ask(f"{web.url}/search", config={"max_retries": 1}) == "hello"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<!doctype html><p>Log in", "an HTML page that is not this service's JSON: check the setting url"),
        (b'{"said": ', "something that is not this service's JSON"),
        (b"", "something that is not"),
        (b"[" * 100_000, "something that is not"),
        (b'{"other": 1}', "something that is not"),
        (b'"text"', "something that is not"),
        (b"\x1f\x8b\x08packed", "something that is not"),
    ],
)
def test_an_answer_of_another_form_is_named(web: WebServer, body: bytes, said: str) -> None:
    web.put("/search", WebAnswer(body))
    with pytest.raises(ToolServiceError, match=said):
        ask(f"{web.url}/search", config={"max_retries": 9})
    assert len(web.requests) == 1  # it would be the same again


def test_a_refusal_in_an_answer_is_one(web: WebServer) -> None:
    def read(wire: Any) -> str:
        raise RefusalInAnswerError(f"INVALID_USER_KEY {KEY} {wire['said']}")

    with pytest.raises(ToolServiceError, match=r"INVALID_USER_KEY \[key\] hello"):
        ask(f"{web.url}/search", read=read, config={"max_retries": 2})
    assert len(web.requests) == 1


@pytest.mark.parametrize("error_class", [AttributeError, KeyError, IndexError, TypeError, ValueError])
def test_whatever_a_reader_misses_in_an_answer_is_its_other_form(web: WebServer, error_class: type[Exception]) -> None:
    def read(wire: Any) -> str:
        raise error_class("odd")

    with pytest.raises(ToolServiceError, match="something that is not this service's JSON"):
        ask(f"{web.url}/search", read=read)


def test_an_answer_without_end_is_left(web: WebServer) -> None:
    web.put("/search", WebAnswer(b" " * 1_000_000, ending="never"))
    with pytest.raises(ToolServiceError, match="sent more than 5,000,000 bytes"):
        ask(f"{web.url}/search")


def test_a_service_that_sends_a_byte_now_and_then_is_left(web: WebServer) -> None:
    web.put("/search", WebAnswer(ending="drip"))
    with pytest.raises(ToolServiceError, match=r"no complete response within 0.3 s: try again later"):
        ask(f"{web.url}/search", config={"request_timeout": 0.3, "max_retries": 9})
    assert len(web.requests) <= 1  # the server may not even have begun


def test_a_service_that_is_not_there_is_named() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, and nothing listens
        with pytest.raises(ToolServiceError, match=r"http://127.0.0.1:\d+ cannot be reached"):
            ask(f"http://127.0.0.1:{nobody.getsockname()[1]}/search")
