"""What a chunk of a stream costs: CPU of this process, in microseconds, ours beside two clients.

The peers are the SDK's typed layer, on the same server, and the raw openai client, on as many chunks of Chat
Completions. Each takes its turn in every round; the medians are printed, with ours as a share of each peer's.

Run it as `python plugins/llms/dashscope/benchmarks/chunks.py`; it needs jackfield-testkit and openai.
"""

# ruff: noqa: T201 - what it prints is what it is for

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from jackfield import FnCallAgent
from jackfield.events import TextDelta
from jackfield.models import get_chat_model
from jackfield_testkit import replies
from jackfield_testkit.dashscope import FakeDashScope
from jackfield_testkit.server import FakeOpenAI, RecordedRequest

ROUNDS = 7
COUNTS = {"long": 10_000, "paced": 500}
REPLIES = {
    "long": replies.text(["chunk of text "] * COUNTS["long"]),
    "paced": replies.text(["chunk of text "] * COUNTS["paced"]).paced(0.001),
}
ASK: list[Any] = [{"role": "user", "content": "go"}]


def serve() -> None:
    """Both servers, until the input ends; their addresses are printed first."""

    def answer(request: RecordedRequest) -> replies.Reply:
        return REPLIES[request.model]

    with FakeDashScope() as native, FakeOpenAI() as chat:
        native.respond(answer)
        chat.respond(answer)
        print(native.url, chat.url, flush=True)
        sys.stdin.read()


async def cpu_us(work: Callable[[], Awaitable[int]], count: int) -> float:
    """The CPU of a chunk, all threads of the process included."""
    started = time.process_time_ns()
    came = await work()
    taken = time.process_time_ns() - started
    if came != count:
        raise ValueError(f"{came} chunks came, not {count}")
    return taken / 1000 / count


async def measure(native_url: str, chat_url: str) -> None:
    """Print the figures."""
    import dashscope
    from openai import AsyncOpenAI

    typed = dashscope.AsyncClient(api_key="none", base_url=native_url, max_retries=0)
    raw = AsyncOpenAI(base_url=chat_url, api_key="none", max_retries=0)
    for name, count in COUNTS.items():
        settings = {"model_type": "qwen_dashscope", "model": name, "base_url": native_url, "api_key": "none"}
        model, agent = get_chat_model(settings), FnCallAgent(llm=settings)

        async def by_model() -> int:
            return sum([isinstance(event, TextDelta) async for event in model.astream(ASK)])  # noqa: B023

        async def by_agent() -> int:
            return sum([isinstance(step.event, TextDelta) async for step in agent.astream(ASK)])  # noqa: B023

        async def by_sdk() -> int:
            stream = await typed.chat.completions.create(model=name, messages=ASK, stream=True)  # noqa: B023
            return sum([bool(chunk.choices and chunk.choices[0].delta.content) async for chunk in stream])

        async def by_openai() -> int:
            stream = await raw.chat.completions.create(model=name, messages=ASK, stream=True)  # noqa: B023
            return sum([bool(chunk.choices and chunk.choices[0].delta.content) async for chunk in stream])

        works = {"model.astream": by_model, "agent.astream": by_agent, "SDK": by_sdk, "raw openai": by_openai}
        taken: dict[str, list[float]] = {who: [] for who in works}
        for number in range(ROUNDS + 1):
            for who, work in works.items():
                cost = await cpu_us(work, count)
                if number:  # the first round loads and connects
                    taken[who].append(cost)
        medians = {who: statistics.median(costs) for who, costs in taken.items()}
        print(f"{name}, {count} chunks: " + ", ".join(f"{who} {cost:.1f} µs" for who, cost in medians.items()))
        for who in ("model.astream", "agent.astream"):
            shares = (f"{medians[who] / medians[peer]:.2f} of {peer}" for peer in ("SDK", "raw openai"))
            print(f"  {who}: {', '.join(shares)}")


def main() -> None:
    """Start the servers in a process of their own, so that their work is nobody's here."""
    command = [sys.executable, __file__, "serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        if process.stdin and process.stdout:
            asyncio.run(measure(*process.stdout.readline().split()))
            process.stdin.close()


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
