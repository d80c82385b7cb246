"""Helpers for backend tests: ask models, and read the requests that their server received."""

# ruff: noqa: S101 - these are tests: they assert, and take fixtures for their effects

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import pytest

from jackfield import sync
from jackfield.events import ModelEvent
from jackfield.messages import Message, MessageLike, ModelResponse
from jackfield.models import BaseChatModel, get_chat_model
from jackfield.tools import FunctionSchema
from jackfield_testkit.dialects import ChatCompletions, Dialect
from jackfield_testkit.server import FakeOpenAI
from jackfield_testkit.suites.base import Suite

T = TypeVar("T")

API_KEY = "sk-test-SECRET"
MODEL = "test-model"
LIMIT_S = 20.0  # far more than any of these conversations takes
TIME_OUTS_S = (0.1, 0.4, 1.6, 6.4)
"""Timeouts in seconds that a test tries in turn: the first is short, and a later one suffices on a busy machine."""
HELLO: Sequence[MessageLike] = (Message("user", "hello"),)
WEATHER: FunctionSchema = {
    "name": "get_weather",
    "description": "The weather at a place.",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
}
CLOCK: FunctionSchema = {
    "name": "get_time",
    "description": "The time.",
    "parameters": {"type": "object", "properties": {}, "required": []},
}


class LLMTests(Suite):
    """Base class of all test groups for backends.

    Attributes:
        component: The backend to test, as `distribution/name`, or only the name if it is unique.
        config: Configuration keys, other than model, address and API key.
        secrets: The environment variables that may contain the API key. If None, those in its descriptor are used.
        dialect: The protocol that the backend speaks; see `jackfield_testkit.dialects`.
        unsupported_options: Jackfield options that the protocol does not support, with reasons. A call that sets one
            must be rejected before anything is sent, with an error that names the option, so that no caller believes it
            took effect.
        patience_s: How long to wait for something that should happen immediately, in seconds.
    """

    component: ClassVar[str]
    config: ClassVar[Mapping[str, object]] = {}
    secrets: ClassVar[Sequence[str] | None] = None
    dialect: ClassVar[Dialect] = ChatCompletions()
    unsupported_options: ClassVar[Mapping[str, str]] = {}
    patience_s: ClassVar[float] = 10.0

    def make_model(self, server_url: str, **overrides: Any) -> BaseChatModel:
        """Create a model that uses the server at this URL. Override this if yours is configured differently."""
        return get_chat_model(
            {
                "model_type": self.component,
                "model": MODEL,
                "base_url": server_url,
                "api_key": API_KEY,
                **self.config,
                **overrides,
            }
        )

    def make_server(self) -> FakeOpenAI:
        """Create the server for the backend. Override this if it differs in more than its dialect."""
        return FakeOpenAI(dialect=self.dialect)

    @pytest.fixture
    def server(self) -> Iterator[FakeOpenAI]:
        """Yield a server for this test only."""
        with self.make_server() as server:
            yield server

    @pytest.fixture
    def model(self, server: FakeOpenAI) -> Iterator[BaseChatModel]:
        """Yield a model that uses the server."""
        model = self.make_model(server.url)
        _repeat_nothing(model)
        yield model
        sync.run(model.aclose())


def _repeat_nothing(model: BaseChatModel) -> None:
    """Disable retries, so that failures appear immediately, unless the model's configuration or a call sets them."""
    given = model.config.generate_cfg
    if "max_retries" not in given.model_fields_set:
        model.config = model.config.model_copy(update={"generate_cfg": given.merged({"max_retries": 0})})


def run_with(model: BaseChatModel, work: Callable[[], Awaitable[T]], *, limit_s: float = LIMIT_S) -> T:
    """Run a coroutine on its own event loop, and close everything the model opened there.

    If the coroutine does not finish within `limit_s` seconds, it fails rather than letting the test hang.
    """

    _repeat_nothing(model)

    async def whole() -> T:
        limit = asyncio.timeout(limit_s)
        try:
            async with limit:
                return await work()
        except TimeoutError:
            if limit.expired():
                pytest.fail(f"the backend did not finish within {limit_s:g} s")
            raise
        finally:
            await model.aclose()

    return asyncio.run(whole())


def answer_of(
    model: BaseChatModel,
    messages: Sequence[MessageLike] = HELLO,
    functions: Sequence[FunctionSchema] = (),
    config: Mapping[str, object] | None = None,
    *,
    limit_s: float = LIMIT_S,
) -> ModelResponse:
    """Return one complete answer."""
    return run_with(model, lambda: model.acomplete(messages, functions, config=config), limit_s=limit_s)


def events_of(
    model: BaseChatModel,
    messages: Sequence[MessageLike] = HELLO,
    functions: Sequence[FunctionSchema] = (),
    config: Mapping[str, object] | None = None,
) -> list[ModelEvent]:
    """Return the backend's own events, without retries and other processors."""

    async def gather() -> list[ModelEvent]:
        request = model.make_request(messages, functions, config=config)
        return [event async for event in model.stream(request)]

    return run_with(model, gather)


async def close(events: object) -> None:
    """Close a stream before its end."""
    aclose = getattr(events, "aclose", None)
    assert aclose is not None, "a stream must have `aclose`, as async generators do"
    await aclose()


# --- requests at the server ---


def connections_to(server: FakeOpenAI) -> int:
    """Return the number of connections opened so far, including those that the server has not accepted yet."""
    own = http.client.HTTPConnection(server.origin.removeprefix("http://"), timeout=10)
    # Connections are accepted in order of arrival, so all earlier ones are counted.
    own.request("GET", "/v1/models")
    own.getresponse().read()
    own.close()
    return server.connections - 1


def sent(server: FakeOpenAI, number: int = -1) -> dict[str, Any]:
    """Return the body of a request, by default the last one."""
    assert server.requests, "the backend sent no request"
    body = server.requests[number].json
    assert isinstance(body, dict), "the request body is not a JSON object"
    return body


def sent_messages(server: FakeOpenAI) -> list[dict[str, Any]]:
    """Return the messages of the last request."""
    messages = sent(server).get("messages")
    assert isinstance(messages, list), "the request contains no list of messages"
    return messages


def text_of(message: Mapping[str, Any]) -> str:
    """Return the text of a message as sent, where the content is either a string or a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if part.get("type") == "text")
    return content or ""


def all_text(messages: Sequence[Mapping[str, object]], role: str) -> str:
    """Return the texts of all messages with one role."""
    return "\n".join(text_of(message) for message in messages if message["role"] == role)


def assert_calls_are_answered(messages: Sequence[Mapping[str, Any]]) -> None:
    """Fail unless every call is followed by its result and every result follows its call, as servers require."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message.get("tool_call_id") in waiting, (
                f"the result does not belong to any pending call {waiting}: {message}"
            )
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting, f"calls {waiting} have no result before the next message: {message}"
        ids = [call["id"] for call in message.get("tool_calls") or ()]
        assert len(set(ids)) == len(ids), f"two calls in a message have the same id: {message}"
        waiting = ids
    assert not waiting, f"calls {waiting} have no result"
