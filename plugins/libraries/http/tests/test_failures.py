"""Failures of the network and statuses become errors that say what to do."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpcore2
import pytest

from jackfield.errors import (
    ContentFilterError,
    ContextLengthError,
    ModelAuthError,
    ModelConnectionError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelRequestError,
    ModelResponseError,
    ModelServiceError,
    ModelTimeoutError,
    RateLimitedError,
)
from jackfield.quoting import SentSecrets
from jackfield_http import Failures, HTTPClient, class_of_status, request_id_of, translate_errors
from jackfield_http.keys import FoundKey
from jackfield_http.server import Opened, Server
from jackfield_http.sse import NoEventError, StreamTooLongError
from jackfield_http.transport import NoAnswerError

ADDRESS = "http://h:1"


def translated(error: Exception, **options: Any) -> ModelServiceError:
    with pytest.raises(ModelServiceError) as caught, translate_errors("acme", ADDRESS, timeout_s=2.5, **options):
        raise error
    assert caught.value.backend == "acme"
    return caught.value


@pytest.mark.parametrize(
    ("error", "error_class", "text"),
    [
        (
            httpcore2.ReadTimeout(),
            ModelTimeoutError,
            "acme: http://h:1 was silent for 2.5 s: raise request_timeout, or try again",
        ),
        (
            httpcore2.ReadTimeout("did not finish its response in 25 s"),
            ModelTimeoutError,
            "acme: http://h:1 did not finish its response in 25 s: raise request_timeout, or try again",
        ),
        (
            NoEventError(60),
            ModelTimeoutError,
            "acme: http://h:1 sent nothing but comments for 60 s: raise event_timeout, or try again",
        ),
        (
            StreamTooLongError("a line", 1000),
            ModelResponseError,
            "acme: http://h:1 sent a line of more than 1,000 bytes: request less at once, and check that this is the "
            "right server",
        ),
        *(
            (
                error,
                ModelConnectionError,
                f"acme: http://h:1 cannot be reached ({reason}): check the URL (base_url), the network, and that "
                "the server is running",
            )
            for error, reason in [
                (httpcore2.ConnectError("refused"), "refused"),
                (httpcore2.ConnectTimeout(), "ConnectTimeout"),
                (httpcore2.ProxyError("407 Authenticate"), "407 Authenticate"),
            ]
        ),
        (
            httpcore2.LocalProtocolError("Illegal header value b'secret'"),
            ModelRequestError,
            "acme: a header cannot be sent: check extra_headers, and the settings that become headers",
        ),
        *(
            (error, ModelConnectionError, f"acme: the connection to http://h:1 broke ({reason}): try again")
            for error, reason in [
                (httpcore2.ReadError("reset"), "reset"),
                (httpcore2.WriteError(), "WriteError"),
                (httpcore2.WriteTimeout("late"), "late"),
                (httpcore2.RemoteProtocolError("odd"), "odd"),
                (NoAnswerError("it closed without a response"), "it closed without a response"),
            ]
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_a_failure_of_the_network_says_what_happened_and_what_to_do(
    error: Exception, error_class: type[ModelServiceError], text: str
) -> None:
    failure = translated(error)
    assert type(failure) is error_class
    assert str(failure) == text
    assert (failure.__cause__ is None) == isinstance(error, httpcore2.LocalProtocolError)


def test_other_errors_are_left_as_they_are() -> None:
    with pytest.raises(KeyError), translate_errors("acme", ADDRESS, timeout_s=1):
        raise KeyError("mine")


@pytest.mark.parametrize("error_class", [httpcore2.ConnectError, httpcore2.RemoteProtocolError])
def test_a_reason_is_short_and_without_the_secrets_of_the_request(error_class: type[Exception]) -> None:
    error = translated(error_class("sk-do-not-show " + "x" * 999), secrets=lambda: SentSecrets("sk-do-not-show"))
    assert "[key] xxx" in str(error)
    assert len(str(error)) < 400


@pytest.mark.parametrize(
    ("status", "error_class"),
    [
        (302, ModelRequestError),
        (400, ModelRequestError),
        (401, ModelAuthError),
        (402, ModelAuthError),
        (403, ModelAuthError),
        (404, ModelNotFoundError),
        (408, ModelOverloadedError),
        (409, ModelOverloadedError),
        (413, ContextLengthError),
        (422, ModelRequestError),
        (425, ModelOverloadedError),
        (429, RateLimitedError),
        (499, ModelRequestError),
        (500, ModelOverloadedError),
        (503, ModelOverloadedError),
        (529, ModelOverloadedError),
    ],
)
def test_a_status_has_an_error_of_its_own(status: int, error_class: type[ModelServiceError]) -> None:
    assert class_of_status(status) is error_class


@pytest.mark.parametrize(
    ("error_class", "advice"),
    [
        (ContextLengthError, "shorten the history, or set max_input_tokens"),
        (ContentFilterError, "the provider's filter rejected the content: change the content"),
        (ModelAuthError, "check the API key (api_key, ACME_KEY), its permissions, and the account's quota and balance"),
        (ModelNotFoundError, "check the model's name, and base_url"),
        (RateLimitedError, "wait, or send fewer requests at once"),
        (ModelOverloadedError, "the server failed: try again"),
        (ModelRequestError, "change the request"),
    ],
)
@pytest.mark.parametrize("made", ["refused", "in_answer"])
def test_each_error_has_its_advice_unless_the_backend_knows_better(
    made: str, error_class: type[ModelServiceError], advice: str
) -> None:
    failures = Failures("acme", key=FoundKey(variable="ACME_KEY"))
    make: Callable[..., ModelServiceError] = getattr(failures, made)
    error = make(error_class, "no", status=400)
    assert type(error) is error_class
    assert str(error).endswith(f": no ({advice})")
    assert (error.backend, error.status, error.code, error.request_id) == ("acme", 400, None, None)
    assert str(make(error_class, "no", status=400, advice="ask them")).endswith(": no (ask them)")
    make = getattr(Failures("acme"), made)
    assert str(make(error_class, "no", status=400)).endswith(f": no ({advice.replace(', ACME_KEY', '')})")


def test_a_refusal_without_a_reason_says_its_code_or_that_there_is_none() -> None:
    failures = Failures("acme")
    assert "HTTP 400: E7 (" in str(failures.refused(ModelRequestError, "", status=400, code="E7"))
    assert "HTTP 400: no reason given (" in str(failures.refused(ModelRequestError, " ", status=400))


@pytest.mark.parametrize(("status", "redirects"), [(299, False), (300, True), (399, True), (400, False)])
def test_every_status_from_300_to_399_is_a_redirect_whatever_the_backend_advises(status: int, redirects: bool) -> None:
    error = str(Failures("acme").refused(ModelRequestError, "moved", status=status, advice="mine"))
    expected = "the server redirects (set base_url to its current location)" if redirects else "moved (mine)"
    assert error == f"acme: HTTP {status}: {expected}"


def test_data_that_is_no_answer_is_quoted_in_part() -> None:
    error = Failures("acme").unreadable(b"x" * 5000 + b"end", advice="look there")
    assert type(error) is ModelResponseError
    assert "not part of a response: 'xxx" in str(error)
    assert str(error).endswith("; look there")
    assert len(str(error)) < 200


def test_the_id_of_a_request_has_three_names_of_which_the_providers_own_comes_first() -> None:
    headers = {"apim-request-id": "azure", "x-request-id": "gateway", "request-id": "own"}
    assert request_id_of(headers) == "own"
    assert request_id_of(headers | {"request-id": ""}) == "gateway"
    assert request_id_of({"apim-request-id": "azure"}) == "azure"
    assert request_id_of({}) is None
    failures = Failures("acme", headers=headers)
    assert failures.request_id == "own"
    assert failures.wrong("it broke off").request_id == "own"
    assert failures.wrong("it broke off", request_id="better").request_id == "better"


@pytest.mark.parametrize(
    ("given", "shown"), [("of the body", "of the body"), (None, "of the headers"), ("", "of the headers")]
)
def test_an_error_has_the_id_that_its_answer_names_or_that_of_the_headers(given: str | None, shown: str) -> None:
    failures = Failures("acme", headers={"x-request-id": "of the headers"})
    errors = [
        failures.refused(ModelRequestError, "no", status=400, request_id=given),
        failures.in_answer(ModelRequestError, "no", request_id=given),
        failures.wrong("it ended", request_id=given),
    ]
    assert [error.request_id for error in errors] == [shown] * 3


@pytest.mark.parametrize("where", ["key", "headers", "extra"])
def test_no_secret_of_a_server_or_a_user_is_shown_whichever_way_it_is_sent(where: str) -> None:
    secret = "acme-7Q9zXw4Rk2Lp8Xk"
    headers = {"authorization": f"Bearer {secret}"}
    server = Server("http://h:1", headers if where == "headers" else {}, FoundKey(secret if where == "key" else ""))
    opened = Opened.at(server, HTTPClient("http://h:1", backend="acme"))
    failures = opened.failures("acme", {}, extra=headers if where == "extra" else {})
    assert secret not in str(failures.refused(ModelRequestError, f"no access with {secret}", status=400))


@pytest.mark.parametrize(
    "last_line", ["sync.run(ask())", "import asyncio; asyncio.run(ask())"], ids=["blocking call", "own event loop"]
)
def test_a_script_with_the_name_of_a_part_of_the_http_stack_is_told_to_take_another(
    last_line: str, tmp_path: Path
) -> None:
    script = tmp_path / "hpack.py"
    program = f"""
        from jackfield import sync
        from jackfield_http import HTTPClient

        async def ask():
            client = HTTPClient("http://127.0.0.1:9", backend="test")
            async with client.request("GET", "http://127.0.0.1:9/", b"", [], timeout_s=1):
                pass

        {last_line}
    """
    script.write_text(textwrap.dedent(program), encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "hpack.py instead of the package 'hpack'" in last
    assert last.endswith(": rename the file")
