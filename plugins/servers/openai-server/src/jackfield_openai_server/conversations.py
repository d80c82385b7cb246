"""Implement the Conversations API, `/v1/conversations`, where a conversation is a session of runs."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from jackfield.errors import RunBusyError
from jackfield.messages import Message
from jackfield.servers import RequestRefusedError, owner_of, read_object, write_json
from jackfield_openai_server.errors import refuse_parameter
from jackfield_openai_server.paging import page_of
from jackfield_openai_server.response_object import input_item
from jackfield_serving import RunInfo, Serving

_ID = re.compile(r"conv_([0-9a-f]{8})([0-9a-f]{16})([0-9a-f]{16})")
_LISTED = 10_000


class Conversations:
    """Request handlers for the Conversations API.

    An id contains its creation time and a checksum of its owner, so a conversation without runs needs no record.

    Args:
        serving: The agents and their runs.
    """

    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    async def create(self, request: Request) -> Response:
        """Create a conversation."""
        body = await request.body()
        table = read_object(body) if body.strip() else {}
        for name, value in table.items():
            if name not in ("items", "metadata"):
                refuse_parameter(name, "unknown parameter", code="unknown_parameter")
            if value:
                refuse_parameter(name, f"not supported here: send {name} with the first response")
        moment, random = f"{int(time.time()):08x}", secrets.token_hex(8)
        identity = f"conv_{moment}{random}{_check_of(moment + random, owner_of(request.scope))}"
        return JSONResponse(_conversation(identity))

    async def retrieve(self, request: Request) -> Response:
        """Return a conversation."""
        identity = self._read_id(request)
        return JSONResponse(_conversation(identity))

    async def delete(self, request: Request) -> Response:
        """Delete a conversation's runs, cancelling those still active."""
        identity, owner = self._read_id(request), owner_of(request.scope)
        for run in await self._serving.runs(owner=owner, session=identity, limit=_LISTED):
            if run.phase != "ended":
                await self._serving.cancel(run.run_id, owner=owner)
                async for _ in self._serving.attach(run.run_id, owner=owner):
                    pass
            try:
                await self._serving.delete(run.run_id, owner=owner)
            except RunBusyError:
                raise RequestRefusedError(
                    "a response in this conversation is still in progress: try again later",
                    status=409,
                    code="conversation_locked",
                ) from None
        return JSONResponse({"id": identity, "object": "conversation.deleted", "deleted": True})

    async def items(self, request: Request) -> Response:
        """Return a page of a conversation's items."""
        identity = self._read_id(request)
        page = page_of(await self._items(identity, owner_of(request.scope)), request.query_params)
        return Response(write_json(page), media_type="application/json")

    async def item(self, request: Request) -> Response:
        """Return one item of a conversation."""
        identity, name = self._read_id(request), request.path_params["item_id"]
        for item in await self._items(identity, owner_of(request.scope)):
            if item["id"] == name:
                return Response(write_json(item), media_type="application/json")
        raise RequestRefusedError("no such item in this conversation", status=404, code="not_found")

    async def last_run(self, identity: str, owner: str) -> RunInfo | None:
        """Return a conversation's latest run, or None if it has no runs.

        Raises:
            RequestRefusedError: The owner has no such conversation.
        """
        _check_id(identity, owner)
        runs = await self._serving.runs(owner=owner, session=identity, limit=1)
        return await self._serving.run(runs[0].run_id, owner=owner) if runs else None

    async def _items(self, identity: str, owner: str) -> list[dict[str, Any]]:
        info = await self.last_run(identity, owner)
        if info is None:
            return []
        messages: list[Message] = [message for message in (*info.messages, *info.response) if message.role != "system"]
        listed = (input_item(message, f"item_{identity[5:]}_{index}") for index, message in enumerate(messages))
        return [item for item in listed if item is not None]

    def _read_id(self, request: Request) -> str:
        identity: str = request.path_params["conversation_id"]
        _check_id(identity, owner_of(request.scope))
        return identity


def _check_id(identity: str, owner: str) -> None:
    match = _ID.fullmatch(identity)
    if match is None or _check_of(match[1] + match[2], owner) != match[3]:
        raise RequestRefusedError(
            f"Conversation with id {identity[:60]!r} not found.", status=404, code="conversation_not_found"
        )


def _check_of(text: str, owner: str) -> str:
    return hashlib.sha256(f"{text} {owner}".encode()).hexdigest()[:16]


def _conversation(identity: str) -> dict[str, Any]:
    return {"id": identity, "object": "conversation", "created_at": int(identity[5:13], 16), "metadata": {}}
