"""500 concurrent streams from an agent behind the OpenAI face, compared to plain Starlette sending the same texts."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Row
from jackfield import FnCallAgent
from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.models import BaseChatModel
from jackfield.request import ChatRequest

STREAMS = 500
CHUNKS = 20
PAUSE_S = 0.1
ROUNDS = 5
_PORT = re.compile(r"http://127\.0\.0\.1:(\d+)")
_TICKS = os.sysconf("SC_CLK_TCK")


class _PacedModel(BaseChatModel):
    backend = "paced"

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:  # noqa: ARG002
        for _ in range(CHUNKS):
            await asyncio.sleep(PAUSE_S)
            yield TextDelta("piece ")
        yield ModelFinished("stop")


agent = FnCallAgent(llm=_PacedModel({"model": "paced"}))


def _bare() -> object:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    async def chunks() -> AsyncIterator[str]:
        for _ in range(CHUNKS):
            await asyncio.sleep(PAUSE_S)
            chunk = {"id": "x", "object": "chat.completion.chunk", "choices": [{"delta": {"content": "piece "}}]}
            yield f"data: {json.dumps(chunk)}\n\n"
        yield "data: [DONE]\n\n"

    async def answer(request: Request) -> StreamingResponse:
        await request.json()
        return StreamingResponse(chunks(), media_type="text/event-stream")

    return Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])


@dataclass(frozen=True, kw_only=True)
class App:
    """An application that answers a question in 20 pieces.

    Attributes:
        command: The command that starts the application, which then prints its address.
        path, body, media_type: The request to send.
    """

    command: Sequence[str]
    path: str = "/v1/chat/completions"
    body: bytes = b'{"model": "agent", "stream": true, "messages": [{"role": "user", "content": "Tide?"}]}'
    media_type: str = "application/json"


_SERVE = ("-m", "jackfield", "serve", "benchmarks.streams:agent", "--face", "openai", "--port", "0")
OURS = App(command=(sys.executable, *_SERVE))
_BARE = App(command=(sys.executable, "-m", "benchmarks.streams"))


def streams() -> list[Row]:
    """Measure the time to the first byte and the first text, and the server's CPU time per stream."""
    apps = {"ours": OURS, "bare": _BARE}
    burst = measure(apps, count=STREAMS, spread_s=0.0)
    steady = measure(apps, count=STREAMS, spread_s=CHUNKS * PAUSE_S)
    return [
        _row(f"{STREAMS} streams at once: first byte, p95", burst.first_byte_ms, "ms", target="1.5"),
        _row(f"{STREAMS} streams at once: first text, p95", burst.first_text_ms, "ms"),
        _row(f"{STREAMS} streams one by one: first byte, p95", steady.first_byte_ms, "ms", target="1.5"),
        _row(f"{STREAMS} streams one by one: first text, p95", steady.first_text_ms, "ms", target="1.5"),
        _row("CPU of the server for a stream", steady.cpu_us, "µs"),
    ]


def _row(title: str, figures: Mapping[str, float], unit: str, *, target: str = "") -> Row:
    ours, bare = figures["ours"], figures["bare"]
    return Row(title, f"{ours:.0f} {unit}", f"Starlette alone {bare:.0f} {unit}", ours / bare, target)


@dataclass(frozen=True)
class Figures:
    """Medians over all rounds, by application name.

    Attributes:
        first_byte_ms: The 95th percentile of the time from connecting to the first byte of the response.
        first_text_ms: The 95th percentile of the time from connecting to the first piece of the answer.
        cpu_us: The server's CPU time per stream.
    """

    first_byte_ms: dict[str, float]
    first_text_ms: dict[str, float]
    cpu_us: dict[str, float]


def measure(apps: Mapping[str, App], *, count: int, spread_s: float, rounds: int = ROUNDS) -> Figures:
    """Open streams and read them to the end.

    Args:
        apps: The applications by name. Each is restarted in every round.
        count: The number of concurrent streams.
        spread_s: The period over which the streams start, in seconds.
        rounds: The number of rounds to count, after one that is not counted.

    Raises:
        RuntimeError: A stream was incomplete.
    """
    first_byte: dict[str, list[float]] = {name: [] for name in apps}
    first_text: dict[str, list[float]] = {name: [] for name in apps}
    cpu: dict[str, list[float]] = {name: [] for name in apps}
    for number in range(rounds + 1):
        for name, app in apps.items():
            with _server(app) as (pid, port):
                asyncio.run(_ask_all(app, port, 5, 0.0))  # warm up
                before = _cpu_s(pid)
                times = asyncio.run(_ask_all(app, port, count, spread_s))
                spent = _cpu_s(pid) - before
            if number:
                first_byte[name].append(_p95([byte for byte, _ in times]))
                first_text[name].append(_p95([text for _, text in times]))
                cpu[name].append(spent / count * 1e6)
    return Figures(_medians(first_byte), _medians(first_text), _medians(cpu))


def _p95(times_ms: Sequence[float]) -> float:
    return statistics.quantiles(times_ms, n=20)[-1]


def _medians(samples: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(taken) for name, taken in samples.items()}


async def _ask_all(app: App, port: int, count: int, spread_s: float) -> list[tuple[float, float]]:
    return await asyncio.gather(*(_ask(app, port, spread_s * number / count) for number in range(count)))


async def _ask(app: App, port: int, delay_s: float) -> tuple[float, float]:
    """Return the milliseconds to the first byte and to the first text."""
    await asyncio.sleep(delay_s)
    head = f"POST {app.path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n"
    head += f"Content-Type: {app.media_type}\r\nContent-Length: {len(app.body)}\r\n\r\n"
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head.encode() + app.body)
    received, first_byte, first_text = b"", 0.0, 0.0
    while piece := await reader.read(1 << 16):
        received += piece
        first_byte = first_byte or (time.perf_counter() - began) * 1000
        if not first_text and b'"piece ' in received:
            first_text = (time.perf_counter() - began) * 1000
    writer.close()
    if received.count(b'"piece "') != CHUNKS:
        raise RuntimeError(f"a stream is not complete: {received[-200:]!r}")
    return first_byte, first_text


@contextmanager
def _server(app: App) -> Iterator[tuple[int, int]]:
    with subprocess.Popen(app.command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = ""
        while not (found := _PORT.search(printed)):
            printed += process.stdout.readline()
        yield process.pid, int(found[1])
        process.terminate()


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _serve_bare() -> None:
    import uvicorn

    with socket.create_server(("127.0.0.1", 0), backlog=2 * STREAMS) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        uvicorn.Server(uvicorn.Config(_bare(), log_level="warning", access_log=False)).run([listener])  # type: ignore[arg-type]


if __name__ == "__main__":
    _serve_bare()
