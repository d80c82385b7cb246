"""The connection a request takes, and what a reader who leaves early leaves behind.

The server runs on the event loop of the test, which decides about every packet. So nothing here depends on time.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from jackfield.errors import ModelConnectionError
from jackfield_http import HTTPClient, transport

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
STREAM = HEAD + b"e\r\ndata: [DONE]\n\n\r\n"
END = b"0\r\n\r\n"
PATIENT_S = 60.0
"""Longer than a test that hangs is allowed to take."""


class ScriptedServer:
    """Answers every request by calling `answer`; counts connections, and those that have been closed."""

    url: str

    def __init__(self) -> None:
        self.answer: Callable[[asyncio.StreamWriter], Awaitable[None]] = send(STREAM + END)
        self._handlers: dict[asyncio.Task[None], asyncio.StreamReader] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers[task] = reader
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if length := re.search(rb"content-length: (\d+)", head):
                    await reader.readexactly(int(length[1]))
                await self.answer(writer)
        writer.close()

    @property
    def connections(self) -> int:
        return len(self._handlers)

    @property
    def closed(self) -> int:
        return sum(reader.at_eof() or reader.exception() is not None for reader in self._handlers.values())

    async def stop(self) -> None:
        for task in self._handlers:
            task.cancel()
        await asyncio.gather(*self._handlers)


def send(*packets: bytes) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    async def answer(writer: asyncio.StreamWriter) -> None:
        for packet in packets:
            writer.write(packet)
            await pause()

    return answer


def send_end_after(gate: asyncio.Event) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    """Send a whole stream except its last chunk, which follows when the gate opens."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM)
        await gate.wait()
        writer.write(END)

    return answer


async def pause() -> None:
    """Let everything else on this loop do what it can do without waiting for a timer."""
    for _ in range(100):
        await asyncio.sleep(0)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[tuple[ScriptedServer, HTTPClient]]:
    server = ScriptedServer()
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listener:
        server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        client = HTTPClient(server.url, backend="acme")
        try:
            async with asyncio.timeout(PATIENT_S / 2):
                yield server, client
        finally:
            await client.aclose()
            await server.stop()


async def leave_at_the_mark(client: HTTPClient, server: ScriptedServer) -> None:
    """Read a stream until `[DONE]`, as backends do, and release its connection."""
    async with client.post(server.url, b"{}", [], timeout_s=PATIENT_S) as response:
        async for piece in response.pieces:
            if b"[DONE]" in piece:
                break
        response.release()


# --- released answers ---


def test_an_answer_whose_end_has_arrived_is_finished_when_its_reader_leaves() -> None:
    async def main() -> None:
        async with serving() as (server, client):
            for _ in range(3):
                before = asyncio.all_tasks()
                await leave_at_the_mark(client, server)
                assert not {task for task in asyncio.all_tasks() - before if "_finish_later" in repr(task)}
            assert server.connections == 1

    asyncio.run(main())


def test_the_next_request_waits_for_a_connection_that_is_about_to_be_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "GRACE_S", PATIENT_S)
    monkeypatch.setattr(transport, "REST_S", PATIENT_S)

    async def main() -> None:
        async with serving() as (server, client):
            gate = asyncio.Event()
            server.answer = send_end_after(gate)
            await leave_at_the_mark(client, server)
            following = asyncio.ensure_future(leave_at_the_mark(client, server))
            await pause()
            gate.set()
            await following
            assert server.connections == 1

    asyncio.run(main())


def test_nobody_waits_again_for_a_server_that_kept_a_request_waiting_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "REST_S", PATIENT_S)
    monkeypatch.setattr(transport, "GRACE_S", 0.001)

    async def main() -> None:
        async with serving() as (server, client):
            server.answer = send_end_after(asyncio.Event())
            await leave_at_the_mark(client, server)
            await leave_at_the_mark(client, server)
            monkeypatch.setattr(transport, "GRACE_S", PATIENT_S)
            await leave_at_the_mark(client, server)
            assert server.connections == 3

    asyncio.run(main())


