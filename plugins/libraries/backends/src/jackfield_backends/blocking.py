"""The base class for backends with a blocking SDK."""

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
    """A backend with a blocking SDK. Subclasses implement `stream_blocking`, which runs in a worker thread."""

    @abstractmethod
    def stream_blocking(self, request: ChatRequest) -> Iterator[ModelEvent]:
        """Stream the answer to one request. The blocking counterpart of `stream`, as a plain generator."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Yield the events of `stream_blocking`, at the cost of one thread hop per event."""
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
