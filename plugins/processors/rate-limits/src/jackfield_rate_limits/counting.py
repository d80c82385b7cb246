"""How many tokens a request will count, before it is sent: an estimate, without a vocabulary."""

from __future__ import annotations

from collections.abc import Iterator

from jackfield.jsontext import dumps
from jackfield.messages import ContentItem, Message
from jackfield.request import ChatRequest
from jackfield.tokens import estimate_tokens

_MESSAGE_TOKENS = 4  # for its role and its borders
_MOST_REMEMBERED = 4096


class Estimator:
    """Estimates requests, and remembers long texts: a history is sent again and again.

    Args:
        media_tokens: What an image, a sound or a film is taken for.
    """

    def __init__(self, media_tokens: int) -> None:
        self._media_tokens = media_tokens
        self._known: dict[tuple[int, int], int] = {}

    def question(self, request: ChatRequest) -> int:
        """The tokens of messages and functions."""
        functions = sum(self._text(dumps(dict(function))) for function in request.functions)
        return functions + sum(map(self._message, request.messages))

    def _message(self, message: Message) -> int:
        content = message.content
        media = 0 if isinstance(content, str) else sum(item.is_media_content() for item in content)
        return _MESSAGE_TOKENS + media * self._media_tokens + sum(map(self._text, _texts(message)))

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