def test_a_server_that_holds_streams_open_is_waited_for_again_once_it_ends_one_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "REST_S", 0.001)
    monkeypatch.setattr(transport, "GRACE_S", PATIENT_S)

    async def main() -> None:
        async with serving() as (server, client):
            server.answer = send_end_after(asyncio.Event())
            await leave_at_the_mark(client, server)
            await until(lambda: server.closed == 1)

            monkeypatch.setattr(transport, "REST_S", PATIENT_S)
            gates = [asyncio.Event() for _ in range(3)]
            for gate in gates[:2]:  # the second request does not wait for the first, and has its own connection
                server.answer = send_end_after(gate)
                await leave_at_the_mark(client, server)
            assert server.connections == 3
            gates[0].set()
            gates[1].set()
            await pause()

            server.answer = send_end_after(gates[2])
            for _ in range(2):  # both connections are in use
                await leave_at_the_mark(client, server)
            following = asyncio.ensure_future(leave_at_the_mark(client, server))
            await pause()
            gates[2].set()
            await following
            assert server.connections == 3

    asyncio.run(main())


def test_closing_a_client_ends_what_it_still_reads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "REST_S", PATIENT_S)

    async def main() -> None:
        async with serving() as (server, client):
            server.answer = send_end_after(asyncio.Event())
            await leave_at_the_mark(client, server)
            assert [task for task in asyncio.all_tasks() if "_finish_later" in repr(task)]
            await client.aclose()
            assert not [task for task in asyncio.all_tasks() if "_finish_later" in repr(task)]
            await until(lambda: server.closed == 1)

    asyncio.run(main())


def test_a_released_answer_that_goes_on_is_read_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "REST_S", PATIENT_S)
    monkeypatch.setattr(transport, "MAX_REST_BYTES", 1000)

    async def main() -> None:
        async with serving() as (server, client):

            async def never_end(writer: asyncio.StreamWriter) -> None:
                writer.write(STREAM)
                while True:
                    writer.write(b"64\r\n" + b"x" * 100 + b"\r\n")
                    await writer.drain()
                    await asyncio.sleep(0)

            server.answer = never_end
            await leave_at_the_mark(client, server)
            await until(lambda: server.closed == 1)

    asyncio.run(main())


# --- what a client keeps ---


@pytest.mark.parametrize("closes", [False, True], ids=["the server spoke on the first one", "the client was closed"])
def test_a_connection_that_is_given_back_is_kept_only_while_it_is_useful(closes: bool) -> None:
    async def main() -> None:
        async with serving() as (server, client):
            writers: list[asyncio.StreamWriter] = []
            gates = [asyncio.Event(), asyncio.Event(), asyncio.Event()]

            async def answer(writer: asyncio.StreamWriter) -> None:
                writers.append(writer)
                await gates[len(writers) - 1].wait()
                writer.write(SIZED)

            server.answer = answer
            asked = []
            for number in range(2):
                asked.append(asyncio.ensure_future(client.exchange("GET", server.url, b"", [], timeout_s=PATIENT_S)))
                await until(lambda number=number: len(writers) > number)  # type: ignore[misc]
            if closes:
                await client.aclose()
            for number in range(2):
                gates[number].set()
                await asked[number]
            if closes:
                await until(lambda: server.closed == 2)
                return
            writers[0].write(b"not an answer")
            gates[2].set()
            for _ in range(2):
                await client.exchange("GET", server.url, b"", [], timeout_s=PATIENT_S)
                gates.append(gates[2])
            await until(lambda: server.closed == 1)
            assert server.connections == 2

    asyncio.run(main())


def test_closing_a_client_closes_all_its_idle_connections() -> None:
    async def main() -> None:
        async with serving() as (server, client):
            gate = asyncio.Event()

            async def answer(writer: asyncio.StreamWriter) -> None:
                await gate.wait()
                writer.write(SIZED)

            server.answer = answer
            asked = [client.exchange("GET", server.url, b"", [], timeout_s=PATIENT_S) for _ in range(3)]
            replies = asyncio.gather(*asked)
            await until(lambda: server.connections == 3)
            gate.set()
            await replies
            assert server.closed == 0
            await client.aclose()
            await until(lambda: server.closed == 3)

    asyncio.run(main())


