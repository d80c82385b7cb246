"""A model without a server that keeps the laws of every model, and ones that each break it in one place."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

from jackfield.errors import ModelConnectionError
from jackfield.events import FunctionCallDelta, ModelEvent, ModelFinished, TextDelta
from jackfield.models import BaseChatModel
from jackfield.request import ChatRequest, ModelFacts


class Still(BaseChatModel):
    """The one that keeps the laws."""

    backend = "still"

    @property
    def facts(self) -> ModelFacts:
        return ModelFacts()

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        if request.functions:
            yield FunctionCallDelta(0, "a", request.functions[0]["name"], '{"place": "Bern"}')
        for _ in range(3):
            yield TextDelta("tick ")
            await asyncio.sleep(0)
        yield ModelFinished("stop")


class StillOfFewFacts(Still):
    """A correct one that has no native tools."""

    @property
    def facts(self) -> ModelFacts:
        return ModelFacts(native_tools=False)


class EndsTwice(Still):
    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        async for event in super().stream(request):
            yield event
        yield ModelFinished("stop")


class ChangesSchemas(Still):
    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        for function in request.functions:
            function["parameters"]["additionalProperties"] = False
        async for event in super().stream(request):
            yield event


class Sleeps(Still):
    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        async for event in super().stream(request):
            time.sleep(0.001)
            yield event


class HoldsUpTheLoop(Still):
    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        threading.Event().wait(0.2)
        async for event in super().stream(request):
            yield event


class NeverLetsGo(Still):
    """Takes no call after one that was left in the middle."""

    _is_busy = False

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        if self._is_busy:
            raise ModelConnectionError("another call is going on", backend=self.backend)
        self._is_busy = True
        async for event in super().stream(request):
            yield event
        self._is_busy = False


class TakesOneAtATime(Still):
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


class KeepsADiary(Still):
    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        with Path("diary").open("a") as diary:
            diary.write("asked\n")
        async for event in super().stream(request):
            yield event


class IgnoresItsTools(Still):
    """States that it calls tools, and never does."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        async for event in super().stream(request):
            if not isinstance(event, FunctionCallDelta):
                yield event


class SaysNothing(Still):
    """Gives empty answers, without a reason for their end."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        await asyncio.sleep(0)
        yield ModelFinished(None)  # type: ignore[arg-type]


class ClaimsACallFormat(StillOfFewFacts):
    """Has no native tools, and leaves them to the backend all the same."""

    def call_format_name(self, config: object) -> str:
        return "native"
