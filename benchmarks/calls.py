"""Rows 3 to 5: a call, a chunk and a turn, compared to the raw client."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI

from benchmarks.measure import Row, in_turns
from benchmarks.server import Servers
from jackfield import FnCallAgent, tool
from jackfield.events import TextDelta
from jackfield.runs import Observer

ASK = [{"role": "user", "content": "go"}]
ADD_SCHEMA = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def our_agent(
    servers: Servers, model: str, *tools: Any, store: Any = None, observers: Sequence[Observer] = ()
) -> FnCallAgent:
    """Create an agent that uses the server of the measured backend."""
    llm = {"model_type": servers.backend, "model": model, "base_url": servers.ours, "api_key": "none"}
    return FnCallAgent(list(tools), llm, limits={"turns": 1000}, store=store, observers=observers)


@contextmanager
def raw_client(url: str) -> Iterator[tuple[asyncio.AbstractEventLoop, AsyncOpenAI]]:
    """Yield the raw client and its own event loop."""
    loop = asyncio.new_event_loop()
    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    try:
        yield loop, client
    finally:
        loop.run_until_complete(client.close())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def raw_answer(client: AsyncOpenAI, model: str, messages: list[Any], **options: Any) -> dict[str, Any]:
    """Return one streamed answer from the raw client, folded by hand."""
    text: list[str] = []
    calls: dict[int, dict[str, Any]] = {}
    stream = await client.chat.completions.create(
        model=model, messages=messages, stream=True, stream_options={"include_usage": True}, **options
    )
    async for chunk in stream:
        for choice in chunk.choices:
            if choice.delta.content:
                text.append(choice.delta.content)
            for part in choice.delta.tool_calls or ():
                call = calls.setdefault(
                    part.index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
                )
                call["id"] = part.id or call["id"]
                if part.function:
                    call["function"]["name"] = part.function.name or call["function"]["name"]
                    call["function"]["arguments"] += part.function.arguments or ""
    message: dict[str, Any] = {"role": "assistant", "content": "".join(text)}
    if calls:
        message["tool_calls"] = list(calls.values())
    return message


async def raw_loop(client: AsyncOpenAI, model: str) -> list[Any]:
    """Run the shortest possible agent loop with the raw client."""
    messages: list[Any] = list(ASK)
    while True:
        message = await raw_answer(client, model, messages, tools=[ADD_SCHEMA])
        messages.append(message)
        if "tool_calls" not in message:
            return messages
        for call in message["tool_calls"]:
            arguments = json.loads(call["function"]["arguments"])
            result = str(arguments["a"] + arguments["b"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


def repeat(
    loop: asyncio.AbstractEventLoop, make: Callable[[], Coroutine[Any, Any, Any]], times: int
) -> Callable[[], None]:
    """Return a function that runs a coroutine several times on one loop."""

    async def all_of_them() -> None:
        for _ in range(times):
            await make()

    return lambda: loop.run_until_complete(all_of_them())


def one_call(servers: Servers, qwen_python: str | None) -> list[Row]:
    """Measure an agent's run with one call, async and sync, per run."""
    times = 50
    with raw_client(servers.chat) as (loop, client):
        agent, sync_agent = our_agent(servers, "short"), our_agent(servers, "short")

        def sync_runs() -> None:
            for _ in range(times):
                sync_agent.run_nonstream(ASK)

        cpu = in_turns(
            {
                "raw": repeat(loop, lambda: raw_answer(client, "short", list(ASK)), times),
                "async": repeat(loop, lambda: agent.arun(ASK), times),
                "sync": sync_runs,
            },
            rounds=11,
        )
    raw, ours, from_sync = (cpu[name] / times for name in ("raw", "async", "sync"))
    rows = [
        Row("3 one run, one call (arun)", f"{ours:.2f} ms", f"raw openai {raw:.2f} ms", ours / raw, "0.5"),
        Row(
            "3 one run, one call (run_nonstream)",
            f"{from_sync:.2f} ms",
            f"raw openai {raw:.2f} ms",
            from_sync / raw,
            "0.5",
        ),
    ]
    if qwen_python:
        qwen = _qwen(qwen_python, "one_call", servers.chat)
        rows.append(
            Row("3 the same by Qwen-Agent", f"{from_sync:.2f} ms", f"Qwen-Agent {qwen:.2f} ms", from_sync / qwen)
        )
    return rows


