"""Implement the WebSocket of the Responses API, where each client message starts a response."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import MutableMapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from jackfield.servers import RequestRefusedError, owner_of, read_object, refusal_of, write_json
from jackfield.streams import closing
from jackfield_openai_server.errors import ParameterError, error_object, refuse_parameter
from jackfield_openai_server.responses import Responses

_log = logging.getLogger(__name__)
_HTTP_FIELDS = ("stream", "stream_options", "background")


class ResponseSocket:
    """WebSocket endpoint that answers one request at a time. A disconnect cancels the current response.

    Args:
        responses: The Responses API.
    """

    def __init__(self, responses: Responses) -> None:
        self._responses = responses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one client."""
        socket = WebSocket(scope, receive, send)
        await socket.accept()
        unsaved: list[str] = []  # deleted when the connection ends; later responses may continue them
        following = asyncio.ensure_future(socket.receive())
        try:
            while (message := await following)["type"] != "websocket.disconnect":
                following = asyncio.ensure_future(socket.receive())
                turn = asyncio.ensure_future(self._answer(socket, message, unsaved))
                await asyncio.wait([turn, following], return_when=asyncio.FIRST_COMPLETED)
                if following.done() and following.result()["type"] == "websocket.disconnect":
                    turn.cancel()
                await asyncio.gather(turn, return_exceptions=True)
        finally:
            following.cancel()
            await asyncio.shield(self._responses.forget(unsaved, owner_of(scope)))

    async def _answer(self, socket: WebSocket, message: MutableMapping[str, Any], unsaved: list[str]) -> None:
        owner = owner_of(socket.scope)
        try:
            table = _read_event(message)
            async with closing(self._responses.follow_new(table, owner, unsaved)) as events:
                async for event in events:
                    await socket.send_text(write_json(event).decode())
        except Exception as error:  # noqa: BLE001 - reported to the client
            refusal = refusal_of(error)
            if refusal.code == "internal":
                _log.exception("a response over a WebSocket failed")
            param = error.param if isinstance(error, ParameterError) else None
            envelope = {"type": "error", "status": refusal.status, "error": error_object(refusal, param)}
            await socket.send_text(write_json(envelope).decode())


async def refuse_plain_request(_: Request) -> Response:
    """Refuse a plain HTTP request to the WebSocket's path, or any request if WebSocket support is missing."""
    raise RequestRefusedError(
        "responses cannot be listed: GET /v1/responses opens a WebSocket. If this was a WebSocket request, the server "
        "does not support WebSockets. To add support, run: pip install 'jackfield-openai-server[websocket]'",
        status=404,
        code="unsupported_endpoint",
    )


def _read_event(message: MutableMapping[str, Any]) -> dict[str, Any]:
    """Parse a client message.

    Raises:
        RequestRefusedError: The message is not JSON.
        ParameterError: The event has another type, or a parameter that only HTTP requests accept.
    """
    text = message.get("text")
    table = read_object(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else message.get("bytes") or b"")
    if table.pop("type", None) != "response.create":
        raise ParameterError("The event type must be 'response.create'.", param="type")
    for name in _HTTP_FIELDS:
        if name in table:
            refuse_parameter(name, "must be omitted over a WebSocket, where all events are sent")
    return table
