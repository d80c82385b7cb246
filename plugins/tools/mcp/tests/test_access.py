"""Access to a server by headers and by OAuth: against a server on loopback that gives tokens and wants them."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl, SecretStr

from jackfield.errors import ToolServiceError
from jackfield.secrets import Secrets
from jackfield_mcp import access
from jackfield_mcp.access import KeptTokens
from jackfield_mcp.servers import OAuth
from jackfield_mcp.session import ServerEndedError
from jackfield_mcp.toolset import MCPServers

from .conftest import call

TOKEN = "token-that-nobody-may-see"
SECRET = "secret-that-nobody-may-see"
LISTED = {"tools": [{"name": "whoami", "inputSchema": {"type": "object", "properties": {}}}]}


class Guarded(ThreadingHTTPServer):
    """A server of MCP and of tokens.

    Attributes:
        asked: The paths that were asked for.
        wanted: What the Authorization header must be.
        denies: Whether the person in the browser says no.
        text: The result of a call.
        media_type: As what answers are sent.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.asked: list[str] = []
        self.wanted = f"Bearer {TOKEN}"
        self.denies = False
        self.text = "you are let in"
        self.media_type = "application/json"


class _Handler(BaseHTTPRequestHandler):
    server: Guarded
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = urlsplit(self.path)
        self.server.asked.append(path.path)
        if path.path.startswith("/.well-known/oauth-protected-resource"):
            self._json({"resource": f"{self.server.url}/mcp", "authorization_servers": [self.server.url]})
        elif path.path.startswith("/.well-known/oauth-authorization-server"):
            self._json(
                {
                    "issuer": self.server.url,
                    "authorization_endpoint": f"{self.server.url}/authorize",
                    "token_endpoint": f"{self.server.url}/token",
                    "registration_endpoint": f"{self.server.url}/register",
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
                }
            )
        elif path.path == "/authorize":
            query = {name: values[0] for name, values in parse_qs(path.query).items()}
            said = {"error": "access_denied"} if self.server.denies else {"code": "c0de"}
            back = urlencode({**said, "state": query["state"]})
            self._answer(302, headers={"Location": f"{query['redirect_uri']}?{back}"})
        else:
            self._answer(405)

    def do_POST(self) -> None:
        self.server.asked.append(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/register":
            self._json({**json.loads(body), "client_id": "me", "token_endpoint_auth_method": "none"}, status=201)
        elif self.path == "/token":
            self._json({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600})
        elif self.headers.get("Authorization") != self.server.wanted:
            where = f'Bearer resource_metadata="{self.server.url}/.well-known/oauth-protected-resource"'
            self._answer(401, headers={"WWW-Authenticate": where})
        else:
            self._of_mcp(json.loads(body))

    def do_DELETE(self) -> None:
        self._answer(405)

    def _of_mcp(self, message: dict[str, Any]) -> None:
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "guarded", "version": "1"},
            },
            "tools/list": LISTED,
            "tools/call": {"content": [{"type": "text", "text": self.server.text}]},
        }
        if "id" not in message:
            self._answer(202)
        elif message["method"] in results:
            result = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]})
            text = result if self.server.media_type == "application/json" else f"event: message\ndata: {result}\n\n"
            self._answer(200, text.encode(), {"Content-Type": self.server.media_type})
        else:
            self._json({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "not found"}})

    def _json(self, value: Any, status: int = 200) -> None:
        self._answer(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _answer(self, status: int, body: bytes = b"", headers: Any = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: what was asked is in `asked`."""


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    with Guarded() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where tokens are kept."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "jackfield" / "mcp"


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A browser with a person in it: the addresses that it was sent to."""
    opened: list[str] = []

    def visit(url: str) -> bool:
        opened.append(url)
        threading.Thread(target=lambda: urllib.request.urlopen(url).read(), daemon=True).start()
        return True

    monkeypatch.setattr(webbrowser, "open", visit)
    return opened


def servers(guarded: Guarded, tmp_path: Path, **settings: Any) -> MCPServers:
    entry = {"url": f"{guarded.url}/mcp", "type": "http", **settings}
    return MCPServers(mcpServers={"guarded": entry}, cache_folder=str(tmp_path / "kept"))


def test_headers_let_in_and_a_wrong_one_is_refused_without_being_shown(guarded: Guarded, tmp_path: Path) -> None:
    with servers(guarded, tmp_path, headers={"Authorization": f"Bearer {TOKEN}"}) as right:
        assert call(right, "guarded-whoami").content == "you are let in"
    wrong = servers(guarded, tmp_path, headers={"Authorization": "Bearer wrong-token"})
    with wrong, pytest.raises(ServerEndedError, match=r"'guarded' cannot be used: it returned HTTP 401") as error:
        call(wrong, "guarded-whoami")
    assert "wrong-token" not in str(error.value)


@pytest.mark.parametrize("media_type", ["application/json", "text/event-stream"])
def test_an_answer_that_is_too_large_is_an_error_that_says_so(
    guarded: Guarded, tmp_path: Path, media_type: str
) -> None:
    guarded.media_type = media_type
    guarded.text = "x" * 200_000
    settings = {"headers": {"Authorization": f"Bearer {TOKEN}"}, "max_message_bytes": 100_000}
    with servers(guarded, tmp_path, **settings) as one:
        with pytest.raises(ToolServiceError, match="100000 byte"):
            call(one, "guarded-whoami")
        guarded.text = "short"
        assert call(one, "guarded-whoami").content == "short"


def test_a_browser_is_opened_once_and_the_token_is_kept_for_the_user(
    guarded: Guarded, tmp_path: Path, state: Path, browser: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for _ in range(2):
        with servers(guarded, tmp_path, oauth=True) as one:
            assert call(one, "guarded-whoami").content == "you are let in"
    assert len(browser) == 1
    assert "code_challenge_method=S256" in browser[0]
    assert guarded.asked.count("/token") == 1
    (kept,) = state.iterdir()
    assert TOKEN in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    ours = "".join(record.getMessage() for record in caplog.records if record.name.startswith("jackfield"))
    assert TOKEN not in ours


def test_a_client_that_is_registered_comes_back_to_its_address(
    guarded: Guarded, tmp_path: Path, browser: list[str]
) -> None:
    with servers(guarded, tmp_path, oauth=True) as one:
        call(one, "guarded-whoami")
    kept = KeptTokens(f"{guarded.url}/mcp", OAuth())
    assert parse_qs(urlsplit(browser[0]).query)["redirect_uri"] == [f"http://127.0.0.1:{kept.port()}/callback"]
    kept.path.write_text("damaged")
    assert kept.port() == 0


def test_who_refuses_in_the_browser_gets_no_access_and_keeps_nothing(
    guarded: Guarded, tmp_path: Path, state: Path, browser: list[str]
) -> None:
    guarded.denies = True
    with servers(guarded, tmp_path, oauth=True) as one, pytest.raises(ToolServiceError, match="access_denied"):
        call(one, "guarded-whoami")
    assert len(browser) == 1
    assert not any("tokens" in json.loads(path.read_text()) for path in state.iterdir())


def test_nobody_in_front_of_a_browser_is_waited_for_as_long_as_said(
    guarded: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _: True)
    with servers(guarded, tmp_path, oauth={"timeout_s": 0.1}) as one, pytest.raises(ToolServiceError) as error:
        call(one, "guarded-whoami")
    assert "login to MCP server 'guarded' timed out after 0.1 s" in str(error.value)


def test_a_program_gets_access_with_its_own_secret(guarded: Guarded, tmp_path: Path, browser: list[str]) -> None:
    oauth = {"grant": "client_credentials", "client_id": "robot", "client_secret": SECRET, "issuer": guarded.url}
    with servers(guarded, tmp_path, oauth=oauth) as one:
        assert call(one, "guarded-whoami").content == "you are let in"
        assert SECRET not in repr((one, one.cfg, one.config, one.fixed_tools()[0].server))  # type: ignore[union-attr]
    assert browser == []
    assert guarded.asked.count("/token") == 1


def test_a_secret_goes_to_its_issuer_only(guarded: Guarded, tmp_path: Path) -> None:
    oauth = {"grant": "client_credentials", "client_id": "robot", "client_secret": SECRET}
    with servers(guarded, tmp_path, oauth={**oauth, "issuer": "https://tokens.example.com"}) as one:  # noqa: SIM117
        with pytest.raises(ToolServiceError, match="'guarded'"):
            call(one, "guarded-whoami")
    assert "/token" not in guarded.asked


# --- the callback and what is kept ---


@pytest.mark.parametrize(
    ("line", "query"),
    [
        (b"GET /callback?code=a&state=b HTTP/1.1\r\n", {"code": ["a"], "state": ["b"]}),
        (b"GET /callback?error=x HTTP/1.1\r\n", {"error": ["x"]}),
        (b"GET /callback HTTP/1.1\r\n", {}),
        (b"GET /other?code=a HTTP/1.1\r\n", {}),
        (b"GET /?x=/callback&code=a HTTP/1.1\r\n", {}),
        (b"POST /callback?code=a HTTP/1.1\r\n", {}),
        (b"GET /callback?code=a\r\n", {}),
        (b"", {}),
    ],
)
def test_only_a_request_for_the_callback_is_one(line: bytes, query: dict[str, list[str]]) -> None:
    assert access._query_of(line) == query


def test_a_browser_that_asks_for_something_else_first_is_answered_and_waited_for() -> None:
    async def run() -> Any:
        browser = access._Browser("s", OAuth(), 0)
        await browser.open("https://login.example/")
        pages = [
            await asyncio.to_thread(_get, f"{browser.address.rpartition('/')[0]}{path}")
            for path in ("/favicon.ico", "/callback?code=c0de&state=s&iss=i", "/callback?code=late")
        ]
        found = await browser.answer()
        assert browser._server is not None
        assert not browser._server.is_serving()
        return pages, (found.code, found.state, found.iss)

    assert asyncio.run(run()) == ([404, 200, 200], ("c0de", "s", "i"))


def _get(url: str) -> int:
    try:
        return int(urllib.request.urlopen(url).status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("error=no&error_description=not+today", "not today"),
        ("error=no", "no"),
        ("state=s", "no authorization code received"),
    ],
)
def test_a_refusal_in_the_browser_is_said_with_its_reason(query: str, reason: str) -> None:
    async def run() -> None:
        browser = access._Browser("s", OAuth(), 0)
        await browser.open("https://login.example/")
        await asyncio.to_thread(_get, f"{browser.address}?{query}")
        await browser.answer()

    with pytest.raises(ToolServiceError, match=f"^MCP server 's' denied access: {reason}$"):
        asyncio.run(run())


def test_a_port_that_is_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ToolServiceError, match=f"port {port} is in use; set a different 'port'"):
            asyncio.run(access._Browser("s", OAuth(), port).open("https://login.example/"))


@pytest.fixture(autouse=True)
def _no_real_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _: True)


