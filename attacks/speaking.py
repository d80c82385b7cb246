"""What attacks have in common: models of each backend at servers on loopback, and what a run came to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from attacks.kind import law
from jackfield import sync
from jackfield.agents import Agent
from jackfield.events import RunEvent, RunFinished
from jackfield.messages import ASSISTANT, FUNCTION, Message
from jackfield.models import BaseChatModel, Retry
from jackfield.plugins import PluginHost, default_host
from jackfield_testkit.dashscope import FakeDashScope
from jackfield_testkit.responses import FakeResponses
from jackfield_testkit.server import FakeOpenAI

BACKENDS: Mapping[str, tuple[type[FakeOpenAI], Mapping[str, str]]] = {
    "openai": (FakeOpenAI, {}),
    "openai_responses": (FakeResponses, {}),
    "azure": (FakeOpenAI, {"azure_deployment": "mine", "api_version": "2024-10-21"}),
    "qwen_dashscope": (FakeDashScope, {}),
}
KEY = "sk-attack"


@cache
def server_of(backend: str) -> FakeOpenAI:
    """The server of a backend, one for the whole process."""
    return BACKENDS[backend][0]().start()


def model_of(
    backend: str,
    url: str | None = None,
    *,
    key: str | None = KEY,
    retries: int = 0,
    host: PluginHost | None = None,
    generate_cfg: Mapping[str, Any] | None = None,
    **settings: Any,
) -> BaseChatModel:
    """A model of a backend at its server, or at another address. Its retries do not wait."""
    if url is None:
        url = server_of(backend).origin if backend == "azure" else server_of(backend).url
    config = {"model": "m", "base_url": url, "generate_cfg": {"max_retries": retries, **(generate_cfg or {})}}
    if key is not None:
        config["api_key"] = key
    host = host or default_host()
    given: dict[str, Any] = {"processors": [Retry(sleep=_not_at_all)]} if retries else {}
    made: BaseChatModel = host.load("llm", backend)({**config, **BACKENDS[backend][1], **settings}, host=host, **given)
    return made


async def _not_at_all(_seconds: float) -> None:
    await asyncio.sleep(0)


def says(model: BaseChatModel, text: str = "hello") -> str:
    """What a model answers to a question."""
    return sync.run(model.acomplete([Message("user", text)])).get_content()


@dataclass
class Ended:
    """What a run came to."""

    events: list[RunEvent] = field(default_factory=list)

    @property
    def reason(self) -> str:
        """Why it ended; '' if it did not."""
        last = self.events[-1].event if self.events else None
        return last.stop_reason if isinstance(last, RunFinished) else ""

    @property
    def messages(self) -> Sequence[Message]:
        """What it added to the conversation."""
        last = self.events[-1].event if self.events else None
        return last.messages if isinstance(last, RunFinished) else ()

    @property
    def text(self) -> str:
        """The last words."""
        return self.messages[-1].get_text_content() if self.messages else ""

    def check_history(self) -> None:
        """Each call has one result, and no result stands without its call."""
        calls = [message.function_id for message in self.messages if message.function_call]
        results = [message.function_id for message in self.messages if message.role == FUNCTION]
        law(sorted(map(str, calls)) == sorted(map(str, results)), f"calls {calls}, but results {results}")
        law(not self.messages or self.messages[0].role == ASSISTANT, "the answer begins with a result")


async def arun(agent: Agent, text: str | Sequence[Message], **options: Any) -> Ended:
    """Run an agent to its end."""
    ended = Ended()
    messages = [Message("user", text)] if isinstance(text, str) else list(text)
    async for event in agent.astream(messages, **options):
        ended.events.append(event)
    return ended


def run(agent: Agent, text: str | Sequence[Message] = "go", **options: Any) -> Ended:
    """As `arun`, from a program without an event loop."""
    return sync.run(arun(agent, text, **options))


async def longest_pause(work: Awaitable[object]) -> float:
    """How long the event loop was kept from all else while something was done, in seconds of its thread's CPU.

    On a busy machine the clock would tell of others.
    """
    longest = 0.0
    task = asyncio.ensure_future(work)
    while not task.done():
        before = time.thread_time()
        await asyncio.sleep(0.02)
        longest = max(longest, time.thread_time() - before)
    await task
    return longest
