"""Servers that all programs are measured against, in a separate process. The model's name determines the answer."""

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
    """Answer by model name: `short`, `long`, `paced`, `tools-N[-MS]` or `parallel-N`.

    `tools-N` makes N calls, one per turn, then answers with a word. `parallel-N` makes N calls at once.
    """
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
    """The servers that we and the peers use. With another backend, ours gives the same answers in its own protocol."""

    backend: str
    chat: str
    ours: str


@contextmanager
def running(backend: str) -> Iterator[Servers]:
    """Run the servers in another process, so that their work is not counted."""
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
