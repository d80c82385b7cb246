"""Exchange protocol messages over a pair of streams, one message per line."""

from __future__ import annotations

from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from jackfield.servers import Refusal, RequestRefusedError, read_object, write_json
from jackfield_mcp_server.errors import error_data

_Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
_Outgoing = MemoryObjectSendStream[SessionMessage]


@asynccontextmanager
async def open_pipes(reader: StreamReader, writer: StreamWriter) -> AsyncIterator[tuple[_Incoming, _Outgoing]]:
    """Yield two streams: messages from the client, which ends when the client disconnects, and messages to the client.

    Invalid lines are answered with an error.
    """
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, to_client = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as group:
        group.start_soon(_read, reader, to_server, outgoing.clone())
        group.start_soon(_write, to_client, writer)
        yield incoming, outgoing


async def _read(
    reader: StreamReader,
    to_server: MemoryObjectSendStream[SessionMessage | Exception],
    outgoing: MemoryObjectSendStream[SessionMessage],
) -> None:
    async with to_server, outgoing:
        with suppress(ConnectionError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                try:
                    line = await reader.readline()
                    if not line:
                        return
                    if line.strip():
                        await to_server.send(_read_message(line))
                except RequestRefusedError as error:
                    await outgoing.send(_refuse(error.refusal))
                except ValueError:  # the line is too long for the reader
                    refusal = Refusal(
                        status=413, code="too_large", message="the message is too long: send a shorter message"
                    )
                    await outgoing.send(_refuse(refusal))


def _read_message(line: bytes) -> SessionMessage:
    read_object(line)
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError:
        raise RequestRefusedError("the line is not a valid JSON-RPC 2.0 message: check its fields") from None


def _refuse(refusal: Refusal) -> SessionMessage:
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=None, error=error_data(refusal)))


async def _write(to_client: MemoryObjectReceiveStream[SessionMessage], writer: StreamWriter) -> None:
    is_connected = True
    async with to_client:
        async for message in to_client:
            if is_connected:
                writer.write(
                    write_json(message.message.model_dump(mode="json", by_alias=True, exclude_unset=True)) + b"\n"
                )
                try:
                    await writer.drain()
                except ConnectionError:
                    is_connected = False  # the reading side ends as well
