"""Model requests and model capabilities, as used by all backends and processors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from jackfield.config import GenerateConfig, Lang
from jackfield.errors import JackfieldError
from jackfield.messages import FUNCTION, SYSTEM, USER, ContentItem, ItemKind, Message, Messages, ModelResponse

if TYPE_CHECKING:  # only models with known prices need this
    from jackfield.prices import PriceRow

GenerateOptions: TypeAlias = GenerateConfig | Mapping[str, Any] | None
"""Options for an answer, which override the model's configuration."""

FunctionSchema: TypeAlias = Mapping[str, Any]
"""A tool as the model sees it: `name`, `description` and `parameters` (an object's JSON Schema, draft 2020-12)."""


_CHINESE = "[\u4e00-\u9fff]"  # compiled on first use, because it takes a millisecond


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A model's capabilities, as declared by its backend. The core's behaviour depends on these, never on names.

    Attributes:
        context_tokens: The maximum combined length of prompt and answer, in tokens, or None if unknown.
        max_output_tokens: The maximum length of an answer, including reasoning, in tokens, or None if unknown.
        native_tools: True if the model accepts function schemas and returns structured calls.
        forced_calls: True if a request can force the model to call a function, False if the server rejects such
            requests.
        images, audio, video: True if the model accepts this kind of content.
        files: True if the model accepts PDFs in messages, False if PDFs must be sent as text. Other files are always
            sent as text.
        file_urls: True if the server can fetch PDFs that messages refer to by URL.
        json_schema: True if the server can enforce a JSON Schema.
        schema_with_tools: True if the server can enforce a schema in a request with tools and the model can still call
            the tools.
        reasoning: True if the server returns reasoning separately from the answer.
        thoughts_in_text: True if an answer's text may start with `<think>…</think>`. Thoughts are converted to
            reasoning.
        tokenizer: The name of the model's tokenizer, or '' if unknown.
        prices: The server's prices for the model, each valid for a period. If unknown, the tuple is empty.
    """

    context_tokens: int | None = None
    max_output_tokens: int | None = None
    native_tools: bool = True
    forced_calls: bool = True
    images: bool = False
    audio: bool = False
    video: bool = False
    files: bool = False
    file_urls: bool = False
    json_schema: bool = False
    schema_with_tools: bool = False
    reasoning: bool = False
    thoughts_in_text: bool = True
    tokenizer: str = ""
    prices: tuple[PriceRow, ...] = ()

    def takes(self, kind: ItemKind) -> bool:
        """Return True if the model accepts this kind of content or, as with files, processors convert it to text."""
        fact = _FACT_OF_MEDIUM.get(kind)
        return fact is None or bool(getattr(self, fact))


_FACT_OF_MEDIUM: Mapping[ItemKind, str] = {"image": "images", "audio": "audio", "video": "video"}


FileUse: TypeAlias = Literal["read", "read_if_possible", "read_short", "name", "done"]
"""The form in which attached files reach the model.

- `read`: every file is sent, or the request is rejected.
- `read_if_possible`: like `read`, but an unreadable file is sent only by name, with a warning.
- `read_short`: like `read_if_possible`, but a long file is also sent only by name, because a tool can open it.
- `name`: files are sent only by name, because the agent reads them itself.
- `done`: files have been read. Any that remain are for the backend.
"""


@dataclass(frozen=True)
class ChatRequest:
    """A request to a model. To change a request, processors copy it with `dataclasses.replace`.

    Attributes:
        model: The server's name for the model.
        messages: The conversation, oldest message first. Only the first message can be a system message.
        functions: Schemas of the tools that the model can call.
        config: Options for the answer.
        lang: The language for text that Jackfield adds.
        metadata: Data that processors exchange, keyed by distribution name. Backends do not send it.
        facts: The model's capabilities, for processors.
        server: The server's name: the backend, followed by `@` and the host if a host is configured.
        files: How to handle attached files; see `FileUse`.
    """

    model: str
    messages: tuple[Message, ...]
    functions: tuple[FunctionSchema, ...] = ()
    config: GenerateConfig = field(default_factory=GenerateConfig)
    lang: Lang = "en"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    facts: ModelFacts = ModelFacts()
    server: str = ""
    files: FileUse = "read"

    @cached_property
    def itemized(self) -> tuple[Message, ...]:
        """The messages whose content is a list of items rather than plain text.

        The result is cached, because histories can be long.
        """
        return tuple([message for message in self.messages if not isinstance(message.content, str)])


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """One request in a batch, with its own tools and options.

    Attributes:
        messages: A question, or a conversation, oldest message first.
        functions: Schemas of the tools that the model can call.
        config: Options for this request, which override the model's options.
    """

    messages: Messages
    functions: Sequence[FunctionSchema] = ()
    config: GenerateOptions = None


BatchAnswer: TypeAlias = ModelResponse | JackfieldError
"""The answer to one request of a batch, or its error."""


def with_media_noted(message: Message, facts: ModelFacts) -> Message:
    """Replace unsupported media in a tool's result with notes. Other messages are returned unchanged.

    Users can leave out unsupported media, but they have no control over tool results.
    """
    if isinstance(message.content, str) or message.role != FUNCTION:
        return message
    items = [
        item if facts.takes(item.type) else ContentItem(text=f"({item.type} omitted: not supported by this model)")
        for item in message.content
    ]
    return message if items == message.content else message.replace(content=items)


def language_of(messages: Sequence[Message]) -> Lang:
    """Return `zh` if a system or user message contains a Chinese character, otherwise `en`."""
    texts = (message.get_text_content() for message in messages if message.role in (SYSTEM, USER))
    return "zh" if any(not text.isascii() and re.search(_CHINESE, text) for text in texts) else "en"
