"""More backends that each break the contract in one place: one for each law that none in `tiny_backend` breaks."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tiny_backend import ChunkReader, Connection, Tiny, has_ended

from jackfield.errors import (
    ConfigError,
    ModelConnectionError,
    ModelOverloadedError,
    ModelRequestError,
    ModelResponseError,
    ModelServiceError,
    ModelTimeoutError,
    RateLimitedError,
)
from jackfield.events import FunctionCallDelta, ModelEvent, ModelFinished, TextDelta, UsageReported
from jackfield.messages import Message, ModelResponse, Usage, as_messages
from jackfield.request import ChatRequest, ModelFacts

# --- several calls ---


class NeverLetsGo(Tiny):
    """Takes no call after one that was left in the middle."""

    _is_busy = False

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        if self._is_busy:
            raise ModelConnectionError("another call is going on", backend=self.backend)
        self._is_busy = True
        async for event in super().stream(request):
            yield event
        self._is_busy = False


class ReadsToTheEnd(Tiny):
    """Reads the rest of an answer that was left, although it may never come."""

    async def read_stream(self, parts: AsyncIterator[bytes], patience_s: float) -> AsyncIterator[ModelEvent]:
        self._parts = parts
        async for event in super().read_stream(parts, patience_s):
            yield event

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        events = super().stream(request)  # kept: the end of it would end the connection
        try:
            async for event in events:
                yield event
        finally:
            async for _ in self._parts:
                pass


class TakesOneAtATime(Tiny):
    """Takes no call beside another."""

    _is_busy = False

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        if self._is_busy:
            raise ModelConnectionError("another call is going on", backend=self.backend)
        self._is_busy = True
        try:
            async for event in super().stream(request):
                yield event
        finally:
            self._is_busy = False


class BelongsToOneLoop(Tiny):
    """Keeps the first event loop for good."""

    _loop: asyncio.AbstractEventLoop | None = None

    async def connect(self) -> Connection:
        self._loop = self._loop or asyncio.get_running_loop()
        if self._loop is not asyncio.get_running_loop():
            raise ModelConnectionError("these connections are another loop's", backend=self.backend)
        return await super().connect()


class ClosesForGood(Tiny):
    """Takes no call once it was closed."""

    _is_closed = False

    async def aclose(self) -> None:
        await super().aclose()
        self._is_closed = True

    async def connect(self) -> Connection:
        if self._is_closed:
            raise ModelConnectionError("the model is closed", backend=self.backend)
        return await super().connect()


# --- connections ---


class TrustsKeptConnections(Tiny):
    """Takes any kept connection for one that is alive, and asks no second time."""

    async def is_clean(self, connection: Connection) -> bool:
        return True

    def may_ask_again(self, kept: Connection | None) -> bool:
        return False


class AsksThreeTimes(Tiny):
    """Asks once more where the second attempt has failed as well."""

    async def ask(self, request: ChatRequest, timeout_s: float) -> tuple[Connection, int, dict[str, str]]:
        try:
            return await super().ask(request, timeout_s)
        except (asyncio.IncompleteReadError, ConnectionError):
            connection = await self.connect()
            return connection, *await self.begin(connection, request, timeout_s)


class AsksAgainInSilence(Tiny):
    """Takes a silent server for one that never got the request."""

    async def ask(self, request: ChatRequest, timeout_s: float) -> tuple[Connection, int, dict[str, str]]:
        try:
            return await super().ask(request, timeout_s)
        except TimeoutError:
            connection = await self.connect()
            return connection, *await self.begin(connection, request, timeout_s)


class TakesSilenceForALostConnection(Tiny):
    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        try:
            async for event in super().stream(request):
                yield event
        except ModelTimeoutError as error:
            lost = ModelConnectionError("the connection is lost", backend=self.backend)
            lost.partial_text = error.partial_text
            raise lost from error


class AsksAgainForTheRest(Tiny):
    """Asks once more for an answer of which the caller has seen a part."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        try:
            async for event in super().stream(request):
                yield event
        except ModelConnectionError:
            async for event in super().stream(request):
                yield event