def test_tokens_are_kept_apart_for_each_server_client_and_scope(tmp_path: Path) -> None:
    stores = [
        KeptTokens(url, oauth, tmp_path)
        for url, oauth in (
            ("https://a", OAuth()), ("https://b", OAuth()), ("https://a", OAuth(client_id="c")),
            ("https://a", OAuth(scope="read")),
            ("https://a", OAuth(grant="client_credentials", client_id="c", client_secret=SecretStr("s"), issuer="i")),
        )
    ]  # fmt: skip
    assert len({store.path for store in stores}) == len(stores)
    assert KeptTokens("https://a", OAuth(), tmp_path).path == stores[0].path


def test_tokens_and_the_client_are_kept_beside_each_other(tmp_path: Path) -> None:
    async def run() -> None:
        store = KeptTokens("https://a", OAuth(), tmp_path / "new")
        assert (await store.get_tokens(), await store.get_client_info(), store.port()) == (None, None, 0)
        await store.set_tokens(OAuthToken(access_token=TOKEN))
        client = OAuthClientInformationFull(client_id="me", redirect_uris=[AnyUrl("http://127.0.0.1:4711/callback")])
        await store.set_client_info(client)
        again = KeptTokens("https://a", OAuth(), tmp_path / "new")
        tokens, kept = await again.get_tokens(), await again.get_client_info()
        assert tokens is not None
        assert kept is not None
        assert (tokens.access_token, kept.client_id, again.port()) == (TOKEN, "me", 4711)
        again.path.write_text(json.dumps({"tokens": {"access_token": 5}, "client": []}))
        assert (await again.get_tokens(), await again.get_client_info(), again.port()) == (None, None, 0)
        again.path.write_text("[]")
        assert await again.get_tokens() is None

    asyncio.run(run())


