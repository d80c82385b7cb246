"""Servers that treat connections as no server should, like llama.cpp and worse."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from attacks.kind import Attempt, Broke, Kind, law
from attacks.speaking import model_of, says
from jackfield.errors import JackfieldError
from jackfield.models import BaseChatModel

HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    b"Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n"
)
DONE = b"data: [DONE]\n\n"
MOST_BYTES = 400 << 20  # a client that has read this much of one answer has no limit
MOST_WAIT_S = 1.0  # on a busy machine
CALLS = 40


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _event(text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def _whole(text: str) -> bytes:
    return HEAD + _chunk(_event(text, "stop") + DONE) + b"0\r\n\r\n"


Behave = Callable[[socket.socket, str], bool]
"""Answers one request, given its question. Returns True if the connection stays open."""


class _Server:
    """A server with plain sockets and one thread per connection."""

    def __init__(self, behave: Behave) -> None:
        self._behave = behave
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"

    def __enter__(self) -> _Server:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._open.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError, ValueError), connection, connection.makefile("rb") as reader:
            while True:
                length = 0
                while (line := reader.readline()) not in (b"\r\n", b""):
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                if not line:
                    return
                body = json.loads(reader.read(length))
                if not self._behave(connection, body["messages"][-1]["content"]):
                    return


# --- connections that are used again ---


def _closes(wait_s: float, reset: bool) -> Behave:
    def behave(connection: socket.socket, question: str) -> bool:
        connection.sendall(_whole(question))
        time.sleep(wait_s)
        if reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    return behave


def _closes_at_the_next() -> Behave:
    """Answer a connection's first request, and close without a byte on the next."""
    seen: set[int] = set()

    def behave(connection: socket.socket, question: str) -> bool:
        if id(connection) in seen:
            return False
        seen.add(id(connection))
        connection.sendall(_whole(question))
        return True

    return behave


def _says_more(extra: bytes, wait_s: float) -> Behave:
    def behave(connection: socket.socket, question: str) -> bool:
        connection.sendall(_whole(question) + (extra if not wait_s else b""))
        if wait_s:
            time.sleep(wait_s)
            connection.sendall(extra)
        return True

    return behave


def _sound(connection: socket.socket, question: str) -> bool:
    connection.sendall(_whole(question))
    return True


def _holds_open(connection: socket.socket, question: str) -> bool:
    connection.sendall(HEAD + _chunk(_event(question, "stop") + DONE))
    connection.settimeout(15)
    with suppress(OSError):
        connection.recv(1)
    return False


def _many_calls(make: Callable[[], Behave], pause_s: float, slowest_s: float | None = None) -> None:
    with _Server(make()) as server:
        model = model_of("openai", server.url)
        reasons = []
        for number in range(CALLS):
            began = time.monotonic()
            try:
                said = says(model, f"mark {number}")
            except JackfieldError as error:
                reasons.append(f"call {number} of {CALLS} failed: {error}")
            else:
                if said != f"mark {number}":
                    reasons.append(f"call {number} was given {said!r}")
            if slowest_s and number and time.monotonic() - began > slowest_s:
                reasons.append(f"call {number} took {time.monotonic() - began:.1f} s")
            time.sleep(pause_s)
    if reasons:
        raise Broke(*reasons)


# --- answers without an end ---


def _endless(first: bytes, again: bytes, pace_s: float) -> tuple[Behave, list[int]]:
    sent = [0]

    def behave(connection: socket.socket, _question: str) -> bool:
        connection.sendall(HEAD + _chunk(first))
        piece = _chunk(again)
        while sent[0] < MOST_BYTES:
            connection.sendall(piece)
            sent[0] += len(piece)
            if pace_s:
                time.sleep(pace_s)
        return False

    return behave, sent


def _one_endless(first: bytes, again: bytes, pace_s: float, **generate_cfg: float) -> None:
    behave, sent = _endless(first, again, pace_s)
    with _Server(behave) as server:
        try:
            says(model_of("openai", server.url, generate_cfg=generate_cfg))
        except JackfieldError:
            pass
        else:
            law(False, "an answer without an end was taken for one")
        law(sent[0] < MOST_BYTES, f"{sent[0] >> 20} MB of one answer were taken")


