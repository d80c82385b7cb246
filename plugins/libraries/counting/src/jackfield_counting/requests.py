"""Count the tokens of a request, each text once."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from jackfield.jsontext import dumps
from jackfield.messages import ContentItem, Message
from jackfield.request import ChatRequest, FunctionSchema
from jackfield.tokenizers import TokenCounter

MESSAGE_TOKENS = 4
"""What a message counts besides its texts: its role, and the marks around it."""

_MOST_REMEMBERED = 50_000  # counts in each of two generations: some 7 MB each when full
_MOST_SCHEMAS = 1_000


class Counts:
    """Counts texts, and remembers the counts, never the texts. It may be used from several threads at once.

    A schema is remembered by its identity: it must not be changed.

    Args:
        count: Counts a text. No text may have more tokens than bytes in UTF-8: that is the bound used before counting.
    """

    def __init__(self, count: TokenCounter) -> None:
        self._count = count
        self._recent: dict[tuple[int, int], int] = {}
        self._older: dict[tuple[int, int], int] = {}
        self._schemas: dict[int, tuple[FunctionSchema, str]] = {}

    @property
    def remembered(self) -> int:
        """How many counts are remembered."""
        return len(self._recent) + len(self._older)

    def of(self, text: str) -> int:
        """The tokens of a text."""
        if not text:
            return 0
        # A hash is kept with its string, so a text that was looked up before is found without being read.
        key = (hash(text), len(text))
        tokens = self._recent.get(key)
        if tokens is not None:
            return tokens
        tokens = self._older.get(key)
        if tokens is None:
            tokens = self._count(text)
        self._remember(key, tokens)
        return tokens

    def _remember(self, key: tuple[int, int], tokens: int) -> None:
        # Two generations need no lock: another thread sees the one or the other dict, and at worst counts again.
        if len(self._recent) >= _MOST_REMEMBERED:
            self._older, self._recent = self._recent, {}
        self._recent[key] = tokens

    def schema_text(self, schema: FunctionSchema) -> str:
        """A schema as JSON."""
        known = self._schemas.get(id(schema))
        if known is not None:
            return known[1]
        text = dumps(dict(schema))
        if len(self._schemas) >= _MOST_SCHEMAS:
            self._schemas = {}
        # With the schema itself, because an id is free again once its object is gone.
        self._schemas[id(schema)] = (schema, text)
        return text


class RequestCounter:
    """Counts texts, messages and schemas.

    Args:
        counts: Counts texts, or a function that does.
        media_tokens: How many tokens an image, a sound or a frame of video counts as.
        factor: The count of a text is multiplied by it. Counts are remembered without it, so they stay valid when the
            factor changes.
    """

    def __init__(self, counts: Counts | TokenCounter, media_tokens: int, *, factor: float = 1.0) -> None:
        self._counts = counts if isinstance(counts, Counts) else Counts(counts)
        self._media_tokens = media_tokens
        self._factor = factor

    @property
    def factor(self) -> float:
        """What the count of a text is multiplied by."""
        return self._factor

    def surely_fits(self, request: ChatRequest, limit: int) -> bool:
        """Whether the request has at most `limit` tokens however it is counted; nothing is counted for this."""
        most, limit_of_counts = 0, limit / max(1.0, self._factor)
        for message in request.messages:
            most += self.at_most(message)
            if most > limit_of_counts:
                return False
        return most + self.functions_at_most(request.functions) <= limit_of_counts

    def at_most(self, message: Message) -> int:
        """More tokens than a message can have, before the factor; nothing is counted for this."""
        return MESSAGE_TOKENS + self.media(message) + sum(map(_at_most, texts_of(message)))

    def functions_at_most(self, functions: Sequence[FunctionSchema]) -> int:
        """More tokens than schemas can have, before the factor."""
        return sum(_at_most(self._counts.schema_text(one)) for one in functions)

    def text(self, text: str) -> int:
        """The tokens of a text."""
        tokens = self._counts.of(text)
        return tokens if self._factor == 1.0 else ceil(tokens * self._factor)

    def message(self, message: Message) -> int:
        """The tokens of a message: content, reasoning, call, names and media."""
        # Most have no factor, and a call less for each text is a tenth of the time.
        texts = sum(map(self._counts.of if self._factor == 1.0 else self.text, texts_of(message)))
        return MESSAGE_TOKENS + self.media(message) + texts

    def media(self, message: Message) -> int:
        """The estimated tokens of a message's media."""
        return self._media_tokens * _media_of(message)

    def request(self, request: ChatRequest) -> int:
        """The tokens of a whole request."""
        return sum(map(self.message, request.messages)) + self.functions(request.functions)

    def functions(self, functions: Sequence[FunctionSchema]) -> int:
        """The tokens of schemas, as JSON."""
        return sum(self.text(self._counts.schema_text(function)) for function in functions)


def _at_most(text: str) -> int:
    """More tokens than a text can have: its bytes, or, without reading it, four a character."""
    return len(text) if text.isascii() else 4 * len(text)


def texts_of(message: Message) -> list[str]:
    """All texts of a message that a model reads; a file is represented by its name."""
    texts = _texts_in(message.content)
    if message.reasoning_content:
        texts += _texts_in(message.reasoning_content)
    if message.function_call:
        texts += (message.function_call.name, message.function_call.arguments)
    if message.name:
        texts.append(message.name)
    return texts


def _texts_in(content: str | Sequence[ContentItem]) -> list[str]:
    if isinstance(content, str):
        return [content]
    texts = (item.text if item.text is not None else item.file for item in content)
    return [text for text in texts if text]


def _media_of(message: Message) -> int:
    """How many images, sounds and frames a message has."""
    return _media_in(message.content) + _media_in(message.reasoning_content or "")


def _media_in(content: str | Sequence[ContentItem]) -> int:
    return 0 if isinstance(content, str) else sum(map(_weight, content))


def _weight(item: ContentItem) -> int:
    if isinstance(item.video, list):
        return len(item.video)
    return 1 if item.is_media_content() else 0
