"""Backends that are wrong from end to end, so that each fails many laws, at all of their assertions."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from tiny_backend import Connection, Tiny

from jackfield.errors import ConfigError, JackfieldError, ModelConnectionError, ModelServiceError, UnsupportedInputError
from jackfield.events import ModelEvent, ModelFinished, ReasoningDelta, StreamReset, TextDelta, UsageReported
from jackfield.messages import ContentItem, Message, ModelResponse, Usage, as_messages
from jackfield.request import ChatRequest, ModelFacts


class Mute(Tiny):
    """Gives an empty answer, whatever the server says."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        async for _ in super().stream(request):
            pass
        yield ModelFinished("stop")


class Babbles(Tiny):
    """Gives the same answer to everything, and asks its server nothing."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("blah")
        yield ModelFinished("stop")


class NeverFails(Tiny):
    """Ends an answer as if it were whole where the server fails."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        with suppress(JackfieldError):
            async for event in super().stream(request):
                if not isinstance(event, ModelFinished):
                    yield event
        yield ModelFinished("stop")

    async def alist_models(self) -> list[str]:
        with suppress(JackfieldError):
            return await super().alist_models()
        return []


class FailsWithoutFacts(Tiny):
    """Raises the same error for everything, which says nothing."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        try:
            async for event in super().stream(request):
                yield event
        except ModelServiceError:
            raise ModelServiceError("") from None

    async def acomplete(self, *arguments: Any, **options: Any) -> ModelResponse:
        try:
            return await super().acomplete(*arguments, **options)
        except ModelServiceError:
            raise ModelServiceError("") from None

    async def alist_models(self) -> list[str]:
        try:
            return await super().alist_models()
        except ModelServiceError:
            raise ModelServiceError("") from None


class SendsNothing(Tiny):
    """Sends an empty object."""

    def body(self, request: ChatRequest) -> dict[str, Any]:
        return {}


class SendsAList(Tiny):
    """Sends what is no object."""

    def body(self, request: ChatRequest) -> Any:
        return [super().body(request)]


class SendsOthers(Tiny):
    """Sends messages that the caller did not write."""

    def wire(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        return [{"role": "critic", "content": "hm"}]


class HasNoFacts(Tiny):
    """States nothing that holds."""

    backend = ""

    @property
    def facts(self) -> Any:
        return {"context_tokens": 0}

    def __repr__(self) -> str:
        return ""


class LacksRoom(Tiny):
    @property
    def facts(self) -> ModelFacts:
        return ModelFacts(context_tokens=-1)


class SendsNoHeaders(Tiny):
    """Sends neither its key nor what the caller adds."""

    def headers(self, own: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
        return {name: value for name, value in own.items() if name != "Authorization"}


class TellsTheKeyEverywhere(Tiny):
    """Sends its key in the path and in the body, too."""

    def body(self, request: ChatRequest) -> dict[str, Any]:
        return {**super().body(request), "key": self.key}


class ListsNobodysModels(Tiny):
    """Lists models of its own, and refuses without a reason."""

    async def alist_models(self) -> list[str]:
        await super().alist_models()
        return ["tiny-1", "tiny-1"]


class RefusesLists(Tiny):
    async def alist_models(self) -> list[str]:
        raise ConfigError("no")


class CannotList(Tiny):
    alist_models = None  # type: ignore[assignment]


# --- in one respect, at whatever is asked ---


class CannotBeClosed(Tiny):
    """Gives a stream that nobody can close."""

    def stream(self, request: ChatRequest) -> Any:
        events = super().stream(request)

        class Events:
            def __aiter__(self) -> Any:
                return self

            async def __anext__(self) -> ModelEvent:
                return await anext(events)

        return Events()


class SaysGoodbye(Tiny):
    """Sends one more request when it is closed."""

    async def aclose(self) -> None:
        await super().aclose()
        with suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            connection = await self.connect()
            self.send(connection, self.make_request("bye"))
            await asyncio.wait_for(connection[0].read(1), 5)
            connection[1].transport.abort()


class WaitsAMinute(Tiny):
    """Waits for as long as it likes."""

    def pause(self, headers: Mapping[str, str]) -> float | None:
        return 60.0


class HopesForTheBest(Tiny):
    """Takes every failure for one that passes, and quotes all that the server said."""

    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelServiceError:
        error = super().failure(status, headers, body)
        error.retryable = True  # type: ignore[misc]
        error.args = (f"{error} {body.decode(errors='replace')}",)
        return error

    @contextmanager
    def translated(self) -> Iterator[None]:
        try:
            with super().translated():
                yield
        except ModelConnectionError as error:
            error.retryable = False  # type: ignore[misc]
            raise


class FinishesAndFails(Tiny):
    """Ends an answer before it raises."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        try:
            async for event in super().stream(request):
                yield event
        except ModelServiceError:
            yield ModelFinished("stop")
            raise


