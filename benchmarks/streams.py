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
from collections.abc import AsyncIterator, Iterator
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
    """Time to the first text, CPU time of the server for a stream, and streams that were not complete."""
    apps = ("ours", "bare")
    first: dict[str, list[float]] = {name: [] for name in apps}
    cpu: dict[str, list[float]] = {name: [] for name in apps}
    incomplete = dict.fromkeys(apps, 0)
    for number in range(ROUNDS + 1):
        for name in apps:
            with _server(name) as (pid, port):
                asyncio.run(_ask_all(port, 5))  # it is warm
                before = _cpu_s(pid)
                times = asyncio.run(_ask_all(port, STREAMS))
                spent = _cpu_s(pid) - before
            if number:
                first[name].append(statistics.quantiles([took for took, _ in times], n=20)[-1])
                cpu[name].append(spent / STREAMS * 1e6)
                incomplete[name] += sum(not is_complete for _, is_complete in times)
    ours, bare = (statistics.median(first[name]) for name in apps)
    ours_cpu, bare_cpu = (statistics.median(cpu[name]) for name in apps)
    lost = f"Starlette {incomplete['bare']}"
    return [
        Row(f"first text of {STREAMS} streams, p95", f"{ours:.0f} ms", f"Starlette {bare:.0f} ms", ours / bare, "1.5"),
        Row("a stream's CPU", f"{ours_cpu:.0f} µs", f"Starlette {bare_cpu:.0f} µs", ours_cpu / bare_cpu),
        Row("streams that were cut", f"{incomplete['ours']} of {ROUNDS * STREAMS}", lost, None, "0"),
    ]


async def _ask_all(port: int, count: int) -> list[tuple[float, bool]]:
    return await asyncio.gather(*(_ask(port) for _ in range(count)))


async def _ask(port: int) -> tuple[float, bool]:
    """Return the milliseconds to the first text, and whether all of the answer came."""
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
    return first, received.count(b'"piece ') == CHUNKS and b"[DONE]" in received


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
