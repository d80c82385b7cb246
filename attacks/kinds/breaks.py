"""Consumers that leave early: by breaking, cancelling, Ctrl-C, garbage collection, or ending the process."""

from __future__ import annotations

import asyncio
import gc
import itertools
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from attacks.kind import Attempt, Kind, law
from attacks.speaking import arun, model_of, run, says, server_of
from jackfield import sync, tool
from jackfield.agents import CancelToken, FnCallAgent
from jackfield.messages import Message
from jackfield_testkit import replies
from jackfield_testkit.replies import Reply
from jackfield_testkit.server import RecordedRequest

SOON_S = 3.0  # leaving takes milliseconds, but five seconds and more have been seen
EVENTS = 12


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def _answer(request: RecordedRequest) -> Reply:
    messages = request.json["messages"]
    if messages[-1]["content"] == "again":
        return replies.text("here")
    if messages[-1]["role"] == "tool":
        return replies.text(["word "] * 200).paced(0.02)
    return replies.tool_call("add", {"a": 1, "b": 2}, content="let me see").paced(0.001)


_model: list[Any] = []


def _agent() -> FnCallAgent:
    server_of("openai").clear()
    server_of("openai").respond(_answer)
    if not _model:
        _model.append(model_of("openai"))
        says(_model[0], "again")  # imports during the first call are not part of leaving
    return FnCallAgent([add], _model[0])


def _left(way: Callable[[FnCallAgent, int], object], after: int) -> None:
    agent, server = _agent(), server_of("openai")
    threads = threading.active_count()
    began = time.monotonic()
    way(agent, after)
    gc.collect()
    law(says(agent.model, "again") == "here", "the next call is answered otherwise")
    took = time.monotonic() - began
    law(took < SOON_S, f"leaving and the next call took {took:.1f} s")
    law(server.wait_until(lambda it: it.open_streams == 0), "a connection is not given back")
    law(threading.active_count() <= threads + 8, f"{threads} threads became {threading.active_count()}")


ASKED = [Message("user", "go")]


def _by_break(agent: FnCallAgent, after: int) -> None:
    for number, _ in enumerate(sync.iterate(agent.astream(ASKED))):
        if number >= after:
            break


def _by_close(agent: FnCallAgent, after: int) -> None:
    events = sync.iterate(agent.astream(ASKED))
    for _ in itertools.islice(events, after):
        pass
    events.close()  # type: ignore[attr-defined]


def _by_collection(agent: FnCallAgent, after: int) -> None:
    events = agent.run([{"role": "user", "content": "go"}])
    for _ in itertools.islice(events, after):
        pass
    circle: list[Any] = [events]
    circle.append(circle)
    del events, circle
    gc.collect()


def _by_collection_on_the_loop(agent: FnCallAgent, after: int) -> None:
    events = agent.run([{"role": "user", "content": "go"}])
    for _ in itertools.islice(events, after):
        pass
    held = [events]
    del events

    async def forget() -> None:
        held.clear()
        gc.collect()

    sync.run(forget())


def _by_error(agent: FnCallAgent, after: int) -> None:
    try:
        for number, _ in enumerate(agent.run([{"role": "user", "content": "go"}])):
            if number >= after:
                raise ZeroDivisionError
    except ZeroDivisionError:
        pass


def _by_token(agent: FnCallAgent, after: int) -> None:
    token = CancelToken()
    reason = ""
    for number, event in enumerate(sync.iterate(agent.astream(ASKED, cancel=token))):
        if number == after:
            threading.Thread(target=token.cancel).start()
        reason = getattr(event.event, "stop_reason", reason)
    law(reason == "cancelled", f"a run that was cancelled ended with {reason!r}")


def _by_token_early(agent: FnCallAgent, after: int) -> None:
    token = CancelToken()
    if after % 2:
        token.cancel()
    else:
        threading.Timer(after / 300, token.cancel).start()
    ended = run(agent, cancel=token)
    law(ended.reason == "cancelled", f"a run that was cancelled ended with {ended.reason!r}")
    ended.check_history()


