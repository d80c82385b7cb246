"""CPU of jackfield-openai beside the openai SDK's own client, on the same server, in the same run.

Per call of a short answer, per chunk of a long and of a paced stream, per call on a history of 500 messages, and per
call with 200 at once. Each figure is the best of a few, in microseconds of the client's thread; the server is a process
of its own. `jackfield` is the whole way through the core (`acomplete`), `backend` is the plugin alone.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import time
from collections.abc import Awaitable, Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

import openai

from jackfield.messages import Message
from jackfield.models import BaseChatModel, get_chat_model
from jackfield_testkit.server import FakeOpenAI, RecordedRequest, Reply, text

Ask = Callable[[str, Sequence[Message]], Awaitable[None]]

SHORT, LONG, PACED = 3, 10_000, 500
REPLIES = {
    "short": text([f"word {n} " for n in range(SHORT)]),
    "long": text([f"word {n} " for n in range(LONG)]),
    "paced": text([f"word {n} " for n in range(PACED)]).paced(0.001),
}
HELLO = (Message("user", "hello"),)
HISTORY = tuple(Message(("user", "assistant")[n % 2], f"message {n}: " + "lorem ipsum " * 20) for n in range(501))


def serve(pipe: Connection) -> None:
    def reply(request: RecordedRequest) -> Reply:
        server.requests.clear()
        return REPLIES[request.model]

    with FakeOpenAI() as server:
        server.respond(reply)
        pipe.send(server.url)
        pipe.recv()


def peers(url: str) -> dict[str, Ask]:
    client = openai.AsyncOpenAI(api_key="sk-test", base_url=url, max_retries=0)
    models: dict[str, BaseChatModel] = {
        name: get_chat_model({"model_type": "openai", "model": name, "base_url": url, "api_key": "sk-test"})
        for name in REPLIES
    }

    async def sdk(model: str, messages: Sequence[Message]) -> None:
        wire: list[Any] = [{"role": message.role, "content": message.content} for message in messages]
        stream = await client.chat.completions.create(
            model=model, messages=wire, stream=True, stream_options={"include_usage": True}
        )
        async for _ in stream:
            pass

    async def backend(model: str, messages: Sequence[Message]) -> None:
        async for _ in models[model].stream(models[model].make_request(messages)):
            pass

    async def jackfield(model: str, messages: Sequence[Message]) -> None:
        await models[model].acomplete(messages)

    return {"openai SDK": sdk, "backend": backend, "jackfield": jackfield}


async def cost_us(work: Callable[[], Awaitable[Any]], *, times: int, rounds: int) -> float:
    await work()
    best = float("inf")
    for _ in range(rounds):
        started = time.thread_time()
        for _ in range(times):
            await work()
        best = min(best, (time.thread_time() - started) / times)
    return best * 1e6


async def measure(ask: Ask, rounds: int) -> dict[str, float]:
    async def crowd() -> None:
        await asyncio.gather(*(ask("short", HELLO) for _ in range(200)))

    return {
        "call": await cost_us(lambda: ask("short", HELLO), times=100, rounds=rounds),
        "chunk": await cost_us(lambda: ask("long", HELLO), times=1, rounds=rounds) / LONG,
        "paced chunk": await cost_us(lambda: ask("paced", HELLO), times=1, rounds=rounds) / PACED,
        "500 messages": await cost_us(lambda: ask("short", HISTORY), times=5, rounds=rounds),
        "call, 200 at once": await cost_us(crowd, times=1, rounds=rounds) / 200,
    }


async def compare(url: str, rounds: int) -> None:
    measured = {name: await measure(ask, rounds) for name, ask in peers(url).items()}
    sdk = measured["openai SDK"]
    print(f"{'µs of CPU':20}" + "".join(f"{name:>22}" for name in measured))
    for what in sdk:
        figures = "".join(f"{row[what]:14.1f} ({row[what] / sdk[what]:5.3f})" for row in measured.values())
        print(f"{what:20}{figures}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=3)
    rounds = arguments.parse_args().rounds
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    server.start()
    try:
        asyncio.run(compare(here.recv(), rounds))
    finally:
        here.send("stop")
        server.join()


if __name__ == "__main__":
    main()
