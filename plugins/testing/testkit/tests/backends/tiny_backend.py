"""A backend on plain streams that keeps the contract, and ones that each break it in one place.

It exists to test the suite: every test must pass for the first, and some must fail for each of the others.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import re
import select
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

from jackfield.errors import (
    ConfigError,
    ContentFilterError,
    ContextLengthError,
    ModelAuthError,
    ModelConnectionError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelRequestError,
    ModelResponseError,
    ModelServiceError,
    ModelTimeoutError,
    RateLimitedError,
)
from jackfield.events import (
    FunctionCallDelta,
    ModelEvent,
    ModelFinished,
    ReasoningDelta,
    TextDelta,
    UsageReported,
)
from jackfield.messages import FINISH_REASONS, Message, Usage, as_messages
from jackfield.models import BaseChatModel, retry_request
from jackfield.quoting import quote_text
from jackfield.request import ChatRequest, ModelFacts
from jackfield.secrets import ForgetLocals
from jackfield_http import Halves
from jackfield_http.headers import retry_after_s
from jackfield_http.keys import is_loopback

OPTIONS = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "max_tokens", "seed", "response_format")
CLASSES: Mapping[int, type[ModelServiceError]] = {
    401: ModelAuthError,
    403: ModelAuthError,
    404: ModelNotFoundError,
    429: RateLimitedError,
}
BY_CODE: Mapping[str, type[ModelServiceError]] = {
    "context_length_exceeded": ContextLengthError,
    "content_filter": ContentFilterError,
}
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Tiny(BaseChatModel):
    """The one that keeps the contract."""

    backend = "tiny"

    def __init__(self, config: Any, **options: Any) -> None:
        super().__init__(config, **options)
        self._idle: WeakKeyDictionary[asyncio.AbstractEventLoop, list[Connection]] = WeakKeyDictionary()

    @property
    def facts(self) -> ModelFacts:
        return ModelFacts(context_tokens=4096)

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        timeout_s = request.config.request_timeout or 1
        reusable = False
        with ForgetLocals(), self.translated():
            connection, status, headers = await self.ask(request, timeout_s)
            try:
                body = read_body(connection[0], headers, timeout_s)
                if status != 200:
                    raise self.failure(status, headers, b"".join([part async for part in body]))
                if "event-stream" in headers["content-type"]:
                    async for event in self.read_stream(body, request.config.event_timeout or 10 * timeout_s):
                        yield event
                else:
                    for event in self.read_whole(b"".join([part async for part in body])):
                        yield event
                reusable = await self.has_ended(body) and await self.is_clean(connection)
            finally:
                self.give_back(connection, reusable=reusable)

    async def alist_models(self) -> list[str]:
        with ForgetLocals():
            return await retry_request(self.fetch_names, max_retries=self.config.generate_cfg.max_retries)

    async def fetch_names(self) -> list[str]:
        with self.translated():
            connection = await self.connect()
            try:
                async with asyncio.timeout(self.config.generate_cfg.request_timeout or 1):
                    self.send_get(connection)
                    status, headers = await read_head(connection[0])
                    body = b"".join([part async for part in read_body(connection[0], headers, 1)])
            finally:
                self.give_back(connection, reusable=False)
            if status != 200:
                raise self.failure(status, headers, body)
            return self.read_names(body)

    def send_get(self, connection: Connection) -> None:
        path = urlsplit(self.config.server_url or "").path
        head = f"GET {path}/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.key}\r\n\r\n"
        connection[1].write(head.encode())

    def read_names(self, body: bytes) -> list[str]:
        try:
            return [entry["id"] for entry in json.loads(body)["data"]]
        except (LookupError, TypeError, ValueError):
            raise ModelResponseError("the server sent no list of models", backend=self.backend) from None

    async def aclose(self) -> None:
        for _, writer in self._idle.pop(asyncio.get_running_loop(), []):
            writer.transport.abort()
        await asyncio.sleep(0)

    # --- connections ---

    async def ask(self, request: ChatRequest, timeout_s: float) -> tuple[Connection, int, dict[str, str]]:
        """Send the request, once more if a kept connection ends without an answer."""
        kept = await self.kept()
        connection = kept or await self.connect()
        try:
            return connection, *await self.begin(connection, request, timeout_s)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            if not self.may_ask_again(kept) or getattr(error, "partial", b""):
                raise
        connection = await self.connect()
        return connection, *await self.begin(connection, request, timeout_s)

    def may_ask_again(self, kept: Connection | None) -> bool:
        return kept is not None

    async def begin(self, connection: Connection, request: ChatRequest, timeout_s: float) -> tuple[int, dict[str, str]]:
        try:
            self.send(connection, request)
            async with asyncio.timeout(timeout_s):
                return await read_head(connection[0])
        except BaseException:
            self.give_back(connection, reusable=False)
            raise

    async def kept(self) -> Connection | None:
        """A connection that nothing has happened to."""
        idle = self._idle.setdefault(asyncio.get_running_loop(), [])
        while idle:
            connection = idle.pop()
            if await self.is_clean(connection):
                return connection
            self.give_back(connection, reusable=False)
        return None

    async def has_ended(self, body: AsyncIterator[bytes]) -> bool:
        return await has_ended(body)

    async def is_clean(self, connection: Connection) -> bool:
        """Whether the server has neither left nor said anything."""
        socket = connection[1].get_extra_info("socket")
        if socket.fileno() < 0 or select.select([socket], [], [], 0)[0]:
            return False
        return not await is_there(connection[0].read(1))

    async def connect(self) -> Connection:
        target = urlsplit(self.config.server_url or "")
        address = urlsplit(self.proxy() or self.config.server_url or "")
        return await asyncio.open_connection(address.hostname, address.port, ssl=target.scheme == "https")

    def proxy(self) -> str | None:
        target = urlsplit(self.config.server_url or "")
        return None if proxy_bypass(target.netloc) else getproxies().get(target.scheme)

    def give_back(self, connection: Connection, *, reusable: bool) -> None:
        if reusable:
            self._idle.setdefault(asyncio.get_running_loop(), []).append(connection)
        else:
            connection[1].transport.abort()

    def send(self, connection: Connection, request: ChatRequest) -> None:
        body = json.dumps(self.body(request)).encode()
        own = {
            "Host": "localhost",
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
        }
        headers = self.headers(own, request.config.extra_headers)
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        url = self.config.server_url or ""
        path = url if self.proxy() else urlsplit(url).path
        connection[1].write(f"POST {path}/chat/completions HTTP/1.1\r\n{lines}\r\n".encode() + body)

    def headers(self, own: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
        taken = {name.lower() for name in own}
        return {**own, **{name: value for name, value in extra.items() if name.lower() not in taken}}

    @property
    def key(self) -> str:
        if self.config.api_key:
            return self.config.api_key.get_secret_value()
        return os.environ.get("TINY_KEY", "") if self.is_trusted(self.config.server_url or "") else ""

    def is_trusted(self, url: str) -> bool:
        return is_loopback(url)

    # --- the request ---

    def body(self, request: ChatRequest) -> dict[str, Any]:
        config = request.config
        body: dict[str, Any] = {
            "model": request.model,
            "messages": self.wire(request.messages),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        body |= {name: getattr(config, name) for name in OPTIONS if getattr(config, name) is not None}
        if config.stop:
            body["stop"] = list(config.stop)
        if request.functions:
            body["tools"] = [{"type": "function", "function": dict(function)} for function in request.functions]
            choice = config.function_choice
            plain = choice in ("auto", "none", "required")
            body["tool_choice"] = choice if plain else {"type": "function", "function": {"name": choice}}
        return body | config.extra_body

    def wire(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        wire: list[dict[str, Any]] = []
        for message in messages:
            text = message.get_text_content()
            if message.role == "function":
                wire.append({"role": "tool", "content": text, "of": message.function_id, "name": message.name})
            elif message.role != "assistant":
                wire.append({"role": message.role, "content": text})
            else:
                if not (wire and wire[-1]["role"] == "assistant"):
                    wire.append({"role": "assistant", "content": ""})
                self.add_to(wire[-1], message, text)
        return self.matched(wire)

    def matched(self, wire: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return answered(wire)

    def add_to(self, answer: dict[str, Any], message: Message, text: str) -> None:
        answer["content"] = "\n".join(part for part in (answer["content"], text) if part)
        if message.function_call:
            function = {"name": message.function_call.name, "arguments": message.function_call.arguments}
            call = {"id": message.function_id, "type": "function", "function": function}
            answer.setdefault("tool_calls", []).append(call)

    # --- the answer ---

    async def read_stream(self, parts: AsyncIterator[bytes], patience_s: float) -> AsyncIterator[ModelEvent]:
        reader = ChunkReader()
        last_at = time.monotonic()
        async for line in lines_of(parts):
            if not line.startswith(b"data:"):
                if time.monotonic() - last_at > patience_s:
                    raise ModelTimeoutError("the server sends comments alone", backend=self.backend)
                continue
            last_at = time.monotonic()
            data = line[5:].strip()
            if data == b"[DONE]":
                break
            for event in self.read_chunk(reader, self.parse(data)):
                yield event
        else:
            data = b""
        for event in reader.halves.rest():
            yield event
        if reader.end is None:
            raise ModelResponseError("the stream ended in the middle", backend=self.backend)
        yield reader.end

    def read_chunk(self, reader: ChunkReader, chunk: dict[str, Any]) -> Iterator[ModelEvent]:
        if "error" in chunk:
            code = self.without_key(chunk["error"].get("code") or "")
            raise ModelOverloadedError(self.without_key(chunk["error"]["message"]), backend=self.backend, code=code)
        return reader.read(chunk)

    def read_whole(self, body: bytes) -> Iterator[ModelEvent]:
        value = self.parse(body)
        if not isinstance(value.get("choices"), list):
            raise ModelResponseError("the response has no choices", backend=self.backend)
        choice = value["choices"][0]
        calls = [{**call, "index": index} for index, call in enumerate(choice["message"].get("tool_calls") or ())]
        delta = {**choice["message"], "tool_calls": calls}
        reader = ChunkReader()
        yield from reader.read({**value, "choices": [{**choice, "delta": delta}]})
        if reader.end is None:
            raise ModelResponseError("the response has no end", backend=self.backend)
        yield reader.end

    def parse(self, data: bytes) -> dict[str, Any]:
        try:
            value = json.loads(data)
        except ValueError:
            raise ModelResponseError("the server sent what is no JSON", backend=self.backend) from None
        if not isinstance(value, dict):
            raise ModelResponseError("the server sent what is no object", backend=self.backend)
        return value

    # --- errors ---

    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelServiceError:
        try:
            told = json.loads(body)["error"]
        except ValueError:
            told = {"message": body[:200].decode(errors="replace")}
        kind = BY_CODE.get(told.get("code") or "") or CLASSES.get(status)
        kind = kind or (ModelOverloadedError if status >= 500 else ModelRequestError)
        return kind(
            self.without_key(f"HTTP {status}: {told['message']}"),
            backend=self.backend,
            code=told.get("code") and self.without_key(told["code"]),
            status=status,
            retry_after_s=self.pause(headers),
            request_id=self.without_key(headers.get("x-request-id", "")),
        )

    def pause(self, headers: Mapping[str, str]) -> float | None:
        return retry_after_s(headers, datetime.now(UTC))

    def without_key(self, text: str) -> str:
        return quote_text(text, self.key)

    @contextmanager
    def translated(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError as error:
            raise ModelTimeoutError("the server is silent", backend=self.backend) from error
        except (OSError, asyncio.IncompleteReadError) as error:
            raise ModelConnectionError(f"the connection failed: {error}", backend=self.backend) from error


class ChunkReader:
    """Turns the chunks of one answer into events."""

    def __init__(self) -> None:
        self.end: ModelFinished | None = None
        self.halves = Halves()

    def read(self, chunk: Mapping[str, Any]) -> Iterator[ModelEvent]:
        yield from self.halves.mend(self.events_of(chunk))

    def events_of(self, chunk: Mapping[str, Any]) -> Iterator[ModelEvent]:
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            reasoning = delta.get("reasoning_content") or delta.get("reasoning")
            if reasoning:
                yield ReasoningDelta(reasoning)
            if delta.get("content"):
                yield TextDelta(delta["content"])
            for part in delta.get("tool_calls") or ():
                function = part.get("function") or {}
                yield FunctionCallDelta(
                    part["index"], part.get("id") or "", function.get("name") or "", function.get("arguments") or ""
                )
            if choice.get("finish_reason"):
                word = choice["finish_reason"]
                reason = word if word in FINISH_REASONS else "other"
                head = (chunk.get("model", ""), chunk.get("id"), chunk.get("created"))
                self.end = ModelFinished(reason, *head, provider_reason=word)
        if chunk.get("usage"):
            yield UsageReported(usage_of(chunk["usage"]))


def usage_of(told: Mapping[str, Any]) -> Usage:
    return Usage(
        prompt_tokens=told["prompt_tokens"],
        completion_tokens=told["completion_tokens"],
        total_tokens=told["total_tokens"],
        cached_tokens=(told.get("prompt_tokens_details") or {}).get("cached_tokens", 0),
        reasoning_tokens=(told.get("completion_tokens_details") or {}).get("reasoning_tokens", 0),
    )


def answered(wire: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with new ids for all calls, each answered right after it; a result of no call becomes text."""
    number, done = 0, []
    for index, message in enumerate(wire):
        if message["role"] == "tool":
            continue
        done.append(message)
        results = []
        for after in wire[index + 1 :]:
            if after["role"] != "tool":
                break
            results.append(after)
        for call in message.get("tool_calls", ()):
            number += 1
            same = [result for result in results if call["id"] is None or result["of"] == call["id"]]
            said = results.pop(results.index(same[0]))["content"] if same else "cancelled"
            call["id"] = call["id"] or f"call_{number}"
            done.append({"role": "tool", "tool_call_id": call["id"], "content": said})
        done += [{"role": "user", "content": f"{left['name']} gave: {left['content']}"} for left in results]
    return done


