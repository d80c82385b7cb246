"""Count a request's tokens, tokenizing each text only once."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from jackfield.jsontext import dumps
from jackfield.messages import ContentItem, Message
from jackfield.request import ChatRequest, FunctionSchema
from jackfield.tokenizers import TokenCounter

MESSAGE_TOKENS = 4
"""A message's tokens in addition to its texts: its role and delimiters."""

_MAX_CACHED = 50_000  # counts in each of two generations, about 7 MB each when full
_MAX_SCHEMAS = 1_000


class Counts:
    """Counts the tokens of texts and caches the counts, not the texts. Instances are thread-safe.

    Schemas are cached by identity and must not be modified.

    Args:
        count: Counts a text's tokens. The count must not exceed the text's length in UTF-8 bytes, which serves as an
            upper bound before counting.
    """

    def __init__(self, count: TokenCounter) -> None:
        self._count = count
        self._recent: dict[tuple[int, int], int] = {}
        self._older: dict[tuple[int, int], int] = {}
        self._schemas: dict[int, tuple[FunctionSchema, str]] = {}

    @property
    def remembered(self) -> int:
        """The number of cached counts."""
        return len(self._recent) + len(self._older)

    def of(self, text: str) -> int:
        """Return a text's token count."""
        if not text:
            return 0
        # A string caches its hash, so a repeated lookup does not read the text again.
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
        # Two generations need no lock: another thread sees one dict or the other, and at worst counts again.
        if len(self._recent) >= _MAX_CACHED:
            self._older, self._recent = self._recent, {}
        self._recent[key] = tokens

    def schema_text(self, schema: FunctionSchema) -> str:
        """Return a schema as JSON."""
        known = self._schemas.get(id(schema))
        if known is not None:
            return known[1]
        text = dumps(dict(schema))
        if len(self._schemas) >= _MAX_SCHEMAS:
            self._schemas = {}
        # The schema is stored as well, because Python reuses the ids of freed objects.
        self._schemas[id(schema)] = (schema, text)
        return text


class RequestCounter:
    """Counts the tokens of texts, messages, schemas and requests.

    Args:
        counts: Cached counts, or a function that counts a text's tokens.
        media_tokens: The tokens per image, audio clip or video frame.
        factor: The factor applied to text counts. Counts are cached without it, so they stay valid for any factor.
    """

    def __init__(self, counts: Counts | TokenCounter, media_tokens: int, *, factor: float = 1.0) -> None:
        self._counts = counts if isinstance(counts, Counts) else Counts(counts)
        self._media_tokens = media_tokens
        self._factor = factor

    @property
    def factor(self) -> float:
        """The factor applied to text counts."""
        return self._factor

    def surely_fits(self, request: ChatRequest, limit: int) -> bool:
        """Return True if the request is certain to fit in `limit` tokens, without tokenizing."""
        bound, limit_of_counts = 0, limit / max(1.0, self._factor)
        for message in request.messages:
            bound += self.at_most(message)
            if bound > limit_of_counts:
                return False
        return bound + self.functions_at_most(request.functions) <= limit_of_counts

    def at_most(self, message: Message) -> int:
        """Return an upper bound on a message's tokens, without tokenizing and before applying the factor."""
        return MESSAGE_TOKENS + self.media(message) + sum(map(_at_most, texts_of(message)))

    def functions_at_most(self, functions: Sequence[FunctionSchema]) -> int:
        """Return an upper bound on the tokens of schemas, before applying the factor."""
        return sum(_at_most(self._counts.schema_text(one)) for one in functions)

    def text(self, text: str) -> int:
        """Return a text's token count."""
        tokens = self._counts.of(text)
        return tokens if self._factor == 1.0 else ceil(tokens * self._factor)

    def message(self, message: Message) -> int:
        """Return a message's token count: content, reasoning, function call, names and media."""
        # The factor is usually 1, and saving one call per text saves a tenth of the time.
        texts = sum(map(self._counts.of if self._factor == 1.0 else self.text, texts_of(message)))
        return MESSAGE_TOKENS + self.media(message) + texts

    def media(self, message: Message) -> int:
        """Return the estimated token count of a message's media."""
        return self._media_tokens * _media_of(message)

    def request(self, request: ChatRequest) -> int:
        """Return a request's total token count."""
        return sum(map(self.message, request.messages)) + self.functions(request.functions)

    def functions(self, functions: Sequence[FunctionSchema]) -> int:
        """Return the token count of schemas, serialised as JSON."""
        return sum(self.text(self._counts.schema_text(function)) for function in functions)


def _at_most(text: str) -> int:
    """Return an upper bound on a text's tokens: its bytes, or four per character if it is not ASCII."""
    return len(text) if text.isascii() else 4 * len(text)


def texts_of(message: Message) -> list[str]:
    """Return all texts in a message that a model reads, with each file represented by its address."""
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
    """Return the number of images, audio clips and video frames in a message."""
    return _media_in(message.content) + _media_in(message.reasoning_content or "")


def _media_in(content: str | Sequence[ContentItem]) -> int:
    return 0 if isinstance(content, str) else sum(map(_weight, content))


def _weight(item: ContentItem) -> int:
    if isinstance(item.video, list):
        return len(item.video)
    return 1 if item.is_media_content() else 0
