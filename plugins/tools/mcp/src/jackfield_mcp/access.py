"""Authorise requests to a server with OAuth, using stored tokens or a login in the user's browser."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import socket
import webbrowser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, ValidationError

from jackfield import sync
from jackfield.errors import ToolServiceError
from jackfield.privatefiles import write_private
from jackfield.secrets import learn_secret
from jackfield_mcp.servers import OAuth, ServerConfig

_log = logging.getLogger(__name__)

_PAGE = b"<!doctype html><title>Done</title><p>You can close this page and go back to the program."
_HEAD = b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
_MOST_LINE = 8192


def auth_of(name: str, server: ServerConfig) -> httpx2.Auth:
    """Return the OAuth authorisation for a server. Missing tokens are requested on demand."""
    oauth = server.oauth
    assert oauth is not None  # noqa: S101 - it is asked for only then
    saved = KeptTokens(server.url, oauth)
    if oauth.grant == "client_credentials":
        assert oauth.client_secret is not None  # noqa: S101 - checked with the configuration
        return ClientCredentialsOAuthProvider(
            server.url,
            saved,
            client_id=oauth.client_id,
            client_secret=oauth.client_secret.get_secret_value(),
            scope=oauth.scope,
            issuer=oauth.issuer,
        )
    browser = _Browser(name, oauth, oauth.port or saved.port())
    return OAuthClientProvider(
        server.url,
        OAuthClientMetadata(
            client_name="Jackfield",
            redirect_uris=[AnyUrl(browser.address)],
            grant_types=["authorization_code", "refresh_token"],
            scope=oauth.scope,
        ),
        saved,
        redirect_handler=browser.open,
        callback_handler=browser.answer,
    )


class KeptTokens:
    """OAuth tokens for a server, stored in a file that only the current user may read.

    Implements the SDK's token storage protocol.
    """

    def __init__(self, url: str, oauth: OAuth, folder: Path | None = None) -> None:
        self._oauth = oauth
        named = hashlib.sha256(json.dumps([url, oauth.client_id, oauth.grant, oauth.scope]).encode()).hexdigest()
        self.path = (folder or _state_folder()) / f"{named[:40]}.json"

    async def get_tokens(self) -> OAuthToken | None:
        """Return the stored tokens, or None if there are none."""
        value: OAuthToken | None = await self._get("tokens", OAuthToken)
        _learn(value)
        return value

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store tokens."""
        _learn(tokens)
        await sync.in_worker(self._set, "tokens", tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the stored client registration, or else the client from the settings, or None."""
        saved: OAuthClientInformationFull | None = await self._get("client", OAuthClientInformationFull)
        if saved is None and self._oauth.client_id:
            secret = self._oauth.client_secret
            return OAuthClientInformationFull(
                client_id=self._oauth.client_id,
                client_secret=secret.get_secret_value() if secret else None,
                redirect_uris=None,
            )
        return saved

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store a client registration."""
        learn_secret("mcp.client_secret", client_info.client_secret)
        await sync.in_worker(self._set, "client", client_info)

    def port(self) -> int:
        """Return the callback port of the registered client, or 0 if there is none."""
        try:
            return urlsplit(self._read()["client"]["redirect_uris"][0]).port or 0
        except (LookupError, TypeError, ValueError):
            return 0

    async def _get(self, key: str, form: type[Any]) -> Any:
        value = (await sync.in_worker(self._read)).get(key)
        try:
            return None if value is None else form.model_validate(value)
        except ValidationError:
            return None

    def _set(self, key: str, value: Any) -> None:
        saved = {**self._read(), key: value.model_dump(mode="json", exclude_none=True)}
        write_private(self.path, json.dumps(saved))

    def _read(self) -> dict[str, Any]:
        try:
            saved = json.loads(self.path.read_bytes())
        except (OSError, ValueError):
            return {}
        return saved if isinstance(saved, dict) else {}


def _learn(tokens: OAuthToken | None) -> None:
    """Register the tokens as secrets, so they are redacted in all output."""
    if tokens is not None:
        learn_secret("mcp.access_token", tokens.access_token)
        learn_secret("mcp.refresh_token", tokens.refresh_token)


class _Browser:
    """Logs the user in through a browser, with a callback server on localhost."""

    def __init__(self, name: str, oauth: OAuth, port: int) -> None:
        self._name = name
        self._timeout_s = oauth.timeout_s
        self._port = port or _free_port()
        self._came: asyncio.Future[dict[str, list[str]]] | None = None
        self._server: asyncio.Server | None = None
        self.address = f"http://127.0.0.1:{self._port}/callback"

    async def open(self, url: str) -> None:
        """Start the callback server, and open the login page in a browser.

        Raises:
            ToolServiceError: The callback port is in use.
        """
        try:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, limit=_MOST_LINE)
        except OSError as error:
            raise ToolServiceError(
                f"login to MCP server {self._name!r} failed: port {self._port} is in use; set a different 'port'"
            ) from error
        self._came = asyncio.get_running_loop().create_future()
        _log.warning("MCP server %r wants you to log in: %s", self._name, url)
        await sync.in_worker(webbrowser.open, url)

    async def answer(self) -> AuthorizationCodeResult:
        """Wait for the callback, and return the authorisation code.

        Raises:
            ToolServiceError: The login timed out, or the server denied access.
        """
        assert self._came is not None  # noqa: S101 - set by `open`
        assert self._server is not None  # noqa: S101 - likewise
        try:
            async with asyncio.timeout(self._timeout_s):
                query = await self._came
        except TimeoutError:
            raise ToolServiceError(
                f"login to MCP server {self._name!r} timed out after {self._timeout_s:g} s"
            ) from None
        finally:
            self._server.close()
        if "code" not in query:
            reason = (query.get("error_description") or query.get("error") or ["no authorization code received"])[0]
            raise ToolServiceError(f"MCP server {self._name!r} denied access: {reason[:200]}")
        return AuthorizationCodeResult(
            code=query["code"][0],
            state=next(iter(query.get("state", ())), None),
            iss=next(iter(query.get("iss", ())), None),
        )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            query = _query_of(await reader.readline())
            writer.write(_HEAD % (b"200 OK" if query else b"404 Not Found", len(_PAGE)) + _PAGE)
            await writer.drain()
        finally:
            writer.close()
        if query and self._came is not None and not self._came.done():
            self._came.set_result(query)


def _query_of(line: bytes) -> dict[str, list[str]]:
    """Return the query parameters of a callback request, or {} for any other request."""
    parts = line.decode("latin-1").split(" ")
    target = urlsplit(parts[1]) if len(parts) == 3 and parts[0] == "GET" else urlsplit("")
    return parse_qs(target.query) if target.path == "/callback" else {}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _state_folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state").absolute() / "jackfield" / "mcp"