def _by_task(agent: FnCallAgent, after: int) -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(arun(agent, "go"))
        await asyncio.sleep(after / 200)
        task.cancel()
        results = await asyncio.gather(task, return_exceptions=True)
        law(isinstance(results[0], asyncio.CancelledError), f"cancelling gave {results[0]!r}")

    sync.run(cancelled())


def _by_own_loop(agent: FnCallAgent, after: int) -> None:
    async def some() -> None:
        events = agent.astream(ASKED)
        for _ in range(after + 1):
            await anext(events)  # and leaves it open until the loop ends

    asyncio.run(some())


def _never_begun(agent: FnCallAgent, after: int) -> None:
    streams = [agent.run([{"role": "user", "content": "go"}]) for _ in range(after + 1)]
    for stream in streams[::2]:
        stream.close()  # type: ignore[attr-defined]
    begun = sync.batches(agent.astream(ASKED))
    del streams
    begun.close()  # type: ignore[attr-defined]


WAYS = (
    *(_by_break, _by_close, _by_collection, _by_collection_on_the_loop, _by_error, _by_token, _by_token_early),
    *(_by_task, _by_own_loop, _never_begun),
)

_PROGRAM = """
import os, signal, sys, threading, time
from jackfield.agents import FnCallAgent
from jackfield.models import get_chat_model
url, after, way = sys.argv[1], int(sys.argv[2]), sys.argv[3]
model = get_chat_model({"model_type": "openai", "model": "m", "base_url": url, "api_key": "k"})
events = FnCallAgent(llm=model).run([{"role": "user", "content": "go"}])
try:
    for number, _ in enumerate(events):
        if number == after:
            if way == "exit":
                sys.exit("left")
            if way == "fall":
                break
            os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    pass
if way == "interrupt":
    list(model.chat([{"role": "user", "content": "again"}]))
print("left", file=sys.stderr, flush=True)
"""


def _process(after: int, way: str) -> None:
    _agent()
    url = server_of("openai").url
    process = subprocess.Popen([sys.executable, "-c", _PROGRAM, url, str(after), way], stderr=subprocess.PIPE)
    said, took = b"", 0.0
    try:
        said = process.stderr.readline() if process.stderr else b""
        began = time.monotonic()
        process.wait(15)
        took = time.monotonic() - began
    except subprocess.TimeoutExpired:
        law(False, f"the process goes on after {way}")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        if process.stderr:
            process.stderr.close()
    law(said.startswith(b"left"), f"it said {said!r}")
    law(took < SOON_S, f"the process took {took:.1f} s to end after {way}")


def _many_runs() -> None:
    """Check that threads and connections do not accumulate over many runs, each with a plain tool and its own model."""
    server = server_of("openai")
    server.clear()
    server.respond(lambda request: replies.text("done") if len(request.json["messages"]) > 2 else _CALL)
    threads = threading.active_count()

    async def all_at_once() -> None:
        await asyncio.gather(*(arun(FnCallAgent([add], model_of("openai")), "go") for _ in range(100)))

    for _ in range(3):
        sync.run(all_at_once())
    # A hundred concurrent tools use a hundred threads, if a busy machine lets none end before the last one starts.
    law(threading.active_count() <= threads + 120, f"{threads} threads became {threading.active_count()}")


_CALL = replies.tool_call("add", {"a": 1, "b": 2})


def _attempts(dice: random.Random) -> Iterator[Attempt]:
    for way, after in itertools.product(WAYS, range(0, EVENTS, 4)):
        yield Attempt(f"left {way.__name__[1:]} after {after}", partial(_left, way, after))
    yield Attempt("300 runs with models of their own", _many_runs, timeout_s=60)
    yield from (
        Attempt(f"left by {way} in a process", partial(_process, 1, way)) for way in ("exit", "fall", "interrupt")
    )
    while True:
        way, after = dice.choice(WAYS), dice.randrange(EVENTS * 3)
        yield Attempt(f"left {way.__name__[1:]} after {after}", partial(_left, way, after))
        if dice.random() < 0.02:
            ending = dice.choice(["exit", "fall", "interrupt"])
            yield Attempt(f"left by {ending} in a process", partial(_process, dice.randrange(6), ending))


KIND = Kind(
    "If a consumer leaves a stream early, its connection is returned, and the next call succeeds at once.",
    _attempts,
    1.3,
    quick=33,
)
