"""A server that we did not write, with a tiny model made on the spot: `transformers serve`, or one that is running.

`REAL_SERVER_URL` and `REAL_SERVER_MODEL` name one that is running; `make real-servers` starts others so. The model's
weights are random: what it says means nothing, and shapes, errors and connections are real.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing as closing_now
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jackfield import FnCallAgent, get_chat_model, tool
from jackfield.errors import ModelNotFoundError, ModelRequestError, ModelServiceError
from jackfield.events import ModelFinished, RunFinished, TextDelta, UsageReported
from jackfield.messages import FunctionCall, Message
from jackfield.models import BaseChatModel
from jackfield.streams import CancelToken, closing

pytestmark = [pytest.mark.slow, pytest.mark.timeout(420)]

ROOT = Path(__file__).resolve().parent.parent
START_S = 240.0  # it imports torch, on a machine that does other things, too
HELLO = [Message("user", "hello")]
# Makes a model and serves it, in one process: torch takes longer to import than all tests here.
SERVE = """
import sys
from pathlib import Path
sys.path.append(sys.argv.pop(1))
from tests.support.tiny_model import make_model
make_model(Path(sys.argv[-1]))
from transformers.cli.transformers import main
main()
"""


@dataclass(frozen=True)
class Server:
    """Where it is, and what its model is called."""

    url: str
    model: str

    def make(self, backend: str = "openai", **settings: Any) -> BaseChatModel:
        given = {"max_tokens": 12, "seed": 1, "request_timeout": 180, **settings.pop("generate_cfg", {})}
        return get_chat_model(
            {
                "model_type": backend,
                "model": self.model,
                "base_url": self.url,
                "api_key": "sk-none",
                "generate_cfg": given,
                **settings,
            }
        )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if url := os.environ.get("REAL_SERVER_URL"):
        yield Server(url, os.environ["REAL_SERVER_MODEL"])
        return
    folder = tmp_path_factory.mktemp("tiny")
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    serve = ["serve", "--host", "127.0.0.1", "--port", str(port), "--device", "cpu", str(folder)]
    log = folder / "log"
    with log.open("wb") as out:
        command = [sys.executable, "-c", SERVE, str(ROOT), *serve]
        process = subprocess.Popen(command, env=env, stdout=out, stderr=out)
    try:
        _wait_until_it_answers(process, f"http://127.0.0.1:{port}/health", log)
        yield Server(f"http://127.0.0.1:{port}/v1", str(folder))
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_it_answers(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    give_up = time.monotonic() + START_S
    while time.monotonic() < give_up:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=10):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    pytest.fail(f"the server does not answer: {log.read_text(errors='replace')[-3000:]}")


@pytest.fixture(scope="module")
def model(server: Server) -> BaseChatModel:
    return server.make()


# --- answers ---


def test_a_whole_answer_has_its_reason_and_what_it_cost(model: BaseChatModel) -> None:
    answer = _ask(model)
    assert answer.finish_reason in ("stop", "length")
    assert answer.usage.prompt_tokens > 0
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_stream_ends_with_its_reason_and_says_what_it_cost(model: BaseChatModel) -> None:
    events = asyncio.run(_gathered(model))
    assert isinstance(events[-1], ModelFinished)
    assert sum(isinstance(event, UsageReported) for event in events) >= 1
    assert all(isinstance(event, TextDelta | UsageReported | ModelFinished) for event in events)


def test_tools_and_their_results_are_understood(model: BaseChatModel) -> None:
    call = Message("assistant", "", function_call=FunctionCall("add", '{"a": 1}'), extra={"function_id": "call_1"})
    result = Message("function", "2", name="add", extra={"function_id": "call_1"})
    history = [*HELLO, call, result, Message("user", "and now?")]
    schema = {"name": "add", "description": "Add.", "parameters": {"type": "object", "properties": {}}}
    answer = asyncio.run(model.acomplete(history, [schema]))
    assert answer.finish_reason


def test_an_agent_with_a_tool_comes_to_an_end(model: BaseChatModel) -> None:
    @tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    async def run() -> list[Any]:
        agent = FnCallAgent([add], model, limits={"turns": 2})
        return [event.event async for event in agent.astream(HELLO)]

    last = asyncio.run(run())[-1]
    assert isinstance(last, RunFinished)
    assert last.stop_reason in ("finished", "turn_limit", "empty_reply")


def test_the_responses_api_answers_where_there_is_one(server: Server) -> None:
    model = server.make("openai_responses")
    try:
        answer = _ask(model)
    except ModelServiceError as error:
        if isinstance(error, ModelNotFoundError) or error.status == 500:  # LiteLLM's mock answers none
            pytest.skip(f"this server has no Responses: {error}")
        raise
    assert answer.usage.prompt_tokens > 0


# --- errors ---


def test_a_model_that_is_not_there_is_an_error_that_no_repetition_mends(server: Server) -> None:
    model = server.make(model="no-such-model")
    with pytest.raises(ModelRequestError) as caught:
        _ask(model)
    assert not caught.value.retryable
    assert "no-such-model" in str(caught.value)


def test_an_error_in_a_request_leaves_the_next_one_alone(server: Server, model: BaseChatModel) -> None:
    with pytest.raises(ModelServiceError):
        _ask(server.make(generate_cfg={"extra_body": {"messages": "none"}}))
    assert _ask(model).finish_reason


# --- connections ---


def test_fifty_calls_in_a_row_are_answered(model: BaseChatModel) -> None:
    async def fifty() -> list[str | None]:
        options = {"max_tokens": 2}
        return [(await model.acomplete(HELLO, config=options)).finish_reason for _ in range(50)]

    assert all(asyncio.run(fifty()))


def test_calls_at_once_are_answered(model: BaseChatModel) -> None:
    with ThreadPoolExecutor(6) as pool:
        assert all(answer.finish_reason for answer in pool.map(lambda _: _ask(model), range(12)))


def test_whoever_leaves_in_the_middle_can_ask_again_at_once(server: Server, model: BaseChatModel) -> None:
    long = server.make(generate_cfg={"max_tokens": 600})

    async def leave(after: int) -> None:
        async with closing(long.astream(HELLO)) as events:
            async for number, event in _numbered(events):
                if number >= after or isinstance(event, ModelFinished):
                    break

    for after in (0, 1, 5):
        asyncio.run(leave(after))
        assert _ask(model).finish_reason


def test_a_cancelled_run_ends_as_such_and_the_next_one_works(server: Server, model: BaseChatModel) -> None:
    agent = FnCallAgent([], server.make(generate_cfg={"max_tokens": 600}))
    token = CancelToken()
    token.cancel()

    async def run() -> list[Any]:
        return [event.event async for event in agent.astream(HELLO, cancel=token)]

    assert asyncio.run(run())[-1].stop_reason == "cancelled"
    assert _ask(model).finish_reason


def test_growing_lists_left_early_give_the_connection_back(server: Server, model: BaseChatModel) -> None:
    with closing_now(
        server.make(generate_cfg={"max_tokens": 600}).chat([{"role": "user", "content": "hello"}])
    ) as lists:
        next(lists)
    assert _ask(model).finish_reason


def _ask(model: BaseChatModel) -> Any:
    return asyncio.run(model.acomplete(HELLO))


async def _gathered(model: BaseChatModel) -> list[Any]:
    return [event async for event in model.astream(HELLO)]


async def _numbered(events: Any) -> Any:
    number = 0
    async for event in events:
        yield number, event
        number += 1
