"""`python -m benchmarks.soak MINUTES [memory|sqlite]`: put a server under load, with some broken clients.

One client in twenty is broken: it leaves in the middle of the request or the answer, does not read, or sends nonsense.
Every half minute, the load pauses until all runs have ended, and the server's memory, open files and tasks are sampled.
The exit status is 1 if any of these grew between the second and the last third of the time, if an intact client did not
get its answer, or if the server logged an exception.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from jackfield import FnCallAgent
from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.models import BaseChatModel
from jackfield.request import ChatRequest

CLIENTS = 40
LOAD_S = 25.0
REST_S = 5.0
BROKEN = 0.05
CHUNKS = 20
_TASKS = "How many tasks are there?"
_PORT = re.compile(r"http://127\.0\.0\.1:(\d+)")
_MOST_GROWTH = 1.03


class _Model(BaseChatModel):
    backend = "soak"

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        if request.messages[-1].get_text_content() == _TASKS:
            yield TextDelta(f"{len(asyncio.all_tasks())} tasks")
        else:
            for _ in range(CHUNKS):
                await asyncio.sleep(0.02)
                yield TextDelta("piece ")
        yield ModelFinished("stop")


agent = FnCallAgent(llm=_Model({"model": "soak"}))


@dataclass(frozen=True, slots=True)
class Sample:
    """The server at rest: resident memory in MB, open files and tasks."""

    memory_mb: float
    files: int
    tasks: int


@dataclass
class Soak:
    """The clients of one server.

    Attributes:
        port: The port the server listens on.
        outcomes: The number of clients of each kind, and the failures of intact clients.
    """

    port: int
    outcomes: Counter[str] = field(default_factory=Counter)

    async def load(self, seconds: float, dice: random.Random) -> None:
        """Run several sequences of clients concurrently for some seconds."""
        ends_at = time.monotonic() + seconds

        async def row() -> None:
            while time.monotonic() < ends_at:
                if dice.random() < BROKEN:
                    client = dice.choice(_BROKEN_CLIENTS)
                    self.outcomes[client.__name__.strip("_")] += 1
                    with suppress(OSError):
                        await client(self, dice)
                else:
                    await self._take_answer()

        await asyncio.gather(*(row() for _ in range(CLIENTS)))

    async def _take_answer(self) -> None:
        try:
            text = await self.ask("Tide?")
        except OSError as error:
            self.outcomes[f"FAULT {error!r}"[:100]] += 1
            return
        self.outcomes["intact" if text == "piece " * CHUNKS else f"FAULT {text[-80:]!r}"] += 1

    async def ask(self, question: str) -> str:
        """Return the text of a streamed answer."""
        reader, writer = await self.open(_request(question))
        received = await reader.read(-1)
        writer.close()
        chunks = [json.loads(line[6:]) for line in received.decode().splitlines() if line.startswith("data: {")]
        deltas = [choice["delta"] for chunk in chunks for choice in chunk.get("choices", ())]
        return "".join(delta.get("content") or "" for delta in deltas) if deltas else received.decode()

    async def open(self, first: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection and send some bytes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 12)
        writer.write(first)
        return reader, writer


def _request(question: str, *, length: int | None = None) -> bytes:
    body = json.dumps({"model": "agent", "stream": True, "messages": [{"role": "user", "content": question}]}).encode()
    lines = ["POST /v1/chat/completions HTTP/1.1", "Host: 127.0.0.1", "Connection: close"]
    lines += ["Content-Type: application/json", f"Content-Length: {len(body) if length is None else length}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def _leaves_in_the_request(soak: Soak, dice: random.Random) -> None:
    whole = _request("Tide?")
    _, writer = await soak.open(whole[: dice.randrange(1, len(whole))])
    await asyncio.sleep(dice.random() * 0.2)
    writer.transport.abort()


async def _leaves_in_the_answer(soak: Soak, dice: random.Random) -> None:
    reader, writer = await soak.open(_request("Tide?"))
    await reader.read(dice.randrange(1, 3000))
    writer.transport.abort()


async def _leaves_before_the_answer(soak: Soak, dice: random.Random) -> None:
    _, writer = await soak.open(_request("Tide?"))
    await asyncio.sleep(dice.random() * 0.05)
    writer.close()


async def _does_not_read(soak: Soak, dice: random.Random) -> None:
    _, writer = await soak.open(_request("Tide?"))
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.sleep(dice.random() * 3)
    writer.transport.abort()


async def _sends_nonsense(soak: Soak, dice: random.Random) -> None:
    nonsense = dice.choice(
        [
            dice.randbytes(200),
            _request("Tide?")[:-1] + b"{",
            _request("[" * 200_000),
            _request("Tide?", length=10**12),
            b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5_000,
        ]
    )
    reader, writer = await soak.open(nonsense)
    with suppress(TimeoutError):
        async with asyncio.timeout(2):
            await reader.read(-1)
    writer.transport.abort()


_BROKEN_CLIENTS: list[Callable[[Soak, random.Random], Awaitable[None]]] = [
    _leaves_in_the_request,
    _leaves_in_the_answer,
    _leaves_before_the_answer,
    _does_not_read,
    _sends_nonsense,
]


async def _run(pid: int, port: int, minutes: float) -> int:
    soak, dice = Soak(port), random.Random(1)
    samples: list[Sample] = []
    ends_at = time.monotonic() + minutes * 60
    while time.monotonic() < ends_at:
        await soak.load(LOAD_S, dice)
        await asyncio.sleep(REST_S)
        samples.append(await _look(soak, pid))
        intact = soak.outcomes["intact"]
        one = samples[-1]
        print(f"{intact:8} answers  {one.memory_mb:7.1f} MB  {one.files:4} files  {one.tasks:4} tasks", flush=True)
    print(", ".join(f"{name}: {count}" for name, count in soak.outcomes.most_common()))
    third = max(1, len(samples) // 3)
    grown = [_growth(name, samples[third : 2 * third], samples[-third:]) for name in ("memory_mb", "files", "tasks")]
    faults = sum(count for name, count in soak.outcomes.items() if name.startswith("FAULT"))
    print(f"{faults} intact clients without their answer")
    return int(faults > 0 or max(grown) > _MOST_GROWTH)


async def _look(soak: Soak, pid: int) -> Sample:
    tasks = int((await soak.ask(_TASKS)).split()[0])
    await asyncio.sleep(0.5)  # the connection is gone
    memory = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert memory is not None
    return Sample(int(memory[1]) / 1024, len(list(Path(f"/proc/{pid}/fd").iterdir())), tasks)


def _median(name: str, samples: Sequence[Sample]) -> float:
    return float(statistics.median(getattr(one, name) for one in samples))


def _growth(name: str, before: list[Sample], after: list[Sample]) -> float:
    first, last = (_median(name, samples) for samples in (before or after, after))
    print(f"{name}: {first:.1f} to {last:.1f}, {(last / first - 1) * 100:+.1f} %")
    return last / first


def main() -> int:
    """Run a server and its clients for some minutes."""
    minutes, store = float(sys.argv[1]), (sys.argv[2:] or ["sqlite"])[0]
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "jackfield",
            "serve",
            "benchmarks.soak:agent",
            "--face",
            "openai",
            "--port",
            "0",
        ]
        if store != "memory":
            command += ["--store", store]
        env = {**os.environ, "XDG_DATA_HOME": folder}
        with (
            Path(folder, "log").open("w+") as log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=env) as process,
        ):
            assert process.stdout is not None
            address = next(match for line in process.stdout if (match := _PORT.search(line)))
            try:
                result = asyncio.run(_run(process.pid, int(address[1]), minutes))
            finally:
                process.terminate()
            log.seek(0)
            text = log.read()
            print("the server's log:", text[-2000:] or "empty")
            return result or int("Traceback" in text)


if __name__ == "__main__":
    sys.exit(main())