def streaming(servers: Servers) -> list[Row]:
    """Measure a stream of 10,000 chunks at full speed, and one of 500 chunks paced at 1 ms, per chunk."""
    rows = []
    with raw_client(servers.chat) as (loop, client):
        for model, chunks, target, rounds in (("long", 10_000, "0.2", 5), ("paced", 500, "0.4", 5)):
            agent = our_agent(servers, model)

            async def ours(agent: FnCallAgent = agent, chunks: int = chunks) -> None:
                seen = [step async for step in agent.astream(ASK) if isinstance(step.event, TextDelta)]
                assert len(seen) == chunks

            def sync_snapshots(agent: FnCallAgent = agent) -> None:
                for _ in agent.run(ASK):
                    pass

            cpu = in_turns(
                {
                    "raw": repeat(loop, lambda model=model: raw_answer(client, model, list(ASK)), 1),  # type: ignore[misc]
                    "ours": repeat(loop, ours, 1),
                    "sync": sync_snapshots,
                },
                rounds=rounds,
            )
            raw, mine, lists = (cpu[name] / chunks * 1000 for name in ("raw", "ours", "sync"))
            peer = f"raw openai {raw:.1f} µs"
            rows.append(Row(f"4 per chunk, {model} (astream)", f"{mine:.1f} µs", peer, mine / raw, target))
            rows.append(Row(f"4 per chunk, {model} (run, growing lists)", f"{lists:.1f} µs", peer, lists / raw))
    return rows


def turns(servers: Servers, qwen_python: str | None) -> list[Row]:
    """Measure a run of 20 turns with one tool call each, per turn."""
    count = 20
    with raw_client(servers.chat) as (loop, client):
        agent = our_agent(servers, f"tools-{count}", add)
        cpu = in_turns(
            {
                "raw": repeat(loop, lambda: raw_loop(client, f"tools-{count}"), 1),
                "ours": repeat(loop, lambda: agent.arun(ASK), 1),
            },
            rounds=15,
        )
    raw, ours = cpu["raw"] / count, cpu["ours"] / count
    rows = [Row("5 per turn with a tool call", f"{ours:.2f} ms", f"raw openai loop {raw:.2f} ms", ours / raw, "0.3")]
    if qwen_python:
        qwen = _qwen(qwen_python, "turns", servers.chat)
        rows.append(Row("5 the same by Qwen-Agent", f"{ours:.2f} ms", f"Qwen-Agent {qwen:.2f} ms", ours / qwen))
    return rows


def history(servers: Servers) -> list[Row]:
    """Measure one more call on a history of 500 messages."""
    messages = [
        {"role": ("user", "assistant")[n % 2], "content": f"message {n}: " + "lorem ipsum " * 20} for n in range(501)
    ]
    with raw_client(servers.chat) as (loop, client):
        agent = our_agent(servers, "short")
        cpu = in_turns(
            {
                "raw": repeat(loop, lambda: raw_answer(client, "short", messages), 1),
                "ours": repeat(loop, lambda: agent.arun(messages), 1),
            },
            rounds=9,
        )
    raw, ours = cpu["raw"], cpu["ours"]
    return [
        Row("8 a call on 500 messages, no truncation", f"{ours:.1f} ms", f"raw openai {raw:.1f} ms", ours / raw, "0.08")
    ]


def _qwen(python: str, what: str, url: str) -> float:
    peer = Path(__file__).parent / "peer_qwen.py"
    done = subprocess.run([python, str(peer), what, url], capture_output=True, text=True, check=True, timeout=300)
    return float(done.stdout.strip().splitlines()[-1])
