"""Compaction of long runs: the cost of its check in each turn while nothing is compacted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

from benchmarks.calls import ASK, add, our_agent, raw_client, repeat
from benchmarks.measure import Row, cpu_ms, in_turns
from benchmarks.server import Servers
from jackfield.events import ModelEvent
from jackfield.messages import Message
from jackfield.request import ChatRequest

TURNS = 20
SURE, COUNTED = 10_000_000, 6_000  # one context that is never filled, and one that requires counting tokens


def checking(servers: Servers) -> list[Row]:
    """Measure turns with and without compaction, and one check in a long and in a short conversation."""
    rows = []
    with raw_client(servers.chat) as (loop, _):
        agents = {
            "without": our_agent(servers, "tools-20", add),
            "sure": our_agent(servers, "tools-20", add, {"name": "compaction", "context_tokens": SURE}),
            "counted": our_agent(servers, "tools-20", add, {"name": "compaction", "context_tokens": COUNTED}),
        }
        works = {name: repeat(loop, partial(agent.arun, ASK), 1) for name, agent in agents.items()}
        took = in_turns(works, rounds=60)
    for name, label in (("sure", "too short to be counted"), ("counted", "counted")):
        plain, checked = took["without"] / TURNS, took[name] / TURNS
        beside = f"without {plain:.3f} ms"
        rows.append(Row(f"a turn with compaction, {label}", f"{checked:.3f} ms", beside, checked / plain, "1.03"))
    short, long = one_check(100), one_check(10_000)
    beside = f"of 100 {short * 1000:.0f} µs"
    return [*rows, Row("a check of 10,000 messages", f"{long * 1000:.0f} µs", beside, long / short, "new ones count")]


def one_check(messages: int) -> float:
    """Return the milliseconds of one check in a conversation with this many messages, two of them new."""
    from jackfield_truncation.compaction import Compacting, Compaction

    compaction = Compaction(context_tokens=messages * 100 + 10_000)
    history = [Message("user", "Some words, and some more words. " * 5) for _ in range(messages)]
    check = Compacting(compaction.shared, ())
    requests = [ChatRequest("m", tuple(history[: len(history) - 2 * left])) for left in range(20, -1, -1)]
    loop = asyncio.new_event_loop()

    async def ask(asked: list[ChatRequest]) -> None:
        for request in asked:
            async for _ in check.around(request, _nothing):
                pass

    loop.run_until_complete(ask(requests[:1]))
    took = cpu_ms(lambda: loop.run_until_complete(ask(requests[1:])))
    loop.close()
    return took / (len(requests) - 1)


async def _nothing(_: ChatRequest) -> AsyncIterator[ModelEvent]:
    nothing: tuple[ModelEvent, ...] = ()  # an answer without events
    for event in nothing:
        yield event
