"""Common parts of attacks: models of each backend with servers on loopback, and the outcome of a run."""

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
    """Return a backend's server, which is shared by the whole process."""
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
    """Create a backend's model that uses its server or another URL. Retries do not wait."""
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
    """Return a model's answer to a question."""
    return sync.run(model.acomplete([Message("user", text)])).get_content()


@dataclass
class Ended:
    """The outcome of a run."""

    events: list[RunEvent] = field(default_factory=list)

    @property
    def reason(self) -> str:
        """The stop reason, or '' if the run did not finish."""
        last = self.events[-1].event if self.events else None
        return last.stop_reason if isinstance(last, RunFinished) else ""

    @property
    def messages(self) -> Sequence[Message]:
        """The messages that the run added to the conversation."""
        last = self.events[-1].event if self.events else None
        return last.messages if isinstance(last, RunFinished) else ()

    @property
    def text(self) -> str:
        """The text of the last message."""
        return self.messages[-1].get_text_content() if self.messages else ""

    def check_history(self) -> None:
        """Check that each call has exactly one result, and each result has a call."""
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
    """Sync version of `arun`."""
    return sync.run(arun(agent, text, **options))


async def longest_pause(work: Awaitable[object]) -> float:
    """Return the longest time that `work` blocked the event loop, in seconds of the loop thread's CPU time.

    On a busy machine, wall-clock time would include the work of other processes.
    """
    longest = 0.0
    task = asyncio.ensure_future(work)
    while not task.done():
        before = time.thread_time()
        await asyncio.sleep(0.02)
        longest = max(longest, time.thread_time() - before)
    await task
    return longest
