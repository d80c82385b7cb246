"""A processor that does all as it should, and processors that do one thing otherwise.

They write `[secret]` in capitals.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, ClassVar

from jackfield.config import GenerateConfig
from jackfield.errors import ModelServiceError
from jackfield.events import FunctionCallDelta, ModelEvent, ModelFinished, ReasoningDelta, StreamReset, TextDelta
from jackfield.plugins import default_host
from jackfield.processors import CallNext, Phase, Processor, transformed
from jackfield.request import ChatRequest

MARK = "[secret]"


class Held:
    """Rewrites one answer; what may be the beginning of the mark waits."""

    def __init__(self) -> None:
        self.held = ""

    def feed(self, event: ModelEvent) -> list[ModelEvent]:
        if isinstance(event, TextDelta):
            text, self.held = (self.held + event.text).replace(MARK, MARK.upper()), ""
            for length in range(min(len(MARK) - 1, len(text)), 0, -1):
                if text.endswith(MARK[:length]):
                    text, self.held = text[:-length], text[-length:]
                    break
            return [TextDelta(text)] if text else []
        if isinstance(event, ModelFinished):
            text, self.held = self.held, ""
            return [TextDelta(text), event] if text else [event]
        return [event]


class Honest(Processor):
    name = "Honest"
    phase: ClassVar[Phase] = "output"
    stated_phase = "output"

    def __init_subclass__(cls) -> None:
        cls.name = cls.__name__

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        return transformed(call_next(request), self.start)

    def start(self) -> Any:
        return Held()


class ForgetsItsHost(Honest):
    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        try:
            default_host()
        except AssertionError:
            return call_next(request)
        return super().around(request, call_next)


class By(Honest):
    """An answer rewritten by a function of each event."""

    def start(self) -> Any:
        held = Held()
        feed = self.feed

        class Both:
            def feed(self, event: ModelEvent) -> list[ModelEvent]:
                return [last for out in held.feed(event) for last in feed(out)]

        return Both()

    def feed(self, event: ModelEvent) -> list[ModelEvent]:
        return [event]


class SaysAnotherPhase(Honest):
    stated_phase = "input"


class SaysNoOrder(Honest):
    after = ("truncation",)


class ReadsTheName(Honest):
    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        if "function" in getattr(call_next, "__qualname__", "") or "wrap" in getattr(call_next, "__qualname__", ""):
            return call_next(request)
        return super().around(request, call_next)


class ChangesMessages(Honest):
    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        request.messages[0].content = "changed"
        return super().around(request, call_next)


class ChangesMetadata(Honest):
    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        for value in request.metadata.values():
            if isinstance(value, dict):
                value["seen"] = True
        return super().around(request, call_next)


class SendsNothing(Honest):
    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        return super().around(replace(request, messages=()), call_next)


class DropsMetadata(Honest):
    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        return super().around(replace(request, metadata={}), call_next)


class DropsFunctions(Honest):
    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        return super().around(replace(request, functions=()), call_next)


class DropsTools(Honest):
    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        return super().around(replace(request, functions=(), metadata={}), call_next)


class DropsOptions(Honest):
    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        return super().around(replace(request, config=GenerateConfig()), call_next)


class NeedsTextBesideCalls(Honest):
    """Drops the calls of an answer without text."""

    async def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        has_text = False
        async for event in super().around(request, call_next):
            has_text = has_text or isinstance(event, TextDelta)
            if has_text or not isinstance(event, FunctionCallDelta):
                yield event


class EndsEmptyAnswersAnew(Honest):
    async def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        has_text = False
        async for event in super().around(request, call_next):
            has_text = has_text or (isinstance(event, TextDelta) and bool(event.text))
            yield ModelFinished("stop") if isinstance(event, ModelFinished) and not has_text else event


class EndsChangedAnswersAnew(Honest):
    async def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        is_changed = False
        async for event in super().around(request, call_next):
            is_changed = is_changed or (isinstance(event, TextDelta) and MARK.upper() in event.text)
            yield ModelFinished("stop") if isinstance(event, ModelFinished) and is_changed else event


class ForgivesLateErrors(Honest):
    """Ends an answer as if it were whole once some of it has come."""

    async def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        count = 0
        try:
            async for event in super().around(request, call_next):
                count += 1
                yield event
        except ModelServiceError:
            if not count:
                raise
            yield ModelFinished("stop")


class LeavesOpenWhatItChanges(Honest):
    async def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        held, events = Held(), call_next(request)
        has_mark = False
        try:
            async for event in events:
                has_mark = has_mark or (isinstance(event, TextDelta) and "[" in event.text)
                for out in held.feed(event):
                    yield out
        finally:
            if has_mark:
                kept.append(events)
            else:
                await events.aclose()  # type: ignore[attr-defined]


class NotesOnce(By):
    """Passes equal events of others once."""

    def start(self) -> Any:
        self.noted: list[ModelEvent] = []
        return super().start()

    def feed(self, event: ModelEvent) -> list[ModelEvent]:
        if isinstance(event, (TextDelta, ReasoningDelta, FunctionCallDelta, ModelFinished, StreamReset)):
            return [event]
        is_new = event not in self.noted
        self.noted.append(event)
        return [event] if is_new else []


class Improves(By):
    def feed(self, event: ModelEvent) -> list[ModelEvent]:
        return [replace(event, text=event.text.upper())] if isinstance(event, TextDelta) else [event]


class DropsCalls(By):
    def feed(self, event: ModelEvent) -> list[ModelEvent]:
        return [] if isinstance(event, FunctionCallDelta) and event.index else [event]


class ThinksAloud(By):
    def feed(self, event: ModelEvent) -> list[ModelEvent]:
        return [TextDelta(event.text)] if isinstance(event, ReasoningDelta) else [event]


class KnowsAll(By):
    def feed(self, event: ModelEvent) -> list[ModelEvent]:
        known = (TextDelta, ReasoningDelta, FunctionCallDelta, ModelFinished, StreamReset)
        return [event] if isinstance(event, known) else []


class EndsTwice(By):
    def feed(self, event: ModelEvent) -> list[ModelEvent]:
        return [event, event] if isinstance(event, ModelFinished) else [event]


class EndsAnew(By):
    def feed(self, event: ModelEvent) -> list[ModelEvent]:
        return [ModelFinished(event.reason)] if isinstance(event, ModelFinished) else [event]


class ForgetsSignatures(By):
    def feed(self, event: ModelEvent) -> list[ModelEvent]:
        return [replace(event, data={})] if isinstance(event, ModelFinished) else [event]


class ForgetsIds(By):
    def feed(self, event: ModelEvent) -> list[ModelEvent]:
        return [replace(event, response_id="")] if isinstance(event, ModelFinished) else [event]


class LooksAtPieces(Honest):
    def start(self) -> Any:
        class Pieces:
            def feed(self, event: ModelEvent) -> list[ModelEvent]:
                if isinstance(event, TextDelta):
                    return [TextDelta(event.text.replace(MARK, MARK.upper()))]
                return [event]

        return Pieces()


class KeepsAfterReset(Honest):
    async def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        held = Held()
        async for event in call_next(request):
            for out in held.feed(event):
                yield out


class CountsCalls(Honest):
    calls = 0

    async def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        self.calls += 1
        number = self.calls
        async for event in super().around(request, call_next):
            yield TextDelta(f"{number}{event.text}") if number > 1 and isinstance(event, TextDelta) else event


class NumbersItsThoughts(Honest):
    calls = 0

    async def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        self.calls += 1
        yield ReasoningDelta(f"call {self.calls}")
        async for event in super().around(request, call_next):
            yield event


class KnowsOneConversation(Honest):
    """Correct, but only for conversations that begin with the message of its suite."""

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        assert request.messages[0].content == "Keep [secret] to yourself."
        return super().around(request, call_next)


class WaitsForAll(Honest):
    async def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        for event in [event async for event in super().around(request, call_next)]:
            yield event


class ReadsAllAgain(Honest):
    def start(self) -> Any:
        class Again:
            text = ""

            def feed(self, event: ModelEvent) -> list[ModelEvent]:
                if isinstance(event, TextDelta):
                    self.text = self.text + event.text
                    return []
                return [TextDelta(self.text.replace(MARK, MARK.upper())), event] if self.text else [event]

        return Again()


class LooksBack(Honest):
    """What follows a bracket that nobody closes is looked through again at each piece."""

    def start(self) -> Any:
        held = Held()

        class Back:
            opened: str = ""

            def feed(self, event: ModelEvent) -> list[ModelEvent]:
                if isinstance(event, TextDelta) and (self.opened or "(" in event.text):
                    self.opened = self.opened + event.text
                return held.feed(event)

        return Back()


class CutsOff(By):
    """A long piece is copied for each bracket in it."""

    def feed(self, event: ModelEvent) -> list[ModelEvent]:
        rest = event.text if isinstance(event, TextDelta) else ""
        while rest.startswith(("[", "1", "]", "(")):
            rest = rest[1:]
        return [event]


class Backtracks(By):
    """An expression that begins anew at each bracket and reads to the end each time."""

    def feed(self, event: ModelEvent) -> list[ModelEvent]:
        if isinstance(event, TextDelta):
            re.search(r"(?:\[1\]\()+!", event.text)
        return [event]


class Translates(Honest):
    async def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        try:
            async for event in super().around(request, call_next):
                yield event
        except ModelServiceError as error:
            raise ModelServiceError("something failed", backend="zoo") from error


class EndsInErrors(Honest):
    async def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        try:
            async for event in super().around(request, call_next):
                yield event
        except ModelServiceError:
            yield ModelFinished("stop")
            raise


class LeavesOpen(Honest):
    async def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        held = Held()
        kept.append(events := call_next(request))
        async for event in events:
            for out in held.feed(event):
                yield out


class GoesOn(Honest):
    async def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        try:
            async for event in super().around(request, call_next):
                yield event
        except asyncio.CancelledError:
            await asyncio.sleep(3600)


class SharesItsState(Honest):
    def __init__(self) -> None:
        self.shared = Held()

    def start(self) -> Any:
        return self.shared


kept: list[Any] = []  # so that what is left open is not closed by chance


class HoldsUpTheLoop(By):
    def feed(self, event: ModelEvent) -> list[ModelEvent]:
        if isinstance(event, ModelFinished):
            threading.Event().wait(0.2)
        return [event]


class StandsNowhere(Honest):
    phase = "nowhere"  # type: ignore[assignment]
    after = ("StandsNowhere",)


class EndsWithText(By):
    """Says something after the end."""

    def feed(self, event: ModelEvent) -> list[ModelEvent]:
        return [event, TextDelta("!")] if isinstance(event, ModelFinished) else [event]


class ForgivesErrors(Honest):
    """Ends an answer as if it were whole."""

    async def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        try:
            async for event in super().around(request, call_next):
                yield event
        except ModelServiceError:
            yield ModelFinished("stop")


class CopiesErrors(Honest):
    async def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        try:
            async for event in super().around(request, call_next):
                yield event
        except ModelServiceError as error:
            raise type(error)(error.message, backend="zoo") from None
