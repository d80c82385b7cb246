"""Access to a server by headers and by OAuth: against a server on loopback that gives tokens and wants them."""

from __future__ import annotations

import json
import logging
import threading
import urllib.request
import webbrowser
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from jackfield.errors import ToolServiceError
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
    with wrong, pytest.raises(ServerEndedError, match=r"'guarded' cannot be used: it answered HTTP 401") as error:
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
