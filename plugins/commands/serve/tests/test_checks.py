"""The checks of a request before a face sees it."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.servers import RequestRefusedError
from jackfield_serve.checks import Checks
from jackfield_serve.tokens import Tokens

ADA = "ada-Zq83bXw4Rk2LpV7Tn"
OPEN = Checks(max_body_bytes=1000)
CLOSED = Checks(tokens=Tokens([("ada", ADA)]), max_body_bytes=1000)


def scope(*headers: tuple[str, str], host: str | None = "localhost:8000") -> dict[str, Any]:
    listed = [*([("host", host)] if host is not None else []), *headers]
    return {
        "type": "http",
        "path": "/",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in listed],
    }


def code_of(checks: Checks, request: dict[str, Any]) -> str:
    with pytest.raises(RequestRefusedError) as caught:
        checks.admit(request)
    return caught.value.code


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:8000", "[::1]:8000", "[::1]"])
def test_names_of_this_machine_are_served(host: str) -> None:
    assert OPEN.admit(scope(host=host)) == ""


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "", "localhost:80:80", "::1", "localhost, x"]
)
def test_without_tokens_other_names_are_refused(host: str) -> None:
    assert code_of(OPEN, scope(host=host)) == "host_not_allowed"


def test_no_host_and_two_hosts_are_refused() -> None:
    assert code_of(OPEN, scope(host=None)) == "host_not_allowed"
    assert code_of(OPEN, scope(("host", "localhost"))) == "host_not_allowed"


def test_with_a_token_any_name_will_do_unless_names_are_given() -> None:
    token = ("authorization", f"Bearer {ADA}")
    assert CLOSED.admit(scope(token, host="agents.example")) == "ada"
    named = Checks(tokens=CLOSED.tokens, hosts=frozenset({"agents.example"}), max_body_bytes=1)
    assert named.admit(scope(token, host="agents.example:443")) == "ada"
    assert code_of(named, scope(token, host="localhost")) == "host_not_allowed"


@pytest.mark.parametrize("scheme", ["chrome-extension", "moz-extension", "safari-web-extension"])
def test_browser_extensions_are_served_with_a_token_only(scheme: str) -> None:
    origin = ("origin", f"{scheme}://abcdefghijklmnopabcdefghijklmnop")
    assert code_of(OPEN, scope(origin)) == "origin_not_allowed"
    assert code_of(CLOSED, scope(origin)) == "unauthorized"
    assert CLOSED.admit(scope(origin, ("authorization", f"Bearer {ADA}"))) == "ada"
    checks = Checks(owner=lambda request: "of the application", max_body_bytes=1)
    assert checks.admit(scope(origin)) == "of the application"


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:9000", "http://[", ""])
def test_pages_of_other_origins_are_refused(origin: str) -> None:
    assert code_of(OPEN, scope(("origin", origin))) == "origin_not_allowed"
    assert code_of(CLOSED, scope(("origin", origin), ("authorization", f"Bearer {ADA}"))) == "origin_not_allowed"


def test_a_page_of_this_server_is_served() -> None:
    assert OPEN.admit(scope(("origin", "http://localhost:8000"))) == ""
    assert OPEN.admit(scope(("origin", "http://localhost:8000"), host="LocalHost:8000")) == ""


def test_without_a_valid_token_a_request_is_refused() -> None:
    assert code_of(CLOSED, scope()) == "unauthorized"
    assert code_of(CLOSED, scope(("authorization", f"Bearer {ADA}x"))) == "unauthorized"


def test_a_function_may_name_the_owner() -> None:
    checks = Checks(owner=lambda request: request.get("user"), max_body_bytes=1)
    assert checks.admit({**scope(host="any.example"), "user": "ada"}) == "ada"
    assert checks.admit({**scope(), "user": ""}) == "", "only None refuses a request"
    assert code_of(checks, scope()) == "unauthorized"


def test_a_function_takes_precedence_over_tokens() -> None:
    checks = Checks(owner=lambda request: "of the application", tokens=CLOSED.tokens, max_body_bytes=1)
    assert checks.admit(scope(("authorization", f"Bearer {ADA}"))) == "of the application"


def test_a_request_without_an_owner_is_checked_all_the_same() -> None:
    assert CLOSED.admit(scope(), needs_owner=False) == ""
    with pytest.raises(RequestRefusedError):
        CLOSED.admit(scope(("origin", "https://evil.example")), needs_owner=False)
    with pytest.raises(RequestRefusedError):
        OPEN.admit(scope(("content-length", "1001")), needs_owner=False)


def test_many_and_long_headers_are_refused() -> None:
    assert OPEN.admit(scope(*[("x", "y")] * 99)) == ""
    assert code_of(OPEN, scope(*[("x", "y")] * 100)) == "headers_too_large"
    fitting = (32 << 10) - len("hostlocalhost:8000") - 1
    assert OPEN.admit(scope(("x", "y" * fitting))) == ""
    assert code_of(OPEN, scope(("x", "y" * (fitting + 1)))) == "headers_too_large"


def test_names_of_headers_have_no_case() -> None:
    assert CLOSED.admit(scope(("Authorization", f"Bearer {ADA}"), ("HOST", "x.example"), host=None)) == "ada"
    assert code_of(OPEN, scope(("Origin", "https://evil.example"))) == "origin_not_allowed"
    assert OPEN.admit(scope(("HOST", "localhost"), host=None)) == ""
    assert code_of(OPEN, scope(("HOST", "localhost"))) == "host_not_allowed", "two hosts"


@pytest.mark.parametrize(
    ("request_", "status", "says"),
    [
        (scope(host="evil.example"), 421, "this host name is not allowed: start the server with --allow-host"),
        (scope(("origin", "https://evil.example")), 403, "pages from other origins may not use this server"),
        (scope(("origin", "chrome-extension://x")), 403, "start the server with --token-file"),
        (scope(("x", "y" * 40_000)), 431, "too many or too large: send fewer or shorter headers"),
        (scope(("content-length", "1001")), 413, "the request body is larger than 1000 bytes: send a smaller request"),
    ],
    ids=["host", "origin", "extension", "headers", "body"],
)
def test_a_refusal_has_its_status_and_the_next_step(request_: dict[str, Any], status: int, says: str) -> None:
    with pytest.raises(RequestRefusedError, match=says) as caught:
        OPEN.admit(request_)
    assert caught.value.status == status


def test_a_missing_token_is_401() -> None:
    with pytest.raises(RequestRefusedError, match="token: send the header `Authorization: Bearer TOKEN`") as caught:
        CLOSED.admit(scope())
    assert caught.value.status == 401


@pytest.mark.parametrize("length", ["1000", "0", "", "-5", "ten"])
def test_a_body_that_announces_no_more_than_allowed_is_read(length: str) -> None:
    assert OPEN.admit(scope(("content-length", length))) == ""


@pytest.mark.parametrize("length", ["1001", "9" * 5000])
def test_a_body_that_announces_too_much_is_refused(length: str) -> None:
    assert code_of(OPEN, scope(("content-length", length))) == "too_large"


def test_a_large_limit_holds_for_each_of_its_digits() -> None:
    checks = Checks(max_body_bytes=32 << 20)
    assert checks.admit(scope(("content-length", str(32 << 20)))) == ""
    assert code_of(checks, scope(("content-length", str((32 << 20) + 1)))) == "too_large"


async def _bodies(*sizes: int) -> Any:
    for size in sizes:
        yield {"type": "http.request", "body": b"x" * size, "more_body": True}


def test_a_body_that_grows_too_large_is_refused() -> None:
    import asyncio

    async def read() -> int:
        pieces = _bodies(400, 400, 400)
        receive = OPEN.limit_body(lambda: anext(pieces))
        count = 0
        while True:
            await receive()
            count += 1
            assert count < 3

    with pytest.raises(RequestRefusedError) as caught:
        asyncio.run(read())
    assert caught.value.status == 413
