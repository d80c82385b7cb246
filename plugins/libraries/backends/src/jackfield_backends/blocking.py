"""The base class of backends whose SDK blocks."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import AsyncIterator, Iterator
from typing import cast

from jackfield import sync
from jackfield.events import ModelEvent
from jackfield.models import BaseChatModel
from jackfield.request import ChatRequest


class BlockingChatModel(BaseChatModel):
    """A backend whose SDK blocks: it defines `stream_blocking`, which runs in a worker thread."""

    @abstractmethod
    def stream_blocking(self, request: ChatRequest) -> Iterator[ModelEvent]:
        """Answer one request as `stream` does, as a plain generator."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Yield the events of `stream_blocking`; each takes one hop between threads."""
        events = self.stream_blocking(request)
        turn = threading.Lock()  # a running generator cannot be closed, so closing waits in a thread for its turn
        end = object()

        def step() -> object:
            with turn:
                return next(events, end)

        def close() -> None:
            with turn:
                getattr(events, "close", lambda: None)()

        try:
            while (event := await sync.in_worker(step)) is not end:
                yield cast(ModelEvent, event)
        finally:
            if turn.locked():  # cancelled while the SDK blocks, which may take long
                sync.in_background(close)
            else:
                await sync.in_worker(close)