class Anonymous(Tiny):
    backend = ""


class UsesPasswords(Tiny):
    """Takes an address with a password, and shows and sends it wherever there is room."""

    def __init__(self, config: Any, **options: Any) -> None:
        self._secret = urlsplit(config["base_url"]).password or ""
        super().__init__({**config, "base_url": re.sub("//.*@", "//", config["base_url"])}, **options)

    def proxy(self) -> str | None:
        return f"{super().proxy()}"

    def __repr__(self) -> str:
        return f"<UsesPasswords {self._secret}>"

    def send(self, connection: Connection, request: ChatRequest) -> None:
        writer, secret = connection[1], self._secret.encode()

        class Writer:
            def write(self, data: bytes) -> None:
                writer.write(data.replace(b"/chat/completions", b"/" + secret, 1))

        super().send((connection[0], cast(asyncio.StreamWriter, Writer())), request)


class SaysNothing(Tiny):
    """Ends each answer at its beginning."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield ModelFinished("stop")

    async def acomplete(self, *arguments: Any, **options: Any) -> ModelResponse:
        return (await super().acomplete(*arguments, **options)).model_copy(update={"messages": []})


class ListsWithTheKeyInThePath(Tiny):
    def send_get(self, connection: Connection) -> None:
        path = urlsplit(self.config.server_url or "").path
        head = f"GET {path}/models?key={self.key} HTTP/1.1\r\nHost: localhost\r\n\r\n"
        connection[1].write(head.encode())


class SendsExtra(Tiny):
    """Sends what a program has noted on its messages."""

    def wire(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        return [*super().wire(messages), {"role": "user", "content": str([message.extra for message in messages])}]


class IgnoresWhatItCannotSend(NeverFails):
    """Drops media and files without a word."""

    def make_request(self, messages: Any, *rest: Any, **options: Any) -> ChatRequest:
        texts = [
            message.model_copy(update={"content": message.get_text_content()}) for message in as_messages(messages)
        ]
        return super().make_request(texts, *rest, **options)


class RefusesLate(Tiny):
    """Refuses media, files and options once it has asked the server."""

    def make_request(self, messages: Any, *rest: Any, **options: Any) -> ChatRequest:
        try:
            request = super().make_request(messages, *rest, **options)
            refusal = None if request.config.seed is None else ConfigError("tiny has no seed")
        except UnsupportedInputError as error:
            request, refusal = super().make_request("hello"), error
        self._refusal: JackfieldError | None = refusal
        return request

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        refusal = self._refusal
        async for event in super().stream(request):
            yield event
        if refusal is not None:
            raise refusal


class TellsPaths(Tiny):
    """Tells the server where files are."""

    def make_request(self, messages: Any, *rest: Any, **options: Any) -> ChatRequest:
        files = [str(item.value) for message in as_messages(messages) for item in message.items if item.text is None]
        request = super().make_request(messages, *rest, **options)
        return replace(request, messages=(*request.messages, Message("user", " ".join(files))))


class ReadsNoObjects(Tiny):
    """Finds nothing in an answer that is no stream."""

    def read_whole(self, body: bytes) -> Iterator[ModelEvent]:
        yield ModelFinished("other")


class ChangesThoughtsOfObjects(Tiny):
    def read_whole(self, body: bytes) -> Iterator[ModelEvent]:
        for event in super().read_whole(body):
            yield ReasoningDelta("else") if isinstance(event, ReasoningDelta) else event


class StartsOver(Tiny):
    """Takes back what it has said."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("Hm. ")
        yield StreamReset("again")
        async for event in super().stream(request):
            yield event


