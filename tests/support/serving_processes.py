"""Processes that serve one agent over one store, and are killed. The tests and the attack `serving` use them.

They are forked from a process that has imported everything, because starting Python anew takes a second each time.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import multiprocessing.process
import os
import random
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from jackfield import FnCallAgent, tool
from jackfield.errors import JackfieldError
from jackfield.events import FunctionCallDelta, RunFinished, StreamReset, TextDelta, TurnFinished, TurnStarted
from jackfield.messages import ASSISTANT, FUNCTION
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, Step, answer, calls
from jackfield.tools import ToolContext
from jackfield_serving import Numbered, Serving, ServingLimits

_PROCESSES = multiprocessing.get_context("forkserver")
CALLS = 4
ANSWER = "All the letters have been sent, each of them once, and nothing else was done."


def make_agent(folder: Path, *, pause_s: float = 0.01, needs_approval: bool = False) -> FnCallAgent:
    """Return an agent whose runs send some letters; each letter is a line of a file in the folder.

    Its model depends on nothing but the request, so every process continues any run.
    """

    @tool(needs_approval=needs_approval)
    async def send(number: int, context: ToolContext) -> str:
        """Send a letter."""
        await asyncio.sleep(pause_s)
        with (folder / "letters").open("a") as file:
            file.write(f"{context.run_id} {number}\n")
        return f"letter {number} is sent"

    def script(request: ChatRequest) -> Step:
        done = sum(message.role == FUNCTION for message in request.messages)
        if any(message.role == ASSISTANT for message in request.messages) or done < CALLS:
            return answer(ANSWER) if done >= CALLS else call_of_letter(done)
        return answer(ANSWER)

    return FnCallAgent([send], ScriptedModel(script), name="clerk")


def call_of_letter(number: int) -> Step:
    """Return the answer that sends a letter. Each call has an id of its own: an answer to one is none to the next."""
    events = calls(("send", {"number": number}), text="One more letter.")
    return [replace(one, id=f"letter_{number}") if isinstance(one, FunctionCallDelta) else one for one in events]


def letters(folder: Path) -> Counter[str]:
    """Return how often each letter was sent, by the run and the number."""
    with suppress(FileNotFoundError):
        return Counter((folder / "letters").read_text().splitlines())
    return Counter()


def make_serving(folder: Path, store: Mapping[str, Any], **options: Any) -> Serving:
    """Return a service of the agent."""
    limits = ServingLimits(runs=16, queue=200)
    return Serving({"clerk": make_agent(folder)}, store=dict(store), limits=limits, recover_every_s=0.2, **options)


@dataclass
class Server:
    """A process that serves."""

    process: multiprocessing.process.BaseProcess
    connection: Connection
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    async def begin(cls, folder: Path, store: Mapping[str, Any]) -> Self:
        """Start a process, and wait until it serves."""
        ours, theirs = _PROCESSES.Pipe()
        process = _PROCESSES.Process(target=_main, args=(folder, store, theirs), daemon=True)
        process.start()
        theirs.close()
        server = cls(process, ours)
        await server.ask({"ready": True})
        return server

    async def ask(self, command: Mapping[str, Any]) -> Any:
        """Return the answer to a command; None if the process ends before."""

        def exchange() -> Any:
            with suppress(OSError, EOFError):
                self.connection.send(command)
                return self.connection.recv()

        async with self._turn:
            return await asyncio.get_running_loop().run_in_executor(None, exchange)

    async def kill(self) -> None:
        """End the process as `kill -9` does."""
        self.process.kill()
        await asyncio.get_running_loop().run_in_executor(None, self.process.join)


@dataclass
class Follower:
    """A client that follows one run to its end, decides about calls in doubt, and looks for what came twice."""

    serving: Serving
    run_id: str
    folder: Path
    faults: list[str] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    text: str = ""
    number: int = 0
    is_finished: bool = False

    async def follow(self) -> None:
        """Follow the run until it has finished."""
        while not self.is_finished:
            async for numbered in self.serving.attach(self.run_id, after=self.number):
                self._take(numbered)
            if not self.is_finished:
                await self._decide()

    def _take(self, numbered: Numbered) -> None:
        number, event = numbered
        if number <= self.number:
            self.faults.append(f"{self.run_id}: number {number} came after {self.number}")
        self.number = number
        match event.event:
            case TurnStarted() | StreamReset():
                self.text = ""
            case TextDelta(text=text):
                self.text += text
            case TurnFinished(turn=turn, messages=messages):
                self.turns.append(turn)
                whole = "".join(message.get_text_content() for message in messages)
                if whole != self.text:
                    self.faults.append(f"{self.run_id}: turn {turn} is {whole!r}, and came as {self.text!r}")
            case RunFinished(stop_reason=reason):
                self.is_finished = reason == "finished"

    async def _decide(self) -> None:
        """Allow calls in doubt that were not made, and refuse the others, as a person would."""
        run = await self.serving.run(self.run_id)
        if run.phase == "ended":
            self.faults.append(f"{self.run_id} ended with {run.stop_reason} {run.error}")
            self.is_finished = True
        sent = letters(self.folder)
        answers = {
            waiting.call_id: f"{self.run_id} {json.loads(waiting.call.arguments)['number']}" not in sent
            for waiting in run.waiting
        }
        if answers:
            with suppress(JackfieldError):
                await self.serving.answer(self.run_id, answers)


async def kill_servers(
    folder: Path, store: Mapping[str, Any], *, rounds: int, servers: int = 3, seed: int = 0, runs_per_round: int = 4
) -> list[str]:
    """Kill one of several servers under load, so many times; return what went wrong.

    No run is lost, no step comes twice, no letter is sent twice, and every follower continues at its number.
    """
    _PROCESSES.set_forkserver_preload([__name__, "jackfield_sqlite_store.store", "jackfield_postgres_store.store"])
    dice = random.Random(seed)
    faults: list[str] = []
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(make_serving(folder, store))
        living = [await Server.begin(folder, store) for _ in range(servers)]
        followers: list[Follower] = []
        tasks: list[asyncio.Task[None]] = []
        try:
            for _ in range(rounds):
                victim = dice.randrange(len(living))
                for _ in range(runs_per_round):
                    run_id = await living[dice.randrange(len(living))].ask({"start": "Send the letters."})
                    followers.append(Follower(client, run_id, folder))
                    tasks.append(asyncio.create_task(followers[-1].follow()))
                await asyncio.sleep(dice.random() * 0.15)
                await living[victim].kill()
                living[victim] = await Server.begin(folder, store)
            async with asyncio.timeout(60 + 2 * rounds):
                await asyncio.gather(*tasks)
        except TimeoutError:
            late = [one.run_id for one in followers if not one.is_finished]
            faults += [f"{run_id} did not end: {(await client.run(run_id)).phase}" for run_id in late[:5]]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for server in living:
                await server.kill()
        faults += [fault for one in followers for fault in one.faults]
        for one in followers:
            if one.turns != sorted(set(one.turns)):
                faults.append(f"{one.run_id}: turns {one.turns}")
            run = await client.run(one.run_id)
            if run.text != ANSWER or len(one.turns) != CALLS + 1:
                faults.append(f"{one.run_id}: {run.phase} {run.stop_reason} {run.text!r} after turns {one.turns}")
        sent = letters(folder)
        wanted = {f"{one.run_id} {number}" for one in followers for number in range(CALLS)}
        faults += [f"letter {letter} was sent {count} times" for letter, count in sent.items() if count > 1]
        faults += [f"letter {letter} was not sent" for letter in sorted(wanted - sent.keys())[:5]]
    return faults


def _main(folder: Path, store: Mapping[str, Any], connection: Connection) -> None:
    with suppress(EOFError, KeyboardInterrupt):
        asyncio.run(_serve(folder, store, connection))


async def _serve(folder: Path, store: Mapping[str, Any], connection: Connection) -> None:
    loop = asyncio.get_running_loop()
    async with make_serving(folder, store) as serving:
        while True:
            command = await loop.run_in_executor(None, connection.recv)
            try:
                reply = await _obey(serving, command)
            except JackfieldError as error:
                reply = {"error": type(error).__name__}
            connection.send(reply)


async def _obey(serving: Serving, command: Mapping[str, Any]) -> Any:
    match command:
        case {"start": str(question)}:
            return await serving.start("clerk", question)
        case {"drain": float(seconds)}:
            return await serving.drain(seconds)
    return os.getpid()
