"""A server cannot keep others from their turn on the event loop, however it cuts its answer."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import threading
from collections.abc import Iterable, Iterator

import pytest

from jackfield.errors import ModelServiceError
from jackfield_http import HTTPClient, transport

CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
# As numbers, not those of the module, so that raising a limit fails: reading so many parts takes some milliseconds.
MOST_PARTS = 1024
MOST_HEAD_BYTES = 256 * 1024


@contextlib.contextmanager
def sending(pieces: Iterable[bytes]) -> Iterator[str]:
    """The URL of a server that answers one request with these bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    for piece in pieces:
                        connection.sendall(piece)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


async def _exchanged(url: str) -> tuple[int, bytes, str]:
    """How often another task had its turn, the body that came, and the error that did."""
    client = HTTPClient(url, backend="test")
    client._open_connections(
        await asyncio.to_thread(client._find_route)
    )  # the stack is loaded before anything is counted
    task = asyncio.ensure_future(client.exchange("POST", f"{url}/a", b"{}", [], timeout_s=30))
    turns = 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    try:
        return turns, task.result().body, ""
    except ModelServiceError as error:
        return turns, b"", str(error)
    finally:
        await client.aclose()


@pytest.fixture
def most_parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The chunks, header lines or events of each read, whatever there is most of."""
    parts: list[int] = []
    read = transport._Socket.read

    async def noted(self: transport._Socket, max_bytes: int, timeout: float | None = None) -> bytes:
        data = await read(self, max_bytes, timeout)
        parts.append(max(data.count(b"\r\n"), data.count(b"data:")))
        return data

    monkeypatch.setattr(transport._Socket, "read", noted)
    return parts


@pytest.mark.parametrize("chunk", [b"1\r\nx\r\n", b"1;a=b\r\nx\r\n", b"1\r\n\n\r\n"])
def test_tiny_chunks_let_others_have_their_turn(chunk: bytes, most_parts: list[int]) -> None:
    count = 20_000
    with sending([CHUNKED + chunk * count + b"0\r\n\r\n"]) as url:
        turns, body, error = asyncio.run(_exchanged(url))
    assert (len(body), error) == (count, "")
    assert max(most_parts) <= MOST_PARTS
    assert turns >= 2 * count / MOST_PARTS


def test_tiny_events_in_one_chunk_let_others_have_their_turn(most_parts: list[int]) -> None:
    events = b"data:x\n\n" * 20_000
    with sending([CHUNKED + b"%x\r\n" % len(events) + events + b"\r\n0\r\n\r\n"]) as url:
        turns, body, _ = asyncio.run(_exchanged(url))
    assert body == events
    assert max(most_parts) <= MOST_PARTS
    assert turns >= 20_000 / MOST_PARTS


def test_interim_answers_without_end_are_an_error(most_parts: list[int]) -> None:
    with sending(itertools.repeat(CONTINUE * 1000)) as url:
        turns, _, error = asyncio.run(_exchanged(url))
    assert "test" in error
    assert max(most_parts) <= MOST_PARTS
    assert sum(most_parts) <= 2 * MOST_HEAD_BYTES / len(CONTINUE) + 2 * MOST_PARTS
    assert turns >= 2 * MOST_HEAD_BYTES / len(CONTINUE) / MOST_PARTS


def test_some_interim_answers_and_long_headers_are_read() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n" + b"x-a: " + b"b" * 60_000 + b"\r\n\r\n"
    with sending([CONTINUE * 50 + head + b"ok"]) as url:
        assert asyncio.run(_exchanged(url))[1:] == (b"ok", "")


@pytest.mark.parametrize(
    "endless", [b"x-a: b\r\n", b"x" * 1000, b"\r\n "], ids=["headers", "one header", "folded headers"]
)
def test_headers_without_end_are_an_error(endless: bytes) -> None:
    with sending(itertools.chain([b"HTTP/1.1 200 OK\r\nx-b: c"], itertools.repeat(endless * 20))) as url:
        assert asyncio.run(_exchanged(url))[2]


@pytest.mark.parametrize("endless", [b";a", b"\r\n0\r\nx-a: b", b"0"], ids=["extension", "trailers", "length"])
def test_what_surrounds_chunks_cannot_go_on_without_end(endless: bytes) -> None:
    with sending(itertools.chain([CHUNKED + b"1\r\nx\r\n1"], itertools.repeat(endless * 500))) as url:
        assert asyncio.run(_exchanged(url))[2]