class CountsOtherwise(Tiny):
    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        counted = UsageReported(Usage(prompt_tokens=1, completion_tokens=2, total_tokens=3))
        async for event in super().stream(request):
            yield counted if isinstance(event, UsageReported) else event


class CallsNoTools(Tiny):
    """Keeps the contract of a model without tools."""

    @property
    def facts(self) -> ModelFacts:
        return ModelFacts(native_tools=False)


class SendsToolsInItsOwnForm(Tiny):
    def body(self, request: ChatRequest) -> dict[str, Any]:
        body = super().body(request)
        for tool in body.get("tools", ()):
            tool["type"] = "tool"
        return body


class MakesNoChoice(Tiny):
    """Offers its tools where none may be called."""

    def body(self, request: ChatRequest) -> dict[str, Any]:
        return {name: value for name, value in super().body(request).items() if name != "tool_choice"}


class AddsWords(Tiny):
    """Says something before whatever the server says."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("Well. ")
        async for event in super().stream(request):
            yield event


class LosesIds(Tiny):
    """Gives calls without ids."""

    async def acomplete(self, *arguments: Any, **options: Any) -> ModelResponse:
        response = await super().acomplete(*arguments, **options)
        without = [message.model_copy(update={"extra": {}}) for message in response.messages]
        return response.model_copy(update={"messages": without})


class NumbersItsCalls(Tiny):
    """Sends calls under ids of its own, all the same, and loses what was said beside them."""

    def wire(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        wire = super().wire(messages)
        for message in wire:
            for call in message.get("tool_calls", ()):
                call["id"] = "1"
                message["content"] = ""
        return wire


class ForgetsResults(Tiny):
    """Sends calls without their results."""

    def wire(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        return [message for message in super().wire(messages) if message["role"] != "tool"]


# --- media ---


class Sees(Tiny):
    """Takes all media, and keeps the contract."""

    @property
    def facts(self) -> ModelFacts:
        return ModelFacts(images=True, audio=True, video=True, files=True)

    def wire(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        wire = super().wire(messages)
        for sent, message in zip(wire, messages, strict=False):
            if any(item.text is None for item in message.items):
                sent["content"] = self.parts(message)
        return wire

    def parts(self, message: Message) -> list[dict[str, Any]]:
        return [self.part(item) for item in message.items]

    def part(self, item: ContentItem) -> dict[str, Any]:
        if item.text is not None:
            return {"type": "text", "text": item.text}
        if item.image:
            return {"type": "image_url", "image_url": {"url": str(item.image)}}
        if item.audio:
            return {"type": "input_audio", "input_audio": item.audio}
        if item.video:
            return {"type": "video_url", "video_url": item.video}
        path = Path(str(item.file))
        data = base64.b64encode(path.read_bytes()).decode()
        return {"type": "file", "file": {"name": path.name, "data": data}}


class SeesOtherThings(Sees):
    """Sends something else in the place of each medium."""

    def part(self, item: ContentItem) -> dict[str, Any]:
        other = {"type": "picture", "image_url": {"url": "data:,"}}
        return super().part(item) if item.text is not None else other


class SeesInReverse(Sees):
    def parts(self, message: Message) -> list[dict[str, Any]]:
        return super().parts(message)[::-1]
