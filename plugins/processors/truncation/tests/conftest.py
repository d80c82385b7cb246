"""What the tests share: a counter that can be asked what it counted, and a request of any messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from jackfield.config import GenerateConfig
from jackfield.messages import Message
from jackfield.request import ChatRequest
from tests.support.site import site

__all__ = ["site"]

MakeRequest = Callable[..., ChatRequest]


class WordCounter:
    """Counts words, and keeps what it was given."""

    def __init__(self) -> None:
        self.counted: list[str] = []

    def __call__(self, text: str) -> int:
        """A word is a token."""
        self.counted.append(text)
        return len(text.split())


@pytest.fixture
def words() -> WordCounter:
    """A counter of its own for each test."""
    return WordCounter()


@pytest.fixture(scope="session")
def make_request() -> MakeRequest:
    """Makes a request with a limit; `max_tokens` and fields of the request may follow."""

    def make_request(
        messages: Sequence[Message], limit: int | None = None, *, max_tokens: int | None = None, **fields: Any
    ) -> ChatRequest:
        config = GenerateConfig(max_input_tokens=limit, max_tokens=max_tokens)
        return ChatRequest(model="m", messages=tuple(messages), config=config, **fields)

    return make_request
