"""The server all are measured against, in a process of its own. What it answers is in the model's name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from jackfield_testkit import replies
from jackfield_testkit.replies import Reply
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


@contextmanager
def running() -> Iterator[str]:
    """The address of a server in another process, so that its work is not counted as anybody's."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.communicate("", timeout=10)


if __name__ == "__main__":
    with FakeOpenAI() as server:
        server.respond(answer)
        print(server.url, flush=True)
        sys.stdin.read()
