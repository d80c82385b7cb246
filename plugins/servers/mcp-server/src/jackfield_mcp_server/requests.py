"""Validate HTTP requests before the MCP SDK reads them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.requests import Request

from jackfield.servers import ASGIApp, Receive, Scope, Send, owner_of, read_object


class CheckedRequests:
    """Middleware that rejects bodies that are not strict JSON, and that binds each session to the owner who opened it.

    Args:
        handle: The application to wrap.
    """

    def __init__(self, handle: ASGIApp) -> None:
        self._handle = handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            body = await Request(scope, receive).body()
            read_object(body)
            receive = _replay(body, receive)
        owner = owner_of(scope)
        if owner:
            # The SDK answers requests for a session only to the user who opened it.
            scope = {**scope, "user": AuthenticatedUser(AccessToken(token="", client_id=owner, scopes=[]))}
        await self._handle(scope, receive, send)


def _replay(body: bytes, receive: Receive) -> Callable[[], Awaitable[MutableMapping[str, Any]]]:
    is_read = False

    async def replay() -> MutableMapping[str, Any]:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
