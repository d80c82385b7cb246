"""How these tests read a reply: as a list of texts and calls, however it was cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.messages import ModelResponse
from jackfield.models.fold import fold
from jackfield_call_formats.reader import NousReader


def _feed(events: Sequence[ModelEvent], **options: Any) -> list[ModelEvent]:
    reader = NousReader(**options)
    return [out for event in events for out in reader.feed(event)]


def _read(*pieces: str, reason: str = "stop", **options: Any) -> ModelResponse:
    return fold(_feed([*map(TextDelta, pieces), ModelFinished(reason)], **options))


@pytest.fixture(scope="session")
def feed() -> Callable[..., list[ModelEvent]]:
    """Events through a new reader."""
    return _feed


@pytest.fixture(scope="session")
def read() -> Callable[..., ModelResponse]:
    """Pieces of text through a new reader, folded."""
    return _read


@pytest.fixture(scope="session")
def told() -> Callable[[ModelResponse], list[Any]]:
    """An answer as its text (if any) and a pair for each call."""

    def tell(response: ModelResponse) -> list[Any]:
        return [
            (message.function_call.name, message.function_call.arguments) if message.function_call else message.content
            for message in response.messages
        ]

    return tell
