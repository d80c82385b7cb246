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
from jackfield_http.service import JSONService, Place, RefusalInAnswerError, ServiceConfig
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
    assert ask(f"{web.url}/search", place=Place(open=True), key=None, query={"q": "x"}) == "hello"
    assert not {"authorization", "x-acme"} & web.requests[0].headers.keys()


def test_a_key_is_needed_and_one_of_the_environment_goes_to_its_provider_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingSecretError, match="needs an API key: set the environment variable ACME_KEY"):
        ask(None, key=None)
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
    with pytest.raises(ConfigError, match="takes no API key: leave api_key out"):
        ask(None, place=Place(open=True))


def test_a_service_of_ones_own_needs_its_address() -> None:
    with pytest.raises(ToolServiceError, match="it needs an address: set url"):
        ask(None, place=Place(open=True), key=None)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b'{"message": "Unauthorized."}', "Unauthorized. (check the API key (api_key, ACME_KEY)"),
        (403, b'{"error": {"detail": "no plan"}}', "no plan (check the API key"),
        (403, b"<html>" + b"x" * 9000, "HTTP 403: no reason given (check the API key"),
        (404, b"", "(check the setting url)"),
        (302, b"", "the server redirects: check the setting url"),
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


def test_what_may_help_is_tried_again(web: WebServer) -> None:
    answers = [WebAnswer(b"busy", {"retry-after": "0"}, 503), HELLO]
    web.put("/search", lambda _: answers.pop(0))
    assert ask(f"{web.url}/search", config={"max_retries": 1}) == "hello"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<!doctype html><p>Log in", "a page of HTML that is not this service's JSON: check the setting url"),
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
        ask(f"{web.url}/search", read=read)


def test_an_answer_without_end_is_left(web: WebServer) -> None:
    web.put("/search", WebAnswer(b" " * 1_000_000, ending="never"))
    with pytest.raises(ToolServiceError, match="sent more than 5,000,000 bytes"):
        ask(f"{web.url}/search")


def test_a_service_that_sends_a_byte_now_and_then_is_left(web: WebServer) -> None:
    web.put("/search", WebAnswer(ending="drip"))
    with pytest.raises(ToolServiceError, match=r"no whole answer after 0.3 s: try again later"):
        ask(f"{web.url}/search", config={"request_timeout": 0.3, "max_retries": 9})
    assert len(web.requests) <= 1  # the server may not even have begun


def test_a_service_that_is_not_there_is_named() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, and nothing listens
        with pytest.raises(ToolServiceError, match=r"http://127.0.0.1:\d+ cannot be reached"):
            ask(f"http://127.0.0.1:{nobody.getsockname()[1]}/search")
