"""The servers all are measured against, in a process of their own. What they answer is in the model's name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from jackfield_testkit import replies
from jackfield_testkit.anthropic import AnthropicMessages
from jackfield_testkit.dashscope import FakeDashScope
from jackfield_testkit.replies import Reply
from jackfield_testkit.responses import FakeResponses
from jackfield_testkit.server import FakeOpenAI, RecordedRequest

SHORT = replies.text("ok")
LONG = replies.text(["chunk of text "] * 10_000)
PACED = replies.text(["chunk of text "] * 500).paced(0.001)


def answer(request: RecordedRequest) -> Reply:
    """`short`, `long`, `paced`; `tools-N[-MS]`: N calls, one a turn, then a word; `parallel-N`: N calls at once."""
    kind, *numbers = request.model.split("-")
    messages = request.json["messages"]
    results = sum(message["role"] in ("tool", "function") for message in messages)
    match kind:
        case "short":
            return SHORT
        case "long":
            return LONG
        case "paced":
            return PACED
        case "tools":
            delay_s = int(numbers[1]) / 1000 if len(numbers) > 1 else 0.0
            more = results < int(numbers[0])
            reply = replies.tool_call("add", {"a": results, "b": 2}, id=f"call_{results}") if more else SHORT
            return reply.delayed(delay_s) if delay_s else reply
        case "parallel":
            if results:
                return SHORT
            calls = [replies.ToolCall("wait", "{}", id=f"call_{n}") for n in range(int(numbers[0]))]
            return replies.tool_calls(calls)
        case _:
            return replies.error(404, f"no model {request.model}")


BACKENDS = ("openai", "qwen_dashscope", "anthropic", "openai_responses")


@dataclass(frozen=True)
class Servers:
    """Whom the peers ask, and whom we ask: with another backend, a server with the same answers in its protocol."""

    backend: str
    chat: str
    ours: str


@contextmanager
def running(backend: str) -> Iterator[Servers]:
    """Servers in another process, so that their work is not counted as anybody's."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        urls = process.stdout.readline().split()
        yield Servers(backend, urls[0], urls[BACKENDS.index(backend)])
    finally:
        process.communicate("", timeout=10)


if __name__ == "__main__":
    with (
        FakeOpenAI() as chat,
        FakeDashScope() as native,
        FakeOpenAI(dialect=AnthropicMessages()) as messages,
        FakeResponses() as responses,
    ):
        servers = (chat, native, messages, responses)  # in the order of BACKENDS
        for server in servers:
            server.respond(answer)
        print(*(server.url for server in servers), flush=True)
        sys.stdin.read()