def test_a_client_of_the_settings_needs_no_registration(tmp_path: Path) -> None:
    async def run() -> Any:
        oauth = OAuth(client_id="me", client_secret=SecretStr(SECRET))
        return await KeptTokens("https://a", oauth, tmp_path).get_client_info()

    client = asyncio.run(run())
    assert (client.client_id, client.client_secret) == ("me", SECRET)


def test_tokens_of_a_server_are_hidden_by_every_writer(tmp_path: Path) -> None:
    # Words, because what looks random is hidden unasked.
    secrets = [f"correct-{animal}-battery-staple" for animal in ("horse", "sheep", "goose", "camel")]
    client_secret = "correct-donkey-battery-staple"
    assert secrets[0] in Secrets().hide(" ".join(secrets))

    async def run() -> None:
        await KeptTokens("https://a", OAuth(), tmp_path).set_tokens(
            OAuthToken(access_token=secrets[0], refresh_token=secrets[1])
        )
        earlier = KeptTokens("https://b", OAuth(), tmp_path)  # of another process
        tokens = {"access_token": secrets[2], "refresh_token": secrets[3], "token_type": "Bearer"}
        earlier.path.write_text(json.dumps({"tokens": tokens}))
        await earlier.get_tokens()
        await earlier.set_client_info(
            OAuthClientInformationFull(client_id="me", client_secret=client_secret, redirect_uris=None)
        )

    asyncio.run(run())
    hidden = Secrets().hide(" ".join([*secrets, client_secret]))
    assert not any(secret in hidden for secret in [*secrets, client_secret])


def test_after_a_login_nothing_listens_any_more() -> None:
    async def run() -> bool:
        browser = access._Browser("s", OAuth(timeout_s=0.01), 0)
        await browser.open("https://login.example/")
        assert browser._server is not None
        assert browser._server.is_serving()
        with pytest.raises(ToolServiceError, match="timed out"):
            await browser.answer()
        return browser._server.is_serving()

    assert not asyncio.run(run())
