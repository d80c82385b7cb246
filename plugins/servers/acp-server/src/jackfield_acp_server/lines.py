"""Exchange protocol messages over a pair of streams, one message per line."""

from __future__ import annotations

import json
from asyncio import StreamReader, StreamWriter
from typing import Any

from jackfield.servers import RequestRefusedError, read_object

_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600


class Lines:
    """Transport for the SDK's connection. Invalid lines are answered with an error.

    Args:
        reader, writer: The streams to use.
    """

    def __init__(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message; ignored if the client has disconnected."""
        # The SDK's error details may contain arbitrary objects.
        line = json.dumps(message, separators=(",", ":"), default=str)
        self._writer.write(line.encode() + b"\n")
        try:
            await self._writer.drain()
        except ConnectionError:
            return  # the reading side ends as well

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message, or None once the client has disconnected."""
        while True:
            try:
                line = await self._reader.readline()
                if not line:
                    return None
                if line.strip():
                    return _read_message(line)
            except ConnectionError:
                return None
            except RequestRefusedError as error:
                code = _PARSE_ERROR if error.code == "invalid_json" else _INVALID_REQUEST
                await self._refuse(code, str(error))
            except ValueError:  # the line is too long for the reader
                await self._refuse(_INVALID_REQUEST, "the message is too long: send a shorter message")

    async def close(self) -> None:
        """Do nothing: the streams belong to the caller."""

    async def _refuse(self, code: int, message: str) -> None:
        await self.send({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}})


def _read_message(line: bytes) -> dict[str, Any]:
    message = read_object(line)
    match message:
        case {"method": str(), "params": dict() | None} if _has_valid_id(message):
            return message
        case {"method": str()} if "params" not in message and _has_valid_id(message):
            return message
        case {"id": int() | str()} if "method" not in message:
            return message
    raise RequestRefusedError("the line is not a valid JSON-RPC 2.0 message with named parameters: check its fields")


def _has_valid_id(message: dict[str, Any]) -> bool:
    return isinstance(message.get("id", 0), int | str | None)
