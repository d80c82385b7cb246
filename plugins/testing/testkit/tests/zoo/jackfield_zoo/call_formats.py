"""A call format that does all as it should, and formats that do one thing otherwise.

A call is `CALL{"name": …, "arguments": …}CALL`, in one line; a result is `RESULT:` and the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jackfield.config import GenerateConfig
from jackfield.events import FunctionCallDelta, ModelEvent, ModelFinished, PluginEvent, ReasoningDelta, TextDelta
from jackfield.messages import ContentItem, Message, with_system_text
from jackfield.processors import CallFormat
from jackfield.request import ChatRequest

TAG = "CALL"


class Reader:
    """Reads one answer."""

    def __init__(self) -> None:
        self.held = ""
        self.body: list[str] | None = None
        self.next = 0
        self.native: dict[int, int] = {}
        self.out: list[ModelEvent] = []

    def feed(self, event: ModelEvent) -> list[ModelEvent]:
        self.out = []
        match event:
            case TextDelta():
                self.read(event.text)
            case FunctionCallDelta():
                self.out.append(replace(event, index=self.native_index(event.index)))
            case ModelFinished():
                self.end(event)
            case _:
                self.out.append(event)
        return self.out

    def read(self, piece: str) -> None:
        text, self.held = self.held + piece, ""
        while text:
            before, tag, text = text.partition(TAG)
            if not tag:
                length = next((n for n in range(len(TAG) - 1, 0, -1) if before.endswith(TAG[:n])), 0)
                self.held = before[len(before) - length :]
                before = before[: len(before) - length]
            self.say(before)
            if tag and self.body is None:
                self.body = []
            elif tag:
                self.close()

    def say(self, text: str) -> None:
        if self.body is not None:
            self.body.append(text)
        elif text:
            self.out.append(TextDelta(text))

    def close(self) -> None:
        body, self.body = "".join(self.body or ()), None
        call = self.parsed(body)
        if call is None:
            self.say(f"{TAG}{body}{TAG}")
        else:
            index, self.next = self.next, self.next + 1
            self.out.append(FunctionCallDelta(index, str(index + 1), call["name"], json.dumps(call["arguments"])))

    def parsed(self, body: str) -> Any:
        try:
            call = json.loads(body)
        except ValueError:
            return None
        return call if isinstance(call, dict) and {"name", "arguments"} <= call.keys() and call["name"] else None

    def native_index(self, index: int) -> int:
        if index not in self.native:
            self.native[index], self.next = self.next, self.next + 1
        return self.native[index]

    def end(self, event: ModelFinished) -> None:
        if self.body is not None:
            rest, self.body = "".join(self.body), None
            self.say(TAG + rest)
        held, self.held = self.held, ""
        self.say(held)
        called = self.next > 0 and event.reason == "stop"
        self.out.append(replace(event, reason="tool_calls") if called else event)


class Honest(CallFormat):
    name = "Honest"
    reader_class: type[Reader] = Reader

    def __init_subclass__(cls) -> None:
        cls.name = cls.__name__

    def reader(self, request: ChatRequest) -> Any:
        return self.reader_class()

    def render(self, request: ChatRequest) -> ChatRequest:
        messages: Sequence[Message] = tuple(map(self.told, request.messages))
        if request.functions and request.config.function_choice != "none":
            messages = with_system_text(messages, self.prompt(request), first=False)
        config = request.config.model_copy(update={"function_choice": "auto"})
        return replace(request, messages=tuple(messages), functions=(), config=config)

    def prompt(self, request: ChatRequest) -> str:
        tools = "\n".join(json.dumps(function, ensure_ascii=False) for function in request.functions)
        return f"{tools}\nCall: {request.config.function_choice}"

    def told(self, message: Message) -> Message:
        if message.function_call:
            call = message.function_call
            try:
                arguments = json.loads(call.arguments or "{}")
            except ValueError:
                arguments = call.arguments
            body = json.dumps({"name": call.name, "arguments": arguments}, ensure_ascii=False)
            return Message("assistant", f"{TAG}{body}{TAG}")
        if message.role == "function":
            return Message("user", [ContentItem(text="RESULT: "), *message.items])
        return message


class ForgetsArguments(Honest):
    def prompt(self, request: ChatRequest) -> str:
        return " ".join(f"{f['name']}: {f['description']}" for f in request.functions) + request.config.function_choice


class TwoSystemMessages(Honest):
    def render(self, request: ChatRequest) -> ChatRequest:
        told = super().render(replace(request, messages=tuple(m for m in request.messages if m.role != "system")))
        return replace(told, messages=(*(m for m in request.messages if m.role == "system"), *told.messages))


class ChangesMessages(Honest):
    def told(self, message: Message) -> Message:
        told = super().told(message)
        message.extra = {"told": True}
        return told


class AlwaysPrompts(Honest):
    def render(self, request: ChatRequest) -> ChatRequest:
        told = super().render(request)
        return told if request.functions else replace(told, messages=(Message("system", "No tools."), *told.messages))


class DeafToChoice(Honest):
    def prompt(self, request: ChatRequest) -> str:
        return super().prompt(replace(request, config=GenerateConfig()))


class PassesChoiceOn(Honest):
    def render(self, request: ChatRequest) -> ChatRequest:
        return replace(super().render(request), config=request.config)


class OffersAnyway(Honest):
    def render(self, request: ChatRequest) -> ChatRequest:
        told = super().render(request)
        return replace(told, messages=with_system_text(told.messages, self.prompt(request), first=True))


class LosesResults(Honest):
    def told(self, message: Message) -> Message:
        return Message("user", "RESULT") if message.role == "function" else super().told(message)


class LeavesCalls(Honest):
    def told(self, message: Message) -> Message:
        return message if message.role == "function" else super().told(message)


class LosesImages(Honest):
    def told(self, message: Message) -> Message:
        return Message("user", message.get_text_content()) if message.role == "function" else super().told(message)


class KeepsOneLine(Honest):
    def told(self, message: Message) -> Message:
        if message.role == "function":
            return Message("user", f"RESULT: {message.get_text_content().partition(chr(10))[0]}")
        return super().told(message)


class NeedsJson(Honest):
    def told(self, message: Message) -> Message:
        if message.function_call:
            json.loads(message.function_call.arguments or "{}")
        return super().told(message)


class EnglishOnly(Honest):
    def render(self, request: ChatRequest) -> ChatRequest:
        {"en": "Call"}[request.lang]
        return super().render(request)


class ReadsAscii(Honest):
    class reader_class(Reader):  # noqa: N801
        def parsed(self, body: str) -> Any:
            return super().parsed(body.encode("ascii", "replace").decode())


class SaysStop(Honest):
    class reader_class(Reader):  # noqa: N801
        def end(self, event: ModelFinished) -> None:
            super().end(event)
            self.out[-1] = event


class OneIdForAll(Honest):
    class reader_class(Reader):  # noqa: N801
        def close(self) -> None:
            super().close()
            self.out = [replace(e, id="1") if isinstance(e, FunctionCallDelta) else e for e in self.out]


class ReadsOneCall(Honest):
    class reader_class(Reader):  # noqa: N801
        def parsed(self, body: str) -> Any:
            return None if self.next else super().parsed(body)


class LosesWords(Honest):
    class reader_class(Reader):  # noqa: N801
        def end(self, event: ModelFinished) -> None:
            super().end(event)

        def feed(self, event: ModelEvent) -> list[ModelEvent]:
            out = super().feed(event)
            if any(isinstance(e, FunctionCallDelta) for e in out):
                out = [e for e in out if not isinstance(e, TextDelta)]
            return out


class KnowsItsTools(Honest):
    class reader_class(Reader):  # noqa: N801
        def parsed(self, body: str) -> Any:
            call = super().parsed(body)
            return call if call and call["name"].startswith("get_") else None


class HoldsOn(Honest):
    class reader_class(Reader):  # noqa: N801
        def end(self, event: ModelFinished) -> None:
            self.held = ""
            super().end(event)


class Mends(Honest):
    class reader_class(Reader):  # noqa: N801
        def end(self, event: ModelFinished) -> None:
            if self.body is not None:
                text = "".join(self.body)
                for ending in ("}", "}}", '"}}'):
                    if self.parsed(text + ending):
                        self.body = [text + ending]
                        self.close()
                        break
            super().end(event)


class Chokes(Honest):
    class reader_class(Reader):  # noqa: N801
        def parsed(self, body: str) -> Any:
            return json.loads(body)


class LooksAtPieces(Honest):
    class reader_class(Reader):  # noqa: N801
        def read(self, piece: str) -> None:
            super().read(piece)
            self.say(self.held)
            self.held = ""


class WaitsForAll(Honest):
    class reader_class(Reader):  # noqa: N801
        parts: str = ""

        def read(self, piece: str) -> None:
            self.parts += piece

        def end(self, event: ModelFinished) -> None:
            super().read(self.parts)
            super().end(event)


class DropsNative(Honest):
    class reader_class(Reader):  # noqa: N801
        def feed(self, event: ModelEvent) -> list[ModelEvent]:
            return [] if isinstance(event, FunctionCallDelta) else super().feed(event)


class MixesIndices(Honest):
    class reader_class(Reader):  # noqa: N801
        def native_index(self, index: int) -> int:
            return index


class KnowsAll(Honest):
    class reader_class(Reader):  # noqa: N801
        def feed(self, event: ModelEvent) -> list[ModelEvent]:
            return [] if isinstance(event, PluginEvent | ReasoningDelta) else super().feed(event)


class SharesItsReader(Honest):
    def __init__(self) -> None:
        self.shared = Reader()

    def reader(self, request: ChatRequest) -> Any:
        return self.shared


class ReadsAllAgain(Honest):
    class reader_class(Reader):  # noqa: N801
        seen: str = ""

        def read(self, piece: str) -> None:
            self.seen = self.seen + piece
            super().read(piece)


class CutsOff(Honest):
    """A long piece is copied for each quote in it."""

    class reader_class(Reader):  # noqa: N801
        def read(self, piece: str) -> None:
            rest = piece
            while rest.startswith("`"):
                rest = rest[1:]
            super().read(piece)


class Backtracks(Honest):
    """An expression that begins anew at each quote and reads to the end each time."""

    class reader_class(Reader):  # noqa: N801
        def read(self, piece: str) -> None:
            re.search("(?:```)+!", piece)
            super().read(piece)


class LooksBack(Honest):
    """What may be the beginning of another tag is looked through again at each piece."""

    class reader_class(Reader):  # noqa: N801
        opened: str = ""

        def read(self, piece: str) -> None:
            if self.opened or "<" in piece:
                self.opened = self.opened + piece
            super().read(piece)


# --- formats that are wrong from end to end, so that each fails many laws, at all of their assertions ---


class TellsNothing(Honest):
    """Asks something else, and leaves tools and choices to the backend."""

    def render(self, request: ChatRequest) -> ChatRequest:
        return replace(request, messages=(Message("user", "hm"),))


class ReadsOtherThings(Honest):
    """Reads the same words in each piece, and ends as it likes."""

    class reader_class(Reader):  # noqa: N801
        def feed(self, event: ModelEvent) -> list[ModelEvent]:
            if isinstance(event, ModelFinished):
                return [ModelFinished("length"), TextDelta("?")]
            return [ReasoningDelta("hm"), TextDelta("hm")] if isinstance(event, TextDelta) else []


class ReadsNothing(Honest):
    """Gives empty answers."""

    class reader_class(Reader):  # noqa: N801
        def feed(self, event: ModelEvent) -> list[ModelEvent]:
            return [event, event] if isinstance(event, ModelFinished) else []


class ChangesRequests(Honest):
    def render(self, request: ChatRequest) -> ChatRequest:
        told = super().render(request)
        object.__setattr__(request, "functions", ())
        return told


class MendsOtherCalls(Mends):
    """Makes a call of half a call, under another name."""

    class reader_class(Mends.reader_class):  # noqa: N801
        def feed(self, event: ModelEvent) -> list[ModelEvent]:
            out = super().feed(event)
            return [replace(e, name="x") if isinstance(e, FunctionCallDelta) else e for e in out]