def test_the_addresses_that_a_client_keeps_are_bounded() -> None:
    async def main() -> None:
        async with serving() as (server, client):
            for number in range(2 * transport.MAX_KNOWN_URLS):
                await client.exchange("GET", f"{server.url}/{number}", b"", [], timeout_s=PATIENT_S)
            assert len((await client.connections())._urls) <= transport.MAX_KNOWN_URLS

    asyncio.run(main())


def test_the_route_to_a_server_is_found_once_for_all_event_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[transport.Route] = []
    find = transport.Route.to

    def count(url: str) -> transport.Route:
        found.append(find(url))
        return found[-1]

    monkeypatch.setattr(transport.Route, "to", count)
    client = HTTPClient("http://127.0.0.1:9", backend="acme")
    for _ in range(3):
        asyncio.run(client.connections())
    assert len(found) == 1


# --- the end of an answer ---


CHUNKED = HEAD + b"5\r\nright\r\n" + END
SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright"


@pytest.mark.parametrize(("first", "second"), [(CHUNKED, SIZED), (SIZED, SIZED), (SIZED, CHUNKED)])
def test_bytes_behind_an_answer_are_never_the_next_answer(first: bytes, second: bytes) -> None:
    both = second + SIZED.replace(b"right", b"wrong")

    async def main() -> None:
        async with serving() as (server, client):
            for cut in range(1, len(both)):
                if cut == len(second):  # the bytes may come after the next request, like its answer
                    continue
                for packets in ((first,), (both[:cut], both[cut:]), (first,)):
                    server.answer = send(*packets)
                    reply = await client.exchange("POST", server.url, b"{}", [], timeout_s=PATIENT_S)
                    assert reply.body == b"right", cut

    asyncio.run(main())


def test_an_answer_without_a_length_that_is_reset_is_never_taken_for_a_whole_one() -> None:
    async def main() -> None:
        async with serving() as (server, client):
            gate = asyncio.Event()

            async def reset(writer: asyncio.StreamWriter) -> None:
                writer.write(b"HTTP/1.1 200 OK\r\n\r\nhalf an answer")
                await gate.wait()
                connection = writer.get_extra_info("socket")
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()

            async def ask() -> None:
                async with client.post(server.url, b"{}", [], timeout_s=PATIENT_S) as response:
                    assert (await anext(response.pieces)).startswith(b"half an")
                    gate.set()
                    await response.read()

            server.answer = reset
            with pytest.raises(ModelConnectionError, match="broke"):
                await ask()

    asyncio.run(main())


def test_interim_answers_are_bounded_for_each_answer_of_a_connection() -> None:
    async def main() -> None:
        async with serving() as (server, client):
            for packet in (SIZED, b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000 + SIZED):
                server.answer = send(packet)
                async with client.post(server.url, b"{}", [], timeout_s=PATIENT_S) as response:
                    await response.read()

    with pytest.raises(ModelConnectionError, match="headers"):
        asyncio.run(main())