# --- HTTP ---


async def is_there(read: Awaitable[bytes], wait_s: float = 0.0) -> bool:
    """Whether something, or its end, can be read at once."""
    try:
        async with asyncio.timeout(wait_s):
            await read
    except TimeoutError:
        return False
    return True


async def has_ended(body: AsyncIterator[bytes]) -> bool:
    """Whether a body ends soon; some servers never end that of a stream."""

    async def rest() -> bytes:
        return b"".join([part async for part in body])

    return await is_there(rest(), 0.05)


async def read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    return int(status.split()[1]), {name.lower(): value.strip() for name, _, value in pairs}


async def read_body(reader: asyncio.StreamReader, headers: Mapping[str, str], timeout_s: float) -> AsyncIterator[bytes]:
    if "content-length" in headers:
        async with asyncio.timeout(timeout_s):
            yield await reader.readexactly(int(headers["content-length"]))
        return
    while True:
        async with asyncio.timeout(timeout_s):
            size = int(await reader.readuntil(b"\r\n"), 16)
            part = (await reader.readexactly(size + 2))[:-2]
        if not size:
            return
        yield part


async def lines_of(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest, first = b"", True
    async for part in parts:
        # Whether a carriage return is the whole end of a line does not matter: empty lines mean nothing here.
        *lines, rest = re.split(rb"[\r\n]", rest + part)
        if len(rest) > 1_000_000:
            raise ModelResponseError("the server sent a line without an end", backend="tiny")
        for line in lines:
            yield line.removeprefix(b"\xef\xbb\xbf") if first else line
            first = False
    if rest:
        yield rest


# --- what may go wrong ---


class EndsTwice(Tiny):
    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        async for event in super().stream(request):
            yield event
        yield ModelFinished("stop")


class EndsTwiceWithTools(Tiny):
    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        async for event in super().stream(request):
            yield event
        if request.functions:
            yield ModelFinished("stop")


class EndsEarly(Tiny):
    """Calls every stream complete, wherever it ends."""

    async def read_stream(self, parts: AsyncIterator[bytes], patience_s: float) -> AsyncIterator[ModelEvent]:
        try:
            async for event in super().read_stream(parts, patience_s):
                yield event
        except ModelResponseError:
            yield ModelFinished("stop")


class DecodesPieces(Tiny):
    """Decodes each piece by itself, and so breaks characters that come in two."""

    async def read_stream(self, parts: AsyncIterator[bytes], patience_s: float) -> AsyncIterator[ModelEvent]:
        async for event in super().read_stream(
            (part.decode(errors="replace").encode() async for part in parts), patience_s
        ):
            yield event


class SplitsPieces(Tiny):
    """Takes it that no line is ever cut."""

    async def read_stream(self, parts: AsyncIterator[bytes], patience_s: float) -> AsyncIterator[ModelEvent]:
        async for event in super().read_stream((part + b"\n" async for part in parts), patience_s):
            yield event


class ReadsOneName(Tiny):
    """Knows one of the two fields for reasoning."""

    def parse(self, data: bytes) -> dict[str, Any]:
        return super().parse(data.replace(b'"reasoning":', b'"unknown":'))


class SkipsBrokenChunks(Tiny):
    def parse(self, data: bytes) -> dict[str, Any]:
        try:
            return super().parse(data)
        except ModelResponseError:
            return {}


class WaitsForAll(Tiny):
    """Passes nothing on before the end."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        for event in [event async for event in super().stream(request)]:
            yield event


class KeepsConnections(Tiny):
    """Leaves a connection open that was left in the middle."""

    def give_back(self, connection: Connection, *, reusable: bool) -> None:
        if reusable:
            super().give_back(connection, reusable=True)
        else:
            LEAKED.append(connection)


LEAKED: list[Connection] = []


class ConnectsAnew(Tiny):
    def give_back(self, connection: Connection, *, reusable: bool) -> None:
        super().give_back(connection, reusable=False)


class ReusesBlindly(Tiny):
    """Takes a connection for the next call that still has something in it."""

    async def is_clean(self, connection: Connection) -> bool:
        return True

    def give_back(self, connection: Connection, *, reusable: bool) -> None:
        super().give_back(connection, reusable=True)


class AsksOnce(Tiny):
    """Gives up when a kept connection ends."""

    def may_ask_again(self, kept: Connection | None) -> bool:
        return False


class AlwaysAsksAgain(Tiny):
    """Sends a request once more that a server refused to answer."""

    def may_ask_again(self, kept: Connection | None) -> bool:
        return True


class SharesState(Tiny):
    """Keeps the text of an answer on the model, where other calls find it."""

    pending: str = ""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        self.pending = ""
        async for event in super().stream(request):
            if isinstance(event, TextDelta):
                self.pending += event.text
                await asyncio.sleep(0.001)
                continue
            if isinstance(event, ModelFinished) and self.pending:
                yield TextDelta(self.pending)
            yield event


class KeepsOneAnswer(Tiny):
    """Loses all but the last of several assistant messages."""

    def add_to(self, answer: dict[str, Any], message: Message, text: str) -> None:
        answer["content"] = ""
        super().add_to(answer, message, text)


class LeaksExtra(Tiny):
    def wire(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        return [{**message, "extra": messages[0].extra} for message in super().wire(messages)]


class ForgetsIds(Tiny):
    """Sends results without saying of which call."""

    def wire(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        return [{k: v for k, v in message.items() if k != "tool_call_id"} for message in super().wire(messages)]


class MixesCalls(Tiny):
    """Takes every piece for one of the first call."""

    def read_chunk(self, reader: ChunkReader, chunk: dict[str, Any]) -> Iterator[ModelEvent]:
        for event in super().read_chunk(reader, chunk):
            yield replace(event, index=0) if isinstance(event, FunctionCallDelta) else event


class OptionsStick(Tiny):
    def body(self, request: ChatRequest) -> dict[str, Any]:
        self.config.generate_cfg.extra_body.update(request.config.extra_body)
        return super().body(request)


class PrefersItsOptions(Tiny):
    def body(self, request: ChatRequest) -> dict[str, Any]:
        body = super().body(request)
        options = {name: getattr(request.config, name) for name in OPTIONS}
        return body | {name: value for name, value in options.items() if value is not None}


class SendsDefaults(Tiny):
    def body(self, request: ChatRequest) -> dict[str, Any]:
        return {"temperature": 1.0, **super().body(request)}


class IgnoresTheSeed(Tiny):
    def body(self, request: ChatRequest) -> dict[str, Any]:
        return {name: value for name, value in super().body(request).items() if name != "seed"}


class RetriesByItself(Tiny):
    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        try:
            async for event in super().stream(request):
                yield event
        except ModelOverloadedError:
            async for event in super().stream(request):
                yield event


class BelievesNumbers(Tiny):
    def pause(self, headers: Mapping[str, str]) -> float | None:
        return float(headers.get("retry-after") or 0)


class AsksSooner(Tiny):
    """Makes the server's pause shorter, so that it is asked again too early."""

    def pause(self, headers: Mapping[str, str]) -> float | None:
        asked = super().pause(headers)
        return None if asked is None else min(asked, 1.0)


class OneErrorForAll(Tiny):
    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelServiceError:
        return ModelServiceError(str(super().failure(status, headers, body)), backend=self.backend)


class NeverTimesOut(Tiny):
    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        patient = replace(request, config=request.config.merged({"request_timeout": 60}))
        async for event in super().stream(patient):
            yield event


class TellsTheKey(Tiny):
    def without_key(self, text: str) -> str:
        return text


class KnowsOneForm(Tiny):
    def without_key(self, text: str) -> str:
        return text.replace(self.key, "[key]")


class TellsTheKeyInStreams(Tiny):
    def read_chunk(self, reader: ChunkReader, chunk: dict[str, Any]) -> Iterator[ModelEvent]:
        if "error" in chunk:
            raise ModelOverloadedError(chunk["error"]["message"], backend=self.backend)
        return super().read_chunk(reader, chunk)


class TellsTheKeyOfAConnection(Tiny):
    async def connect(self) -> Connection:
        try:
            return await super().connect()
        except OSError as error:
            raise ModelConnectionError(f"no way to the server with {self.key}", backend=self.backend) from error


class BlocksTheLoop(Tiny):
    """Waits for the server after each piece without letting anybody else run.

    After the last piece before a silence nothing can be there to read, however pieces and packets fell.
    """

    async def begin(self, connection: Connection, request: ChatRequest, timeout_s: float) -> tuple[int, dict[str, str]]:
        self._socket, self._timeout_s = connection[1].get_extra_info("socket"), timeout_s
        return await super().begin(connection, request, timeout_s)

    def read_chunk(self, reader: ChunkReader, chunk: dict[str, Any]) -> Iterator[ModelEvent]:
        yield from super().read_chunk(reader, chunk)
        if not select.select([self._socket], [], [], self._timeout_s)[0]:
            raise TimeoutError


class SleepsForEachPiece(Tiny):
    def read_chunk(self, reader: ChunkReader, chunk: dict[str, Any]) -> Iterator[ModelEvent]:
        time.sleep(0.02)
        return super().read_chunk(reader, chunk)


class HoldsUpTheLoop(Tiny):
    """Waits for a lock."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        threading.Event().wait(0.2)
        async for event in super().stream(request):
            yield event


class NeverCloses(Tiny):
    """Leaves its connections to the end of the loop."""

    async def aclose(self) -> None:
        """Do nothing."""


class AsksOneAfterTheOther(Tiny):
    def __init__(self, config: Any, **options: Any) -> None:
        super().__init__(config, **options)
        self._turn = asyncio.Lock()

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        async with self._turn:
            async for event in super().stream(request):
                yield event


class CutsAt64KiB(Tiny):
    def parse(self, data: bytes) -> dict[str, Any]:
        value = super().parse(data)
        for choice in value.get("choices") or ():
            delta = choice.get("delta") or {}
            if isinstance(delta.get("content"), str):
                delta["content"] = delta["content"][:65_536]
        return value


class MergesEqualCalls(Tiny):
    def read_chunk(self, reader: ChunkReader, chunk: dict[str, Any]) -> Iterator[ModelEvent]:
        for event in super().read_chunk(reader, chunk):
            if isinstance(event, FunctionCallDelta) and event.name == "get_time":
                yield replace(event, index=0)
            else:
                yield event


class ChangesSchemas(Tiny):
    def body(self, request: ChatRequest) -> dict[str, Any]:
        for function in request.functions:
            function["parameters"]["additionalProperties"] = False
        return super().body(request)


class HasWordsOfItsOwn(Tiny):
    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        async for event in super().stream(request):
            yield replace(event, reason=event.reason.upper()) if isinstance(event, ModelFinished) else event


class LetsCallersSetTheKey(Tiny):
    def headers(self, own: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
        return {name.lower(): value for some in (own, extra) for name, value in some.items()}


class LetsCallersSendTwoKeys(Tiny):
    """Takes names of headers for different that differ in case alone."""

    def headers(self, own: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
        return {**extra, **own}


class LetsCallersSetTheType(Tiny):
    def headers(self, own: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
        merged = {name.title(): value for some in (own, extra) for name, value in some.items()}
        return {**super().headers(own, extra), "Content-Type": merged["Content-Type"]}


class PassesWordsOn(Tiny):
    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        async for event in super().stream(request):
            is_other = isinstance(event, ModelFinished) and event.reason == "other"
            yield replace(event, reason=event.provider_reason) if is_other else event


class TakesUnknownWordsForTheEnd(Tiny):
    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        async for event in super().stream(request):
            is_other = isinstance(event, ModelFinished) and event.reason == "other"
            yield replace(event, reason="stop") if is_other else event


class ForgetsTheWord(Tiny):
    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        async for event in super().stream(request):
            yield replace(event, provider_reason="") if isinstance(event, ModelFinished) else event


class IgnoresPenalties(Tiny):
    def body(self, request: ChatRequest) -> dict[str, Any]:
        return {name: value for name, value in super().body(request).items() if name != "presence_penalty"}


class KeepsADiary(Tiny):
    def body(self, request: ChatRequest) -> dict[str, Any]:
        with Path("diary").open("a") as diary:
            diary.write("asked\n")
        return super().body(request)


class KeepsLocals(Tiny):
    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        key = self.key
        async for event in super().stream(request):
            yield event
        assert key == self.key


class TrustsEveryAddress(Tiny):
    def is_trusted(self, url: str) -> bool:
        return bool(url)


class LogsTheKey(Tiny):
    @property
    def key(self) -> str:
        key = super().key
        logging.getLogger("tiny").debug("authorised with %s", key)
        return key


class ShowsItsAddress(Tiny):
    def __repr__(self) -> str:
        return f"<ShowsItsAddress {self.config.server_url}>"


class StatesNoKey(Tiny):
    def secret_sources(self) -> tuple[object, ...]:
        return ()


class ConnectsAtOnce(Tiny):
    def __init__(self, config: Any, **options: Any) -> None:
        super().__init__(config, **options)
        import socket

        address = urlsplit(self.config.server_url or "")
        with suppress(OSError):
            socket.create_connection((address.hostname or "", address.port or 0)).close()


class ClaimsImages(Tiny):
    """Says that it takes images, and drops them."""

    @property
    def facts(self) -> ModelFacts:
        return ModelFacts(images=True)


class ClaimsFiles(Tiny):
    """Says that it takes PDFs, and drops them."""

    @property
    def facts(self) -> ModelFacts:
        return ModelFacts(files=True)


class TrustsHistories(Tiny):
    """Reads each file that a message names, whoever wrote it."""

    @property
    def facts(self) -> ModelFacts:
        return ModelFacts(images=True)

    def make_request(self, messages: Any, *rest: Any, **options: Any) -> ChatRequest:
        request = super().make_request(messages, *rest, **options)
        return replace(request, messages=as_messages(messages))

    def body(self, request: ChatRequest) -> dict[str, Any]:
        items = [item for message in request.messages for item in message.items if item.image is not None]
        content = [base64.b64encode(Path(str(item.image)).read_bytes()).decode() for item in items]
        return {**super().body(request), "images": content}


class Prints(Tiny):
    def body(self, request: ChatRequest) -> dict[str, Any]:
        print("asking", request.model)
        return super().body(request)


class FallsBack(Tiny):
    """Tries it in clear where TLS fails."""

    async def connect(self) -> Connection:
        try:
            return await super().connect()
        except OSError:
            address = urlsplit(self.config.server_url or "")
            return await asyncio.open_connection(address.hostname, address.port)


class KnowsNoProxy(Tiny):
    """Connects by itself."""

    def proxy(self) -> str | None:
        return None


class AlwaysByProxy(Tiny):
    """Sends everything through the proxy."""

    def proxy(self) -> str | None:
        return getproxies().get("http")


class BelongsToOneProcess(Tiny):
    """Uses its connections in children, too."""

    def __init__(self, config: Any, **options: Any) -> None:
        super().__init__(config, **options)
        self._made_in = os.getpid()

    async def connect(self) -> Connection:
        if os.getpid() != self._made_in:
            raise ModelConnectionError("these connections are another's")
        return await super().connect()


class ListsNothing(Tiny):
    """Takes anything for a list."""

    def read_names(self, body: bytes) -> list[str]:
        try:
            return super().read_names(body)
        except ModelResponseError:
            return []


class SortsLists(Tiny):
    """Has an order of its own."""

    def read_names(self, body: bytes) -> list[str]:
        return sorted(super().read_names(body))


class AsksForListsOnce(Tiny):
    """Retries requests alone."""

    async def alist_models(self) -> list[str]:
        return await self.fetch_names()


class ListsWithoutKey(Tiny):
    """Asks for a list as nobody."""

    def send_get(self, connection: Connection) -> None:
        path = urlsplit(self.config.server_url or "").path
        connection[1].write(f"GET {path}/models HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())


class RefusesListsInItsOwnWords(Tiny):
    """Takes every refusal for a server without a list."""

    async def fetch_names(self) -> list[str]:
        try:
            return await super().fetch_names()
        except ModelAuthError as error:
            raise ModelNotFoundError(error.message, backend=self.backend, status=error.status) from None


class RefusesListsLate(Tiny):
    """Says that it has no list once the server has answered."""

    async def alist_models(self) -> list[str]:
        await super().alist_models()
        raise ConfigError("tiny has no list")
