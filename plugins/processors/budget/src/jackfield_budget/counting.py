"""How many tokens a request will count, before it is sent: an estimate, without a vocabulary."""

from __future__ import annotations

from collections.abc import Iterator

from jackfield.jsontext import dumps
from jackfield.messages import ContentItem, Message
from jackfield.request import ChatRequest
from jackfield.tokens import estimate_tokens

_MOST_REMEMBERED = 4096


class Estimator:
    """Estimates the texts of requests, and remembers long ones: a history is sent again and again.

    Images, sounds and films are not counted: what they cost differs too much.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], int] = {}

    def question(self, request: ChatRequest) -> int:
        """The tokens of messages and functions."""
        functions = sum(self._text(dumps(dict(function))) for function in request.functions)
        return functions + sum(self._text(text) for message in request.messages for text in _texts(message))

    def _text(self, text: str) -> int:
        key = (hash(text), len(text))  # a hash is kept with its string, and the text itself need not be kept here
        tokens = self._known.get(key)
        if tokens is None:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known = {}
            tokens = self._known[key] = estimate_tokens(text)
        return tokens


def _texts(message: Message) -> Iterator[str]:
    yield from _texts_of(message.content)
    yield from _texts_of(message.reasoning_content or "")
    if message.function_call:
        yield message.function_call.name
        yield message.function_call.arguments


def _texts_of(content: str | list[ContentItem]) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    else:
        yield from (item.text or item.file or "" for item in content)
