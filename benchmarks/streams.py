"""500 streams at once: an agent behind the OpenAI face, beside Starlette alone that sends the same texts."""

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
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
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
_APPS = ("ours", "bare")
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


def streams() -> list[Row]:
    """Time to the first text, streams that are not complete, and the server's CPU time for a stream."""
    burst, _ = _measure(spread_s=0.0)
    steady, cpu = _measure(spread_s=CHUNKS * PAUSE_S)
    return [
        _row(f"{STREAMS} streams at once: first text, p95", burst, "ms"),
        _row(f"{STREAMS} streams one by one: first text, p95", steady, "ms", target="1.5"),
        _row("CPU of the server for a stream", cpu, "µs"),
    ]


def _row(title: str, figures: Mapping[str, float], unit: str, *, target: str = "") -> Row:
    ours, bare = figures["ours"], figures["bare"]
    return Row(title, f"{ours:.0f} {unit}", f"Starlette alone {bare:.0f} {unit}", ours / bare, target)


def _measure(*, spread_s: float) -> tuple[dict[str, float], dict[str, float]]:
    """Return the 95th percentile of the times to the first text, and the CPU time of a stream, as medians of rounds.

    Raises:
        RuntimeError: A stream was not complete.
    """
    first: dict[str, list[float]] = {name: [] for name in _APPS}
    cpu: dict[str, list[float]] = {name: [] for name in _APPS}
    for number in range(ROUNDS + 1):
        for name in _APPS:
            with _server(name) as (pid, port):
                asyncio.run(_ask_all(port, 5, 0.0))  # it is warm
                before = _cpu_s(pid)
                times = asyncio.run(_ask_all(port, STREAMS, spread_s))
                spent = _cpu_s(pid) - before
            if number:
                first[name].append(statistics.quantiles(times, n=20)[-1])
                cpu[name].append(spent / STREAMS * 1e6)
    return _medians(first), _medians(cpu)


def _medians(samples: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(taken) for name, taken in samples.items()}


async def _ask_all(port: int, count: int, spread_s: float) -> list[float]:
    return await asyncio.gather(*(_ask(port, spread_s * number / count) for number in range(count)))


async def _ask(port: int, delay_s: float) -> float:
    """Return the milliseconds to the first text."""
    await asyncio.sleep(delay_s)
    body = json.dumps({"model": "agent", "stream": True, "messages": [{"role": "user", "content": "Tide?"}]}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n"
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    received, first = b"", 0.0
    while piece := await reader.read(1 << 16):
        received += piece
        if not first and b'"piece ' in received:
            first = (time.perf_counter() - began) * 1000
    writer.close()
    if received.count(b'"piece ') != CHUNKS or b"[DONE]" not in received:
        raise RuntimeError(f"a stream is not complete: {received[-200:]!r}")
    return first


@contextmanager
def _server(name: str) -> Iterator[tuple[int, int]]:
    command = ["benchmarks.streams"]
    if name == "ours":
        command = ["jackfield", "serve", "benchmarks.streams:agent", "--face", "openai", "--port", "0"]
    with subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True) as process:
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