def _one_unframed(again: bytes) -> None:
    """Ask a server that sends bytes forever, and check that the event loop still runs other tasks."""
    sent = [0]

    def behave(connection: socket.socket, _: str) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\n" if again.startswith(b"x-a") else b"")
        connection.sendall(HEAD if again[:1] in b"1;" else b"")
        connection.sendall(b"1" if again.startswith(b";") else b"")
        while sent[0] < MOST_BYTES:
            connection.sendall(again)
            sent[0] += len(again)
        return False

    async def longest_wait(model: BaseChatModel) -> float:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(model.acomplete("hello"))
        longest, last = 0.0, loop.time()
        while not task.done():
            await asyncio.sleep(0.005)
            longest, last = max(longest, loop.time() - last), loop.time()
        with suppress(JackfieldError):
            await task
            law(False, "an answer without an end was taken for one")
        return longest

    with _Server(behave) as server:
        model = model_of("openai", server.url, generate_cfg={"request_timeout": 2})
        longest = asyncio.run(longest_wait(model))
    law(longest < MOST_WAIT_S, f"nothing else ran for {longest:.2f} s")
    law(sent[0] < MOST_BYTES, f"{sent[0] >> 20} MB of one answer were taken")


_PIECE = 1 << 18
ENDLESS: dict[str, tuple[bytes, bytes]] = {
    "line": (b"data: ", b"x" * _PIECE),
    "event": (b"", b"data: " + b"x" * _PIECE + b"\n"),
    "answer": (b"", _event("x" * _PIECE)),
    "arguments": (
        b"",
        b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"'
        + b"x" * _PIECE
        + b'"}}]}}]}\n\n',
    ),
    "comment": (b":", b"x" * _PIECE),
    "answer of nothing": (b"", b"\n" * _PIECE),
    "answer of tiny events": (b"", b"data:{}\n\n" * 2000),
}
# Bytes that a server may send instead of an answer, or between its chunks.
UNFRAMED: dict[str, bytes] = {
    "row of interim answers": b"HTTP/1.1 100 Continue\r\n\r\n" * 500,
    "row of headers": b"x-a: b\r\n" * 500,
    "row of tiny chunks": b"1\r\n\n\r\n" * 500,
    "extension of a chunk": b";a=b" * 500,
}
_NEXT = _whole("an answer to nobody")
REUSED: dict[str, tuple[Callable[[], Behave], float, float | None]] = {
    "sound": (lambda: _sound, 0, None),
    "closed at once": (partial(_closes, 0, False), 0, None),
    "closed a moment later": (partial(_closes, 0.002, False), 0.001, None),
    "closed while idle": (partial(_closes, 0, False), 0.005, None),
    "reset": (partial(_closes, 0.05, True), 0.05, None),  # no sooner, because a reset would discard the answer
    "closed at the next request": (_closes_at_the_next, 0, None),
    "a second answer at once": (partial(_says_more, _NEXT, 0), 0.002, None),
    # It must arrive before the next request, because afterwards it is indistinguishable from the answer.
    "a second answer later": (partial(_says_more, _NEXT, 0.002), 0.05, None),
    "rubbish after the answer": (
        partial(_says_more, b"\r\nHTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n", 0),
        0.002,
        None,
    ),
    "held open after the end": (lambda: _holds_open, 0, 2.0),
}


def _attempts(dice: random.Random) -> Iterator[Attempt]:
    for round_ in itertools.count():
        for name, (make, pause_s, slowest_s) in REUSED.items():
            pause_s *= dice.uniform(0.5, 2) if round_ else 1  # noqa: PLW2901 - different moments in later rounds
            act = partial(_many_calls, make, pause_s, slowest_s)
            yield Attempt(f"{CALLS} calls, connections {name}", act, counts=CALLS, timeout_s=20)
        if round_ in (0, 4):
            for name, (first, again) in ENDLESS.items():
                yield Attempt(f"an endless {name}", partial(_one_endless, first, again, 0), timeout_s=40)
            for name, again in UNFRAMED.items():
                yield Attempt(f"an endless {name}", partial(_one_unframed, again), timeout_s=40)
            nothing = partial(_one_endless, b": x\n\n", b": ping\n\n", 0.05, request_timeout=1)
            yield Attempt("comments for ever, and nothing else", nothing, timeout_s=30)


KIND = Kind(
    "However connections end, each call gets its own answer, and no answer lasts forever.",
    _attempts,
    1.5,
    memory_mb=2500,
    quick=8,
)