@pytest.mark.parametrize("name", [b"chunked", b"Chunked", b"CHUNKED"])
def test_a_chunk_costs_one_read(name: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[bytes] = []
    read = transport._Socket.read

    async def count(self: transport._Socket, max_bytes: int, timeout: float | None = None) -> bytes:
        reads.append(await read(self, max_bytes, timeout))
        return reads[-1]

    monkeypatch.setattr(transport._Socket, "read", count)
    chunks = [b"5\r\n%5d\r\n" % number for number in range(20)]

    async def main() -> None:
        async with serving() as (server, client):
            received = asyncio.Event()

            async def answer(writer: asyncio.StreamWriter) -> None:
                for packet in [HEAD.replace(b"chunked", name), *chunks, END]:
                    received.clear()
                    writer.write(packet)
                    await received.wait()

            server.answer = answer
            original = transport._Socket.data_received

            def note(self: transport._Socket, data: bytes) -> None:
                original(self, data)
                received.set()

            monkeypatch.setattr(transport._Socket, "data_received", note)
            for _ in range(2):
                reply = await client.exchange("POST", server.url, b"{}", [], timeout_s=PATIENT_S)
                assert len(reply.body) == 100
            assert server.connections == 1

    asyncio.run(main())
    assert [one for one in reads if one in chunks] == chunks * 2


# --- sockets ---


@contextlib.asynccontextmanager
async def connecting(server: ScriptedServer) -> AsyncIterator[transport._Socket]:
    """A socket on which one request has been answered."""
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        _, connection = await asyncio.get_running_loop().create_connection(transport._Socket, "127.0.0.1", port)
        try:
            async with asyncio.timeout(PATIENT_S / 2):
                await connection.write(b"GET / HTTP/1.1\r\n\r\n")
                received = b""
                while not received.endswith(END):
                    received += await connection.read(65536)
                yield connection
        finally:
            await connection.aclose()
            await server.stop()


@pytest.mark.parametrize("sends", [b"", b"x"], ids=["ends the connection", "sends something"])
def test_no_request_is_written_to_a_server_that_meanwhile(sends: bytes) -> None:
    async def main() -> None:
        server = ScriptedServer()
        answered, gate = asyncio.Event(), asyncio.Event()

        async def answer(writer: asyncio.StreamWriter) -> None:
            assert not answered.is_set(), "a second request was written"
            writer.write(STREAM + END)
            answered.set()
            await gate.wait()
            if sends:
                writer.write(sends)
            else:
                writer.write_eof()

        server.answer = answer
        async with connecting(server) as connection:
            assert not connection.get_extra_info("is_readable")
            gate.set()
            await until(lambda: connection._ended or bool(connection._received))
            assert connection.get_extra_info("is_readable")
            await connection.write(b"GET / HTTP/1.1\r\n\r\n")
            with pytest.raises(transport.NoAnswerError):
                await connection.read(65536)
            await pause()

    asyncio.run(main())


def test_an_answer_may_come_before_its_request() -> None:
    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SIZED)  # as an overloaded server does
        writer.close()

    async def main() -> None:
        async with await asyncio.start_server(greet, "127.0.0.1", 0) as listener:
            port = listener.sockets[0].getsockname()[1]
            _, connection = await asyncio.get_running_loop().create_connection(transport._Socket, "127.0.0.1", port)
            await until(lambda: bool(connection._received))
            await connection.write(b"GET / HTTP/1.1\r\n\r\n")
            assert (await connection.read(65536))[:15] == b"HTTP/1.1 200 OK"
            await connection.aclose()

    asyncio.run(main())


def test_a_connection_is_not_usable_from_the_moment_it_is_closed() -> None:
    async def main() -> None:
        server = ScriptedServer()
        async with connecting(server) as connection:
            assert not connection.get_extra_info("is_readable")
            await connection.aclose()
            assert connection.get_extra_info("is_readable")

    asyncio.run(main())


@pytest.mark.parametrize("cut", range(len(END) + 1))
def test_the_end_of_an_answer_is_noticed_before_it_is_read_wherever_the_packets_end(cut: int) -> None:
    async def main() -> None:
        connection = transport._Socket()
        connection.data_received(STREAM + END[:cut])
        await connection.read(65536)
        assert connection.is_at_end == (cut == len(END))
        connection.data_received(END[cut:])
        assert connection.is_at_end

    asyncio.run(main())


def test_a_server_is_slowed_down_when_its_answer_is_read_slowly() -> None:
    total, sent = 64_000_000, 0

    async def main() -> None:
        server = ScriptedServer()
        async with connecting(server) as connection:

            async def pour(writer: asyncio.StreamWriter) -> None:
                nonlocal sent
                writer.write(HEAD)
                while sent < total:
                    writer.write(bytes(100_000))
                    sent += 100_000
                    await writer.drain()

            server.answer = pour
            await connection.write(b"GET / HTTP/1.1\r\n\r\n")
            await connection.read(1)
            await until(lambda: connection._paused)
            await pause()
            assert sent < total

    asyncio.run(main())