class NeedsTheEnd(Tiny):
    """Takes an answer for broken if the response does not end behind it."""

    async def read_stream(self, parts: AsyncIterator[bytes], patience_s: float) -> AsyncIterator[ModelEvent]:
        async for event in super().read_stream(parts, patience_s):
            yield event
        if not await has_ended(parts):
            raise ModelConnectionError("the response has no end", backend=self.backend)


class LeavesTheEnd(Tiny):
    """Reads a response up to the end of its stream, and the rest with the next answer."""

    async def has_ended(self, body: AsyncIterator[bytes]) -> bool:
        return True

    async def is_clean(self, connection: Connection) -> bool:
        return True

    def may_ask_again(self, kept: Connection | None) -> bool:
        return False


# --- the history ---


class PutsSystemLast(Tiny):
    def wire(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        return sorted(super().wire(messages), key=lambda message: message["role"] == "system")


class AsksItsOwnModel(Tiny):
    def body(self, request: ChatRequest) -> dict[str, Any]:
        return {**super().body(request), "model": "tiny-1"}


class SendsAscii(Tiny):
    def wire(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        return [
            {**message, "content": message["content"].encode("ascii", "replace").decode()}
            for message in super().wire(messages)
        ]


class KeepsOneQuestion(Tiny):
    """Loses all but the last of several messages of a user."""

    def wire(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        wire = super().wire(messages)
        following = [*wire[1:], {"role": ""}]
        return [one for one, after in zip(wire, following, strict=True) if not one["role"] == after["role"] == "user"]


class EndsWithAQuestion(Tiny):
    """Lets no history end with the assistant."""

    def wire(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        wire = super().wire(messages)
        return [*wire, {"role": "user", "content": "Go on."}] if wire[-1]["role"] == "assistant" else wire


class ReadsOneItem(Tiny):
    """Loses all but the first item of a message."""

    def wire(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        return super().wire([message.model_copy(update={"content": message.items[:1]}) for message in messages])


class NeedsContent(Tiny):
    """Refuses a history with an empty message."""

    def wire(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        wire = super().wire(messages)
        if not all(message["content"] or message.get("tool_calls") for message in wire):
            raise ModelRequestError("a message is empty", backend=self.backend)
        return wire


class SendsThoughts(Tiny):
    def add_to(self, answer: dict[str, Any], message: Message, text: str) -> None:
        super().add_to(answer, message, f"{message.reasoning_content or ''}{text}")


class ChangesHistories(Tiny):
    def make_request(self, messages: Any, *rest: Any, **options: Any) -> ChatRequest:
        for message in messages:
            if isinstance(message, Message):
                message.content = message.get_text_content() + "."
        return super().make_request(messages, *rest, **options)


class DropsFiles(Tiny):
    """Sends nothing of a file, and says nothing of it."""

    def make_request(self, messages: Any, *rest: Any, **options: Any) -> ChatRequest:
        kept = [
            message.model_copy(update={"content": [item for item in message.items if item.file is None]})
            for message in as_messages(messages)
        ]
        return super().make_request(kept, *rest, **options)


class ClaimsAudio(Tiny):
    """Says that it takes audio, and drops it."""

    @property
    def facts(self) -> ModelFacts:
        return ModelFacts(audio=True)


class ClaimsVideo(Tiny):
    """Says that it takes video, and drops it."""

    @property
    def facts(self) -> ModelFacts:
        return ModelFacts(video=True)


# --- options ---


class ForgetsItsOptions(Tiny):
    """Sends the options of its configuration with the first call alone."""

    _has_asked = False

    def body(self, request: ChatRequest) -> dict[str, Any]:
        body = super().body(request)
        if self._has_asked:
            body.pop("temperature", None)
        self._has_asked = True
        return body


class SendsBothNames(Tiny):
    """Sends the length of an answer under the older and the newer name."""

    def body(self, request: ChatRequest) -> dict[str, Any]:
        body = super().body(request)
        return {**body, "max_completion_tokens": body.get("max_tokens")}


class SendsOurOptions(Tiny):
    def body(self, request: ChatRequest) -> dict[str, Any]:
        return {**super().body(request), "deadline": request.config.deadline}


class ChangesItsFacts(Tiny):
    _asked = 0

    @property
    def facts(self) -> ModelFacts:
        self._asked += 1
        return ModelFacts(context_tokens=self._asked)


# --- the answer ---


class FoldsOtherwise(Tiny):
    """Gives another answer to callers who wait for the whole."""

    async def acomplete(self, *arguments: Any, **options: Any) -> ModelResponse:
        response = await super().acomplete(*arguments, **options)
        return response.model_copy(update={"usage": Usage()})


class StripsPieces(Tiny):
    """Takes the white space around each piece for padding."""

    def read_chunk(self, reader: ChunkReader, chunk: dict[str, Any]) -> Iterator[ModelEvent]:
        for event in super().read_chunk(reader, chunk):
            yield TextDelta(event.text.strip()) if isinstance(event, TextDelta) else event


class PassesHalvesOn(Tiny):
    """Passes a half of a character on before the other half is there."""

    def read_chunk(self, reader: ChunkReader, chunk: dict[str, Any]) -> Iterator[ModelEvent]:
        return reader.events_of(chunk)


class DropsHalves(Tiny):
    """Leaves out a half of a character that stays alone."""

    def read_chunk(self, reader: ChunkReader, chunk: dict[str, Any]) -> Iterator[ModelEvent]:
        for event in super().read_chunk(reader, chunk):
            yield TextDelta(event.text.replace("\ufffd", "")) if isinstance(event, TextDelta) else event


class NeedsAStream(Tiny):
    """Refuses an answer in one piece."""

    def read_whole(self, body: bytes) -> Iterator[ModelEvent]:
        raise ModelResponseError("the server does not stream", backend=self.backend)


class RepeatsItself(Tiny):
    """Yields the whole text so far with each piece."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        text = ""
        async for event in super().stream(request):
            if isinstance(event, TextDelta):
                text += event.text
                yield TextDelta(text)
            else:
                yield event


class ForgetsWhoAnswered(Tiny):
    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        async for event in super().stream(request):
            yield replace(event, model="", response_id=None) if isinstance(event, ModelFinished) else event


class CountsTwice(Tiny):
    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        async for event in super().stream(request):
            yield event
            if isinstance(event, UsageReported):
                yield event


class NeedsUsage(Tiny):
    """Takes an answer without usage for broken."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        is_counted = False
        async for event in super().stream(request):
            is_counted = is_counted or isinstance(event, UsageReported)
            if isinstance(event, ModelFinished) and not is_counted:
                raise ModelResponseError("the answer has no usage", backend=self.backend)
            yield event


# --- tool calls ---


class SimplifiesSchemas(Tiny):
    """Sends tools without their descriptions."""

    def body(self, request: ChatRequest) -> dict[str, Any]:
        body = super().body(request)
        for tool in body.get("tools", ()):
            tool["function"].pop("description")
        return body


class SendsNoTools(Tiny):
    """Sends an empty list where there are no tools."""

    def body(self, request: ChatRequest) -> dict[str, Any]:
        return {"tools": [], **super().body(request)}


class ForgetsTheChoice(Tiny):
    def body(self, request: ChatRequest) -> dict[str, Any]:
        return {name: value for name, value in super().body(request).items() if name != "tool_choice"}


class ChangesCalls(Tiny):
    """Reads the calls of a stream, and changes them in one way."""

    def read_chunk(self, reader: ChunkReader, chunk: dict[str, Any]) -> Iterator[ModelEvent]:
        for event in super().read_chunk(reader, chunk):
            if not isinstance(event, FunctionCallDelta):
                yield event
            elif changed := self.change(event):
                yield changed

    def change(self, call: FunctionCallDelta) -> FunctionCallDelta | None:
        return call


class NamesCallsItself(ChangesCalls):
    """Gives calls ids of its own."""

    def change(self, call: FunctionCallDelta) -> FunctionCallDelta | None:
        return replace(call, id=f"tiny_{call.index}")


class GivesOneId(ChangesCalls):
    """Calls each call without an id by the same one."""

    def change(self, call: FunctionCallDelta) -> FunctionCallDelta | None:
        return replace(call, id=call.id or "call")


class NeedsArguments(ChangesCalls):
    """Leaves out a call that has none."""

    def change(self, call: FunctionCallDelta) -> FunctionCallDelta | None:
        return call if call.arguments else None


class StripsArguments(ChangesCalls):
    """Takes the white space around each piece for padding."""

    def change(self, call: FunctionCallDelta) -> FunctionCallDelta | None:
        return replace(call, arguments=call.arguments.strip())


class KnowsItsTools(ChangesCalls):
    """Leaves out a call of a tool that it was not given."""

    def make_request(self, *arguments: Any, **options: Any) -> ChatRequest:
        request = super().make_request(*arguments, **options)
        self._names = {function["name"] for function in request.functions}
        return request

    def change(self, call: FunctionCallDelta) -> FunctionCallDelta | None:
        return call if not call.name or call.name in self._names else None


class JoinsNames(Tiny):
    """Takes each name for one more piece of it."""

    def __init__(self, config: Any, **options: Any) -> None:
        super().__init__(config, **options)
        self._names: dict[int, str] = {}

    def read_chunk(self, reader: ChunkReader, chunk: dict[str, Any]) -> Iterator[ModelEvent]:
        for event in super().read_chunk(reader, chunk):
            if isinstance(event, FunctionCallDelta):
                self._names[event.index] = self._names.get(event.index, "") + event.name
                yield replace(event, name=self._names[event.index])
            else:
                yield event


class DropsTextBesideCalls(Tiny):
    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        events = [event async for event in super().stream(request)]
        calls = any(isinstance(event, FunctionCallDelta) for event in events)
        for event in events:
            if not (calls and isinstance(event, TextDelta)):
                yield event


class MendsArguments(Tiny):
    """Replaces arguments that nobody can read by none."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        events = [event async for event in super().stream(request)]
        calls = [event for event in events if isinstance(event, FunctionCallDelta)]
        for index, pieces in itertools.groupby(calls, key=lambda call: call.index):
            name, arguments = "", ""
            for piece in pieces:
                name, arguments = piece.name or name, arguments + piece.arguments
            try:
                json.loads(arguments)
            except ValueError:
                arguments = "{}"
            yield FunctionCallDelta(index, "", name, arguments)
        for event in events:
            if not isinstance(event, FunctionCallDelta):
                yield event


class AnswersByIdAlone(Tiny):
    """Takes calls of two turns with one id for one call."""

    def wire(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        wire = super().wire(messages)
        results = {message["tool_call_id"]: message for message in wire if message["role"] == "tool"}
        return [results[message["tool_call_id"]] if message["role"] == "tool" else message for message in wire]


class SendsHistoriesAsTheyAre(Tiny):
    """Leaves calls without results, and results without calls, to the server."""

    def matched(self, wire: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            {"role": "tool", "tool_call_id": message["of"], "content": message["content"]}
            if message["role"] == "tool"
            else message
            for message in wire
        ]


# --- faults of the server ---


class IgnoresPauses(Tiny):
    def pause(self, headers: Mapping[str, str]) -> float | None:
        return None


class ReadsNoDates(Tiny):
    def pause(self, headers: Mapping[str, str]) -> float | None:
        return super().pause(headers) if headers.get("retry-after", "").isdecimal() else None


class ReadsNoCodes(Tiny):
    """Knows the status of a refusal alone."""

    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelServiceError:
        return super().failure(status, headers, body.replace(b'"code"', b'"kind"'))


class NeedsJsonErrors(Tiny):
    """Takes an error that is not valid JSON for an answer that nobody can read."""

    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelServiceError:
        self.parse(body)
        return super().failure(status, headers, body)


class TakesAnythingForAnAnswer(Tiny):
    def read_whole(self, body: bytes) -> Iterator[ModelEvent]:
        try:
            yield from super().read_whole(body)
        except ModelResponseError:
            yield ModelFinished("stop")


class SkipsErrors(Tiny):
    """Passes over an error inside a stream."""

    def read_chunk(self, reader: ChunkReader, chunk: dict[str, Any]) -> Iterator[ModelEvent]:
        return iter(()) if "error" in chunk else super().read_chunk(reader, chunk)


class TakesAResetForTheEnd(Tiny):
    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        try:
            async for event in super().stream(request):
                yield event
        except ModelConnectionError:
            yield ModelFinished("stop")


class CallsAbsenceAnAnswer(Tiny):
    """Reports a server that is not there as one that answered badly."""

    async def connect(self) -> Connection:
        try:
            return await super().connect()
        except OSError as error:
            raise ModelResponseError("the server sent nothing", backend=self.backend) from error


class IsPatientWithComments(Tiny):
    """Waits for as long as comments come."""

    async def read_stream(self, parts: AsyncIterator[bytes], patience_s: float) -> AsyncIterator[ModelEvent]:
        async for event in super().read_stream(parts, 60 * patience_s):
            yield event


class ReadsNoComments(Tiny):
    """Takes comments for silence."""

    async def read_stream(self, parts: AsyncIterator[bytes], patience_s: float) -> AsyncIterator[ModelEvent]:
        async def without_comments() -> AsyncIterator[bytes]:
            async for part in parts:
                if part.startswith(b":") or b"\n:" in part:
                    raise ModelTimeoutError("the server sends comments", backend=self.backend)
                yield part

        async for event in super().read_stream(without_comments(), patience_s):
            yield event


class IgnoresDeadlines(Tiny):
    async def acomplete(self, messages: Any, functions: Any = (), *, config: Any = None) -> ModelResponse:
        kept = {name: value for name, value in (config or {}).items() if name != "deadline"}
        return await super().acomplete(messages, functions, config=kept)


class LimitsTheWhole(Tiny):
    """Takes the longest silence for the longest answer."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        ends_at = time.monotonic() + (request.config.request_timeout or 60)
        async for event in super().stream(request):
            if time.monotonic() > ends_at:
                raise ModelConnectionError("the answer takes too long", backend=self.backend)
            yield event


class CallsEverythingAnOverload(Tiny):
    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelServiceError:
        return ModelOverloadedError("try again", backend=self.backend, retry_after_s=0.0)


class CallsEverythingARefusal(Tiny):
    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelServiceError:
        return ModelRequestError("do not try again", backend=self.backend, status=status)


class TinyRateLimitedError(RateLimitedError):
    """An error that leaves its facts behind when it is pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _plain_error, (str(self),)


def _plain_error(text: str) -> RateLimitedError:
    return RateLimitedError(text, backend="tiny")


class PicklesTextsAlone(Tiny):
    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelServiceError:
        error = super().failure(status, headers, body)
        return TinyRateLimitedError(
            error.message,
            backend=self.backend,
            code=error.code,
            status=status,
            retry_after_s=error.retry_after_s,
            request_id=error.request_id,
        )


# --- secrets ---


class SendsTheKeyTwice(Tiny):
    def headers(self, own: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
        return {**super().headers(own, extra), "X-Api-Key": self.key}


class ShowsTheKey(Tiny):
    def __repr__(self) -> str:
        return f"<ShowsTheKey {self.key}>"


class ShowsRefusedAddresses(Tiny):
    """Repeats an address that it refuses."""

    def __init__(self, config: Any, **options: Any) -> None:
        try:
            super().__init__(config, **options)
        except ConfigError as error:
            raise ConfigError(f"{config['base_url']} is not valid: {error}") from None


# --- lists ---


class ListsWithOtherErrors(Tiny):
    """Takes a silent server for one that is not there."""

    async def fetch_names(self) -> list[str]:
        try:
            return await super().fetch_names()
        except ModelTimeoutError as error:
            raise ModelConnectionError("no list came", backend=self.backend) from error


class ListsWithForeignErrors(Tiny):
    """Translates the errors of requests alone."""

    async def fetch_names(self) -> list[str]:
        try:
            return await super().fetch_names()
        except ModelConnectionError as error:
            raise error.__cause__ or error from None


class AsksForMorePages(Tiny):
    """Takes a long page for one of several, whatever is in the next."""

    async def alist_models(self) -> list[str]:
        names: list[str] = []
        for _ in range(4):
            page = await super().alist_models()
            names += page
            if len(page) < 100:
                break
        return names
