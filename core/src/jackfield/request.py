"""Requests to models and the abilities of models, which all backends and processors share."""

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
"""A tool as a model sees it: `name`, `description` and `parameters` (JSON Schema of an object, draft 2020-12)."""


_CHINESE = "[\u4e00-\u9fff]"  # compiled at first use, which takes a millisecond


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The abilities of a model, as declared by its backend. The core decides by these, never by names.

    Attributes:
        context_tokens: The maximum length of prompt and answer together, in tokens; None if unknown.
        max_output_tokens: The maximum length of an answer including reasoning, in tokens; None if unknown.
        native_tools: True if the model takes function schemas and returns structured calls.
        forced_calls: True if a request can force the model to call a function; False if the server refuses that.
        images, audio, video: True if the model takes content of this kind.
        files: True if the model takes PDFs as parts of messages; False to send them as text. Other files are always
            sent as text.
        file_urls: True if the server itself fetches PDFs that messages name by URL.
        json_schema: True if the server can enforce a JSON Schema.
        schema_with_tools: True if it can do so in a request with tools, and the model still calls them.
        reasoning: True if the server returns reasoning separately from the answer.
        thoughts_in_text: True if an answer's text may begin with `<think>…</think>`, which then becomes reasoning.
        tokenizer: The name of the model's tokenizer; '' if unknown.
        prices: The prices of the model at its server, each for a period; empty if unknown.
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
        """Return True if the model takes content of this kind, or a processor replaces it with text, as with files."""
        fact = _FACT_OF_MEDIUM.get(kind)
        return fact is None or bool(getattr(self, fact))


_FACT_OF_MEDIUM: Mapping[ItemKind, str] = {"image": "images", "audio": "audio", "video": "video"}


FileUse: TypeAlias = Literal["read", "read_if_possible", "read_short", "name", "done"]
"""The way in which attached files reach the model.

- `read`: each is sent, or the request is refused.
- `read_if_possible`: the same, but only the name of an unreadable file is sent, with a warning.
- `read_short`: the same, but also for a long file, only the name is sent, because a tool opens it.
- `name`: only names are sent, because the agent uses the files.
- `done`: files have been read. The remaining files are for the backend.
"""


@dataclass(frozen=True)
class ChatRequest:
    """One question to a model. Processors make a changed copy with `dataclasses.replace`.

    Attributes:
        model: The model's name, as its server knows it.
        messages: The history, oldest first, with at most one system message, at the front.
        functions: The tools the model may call.
        config: Options for the answer.
        lang: The language of texts that Jackfield adds.
        metadata: Notes that processors exchange, by distribution name; no backend sends them.
        facts: The model's abilities, for processors.
        server: The server's name: the backend and, if the host of its server is configured, `@` and the host.
        files: The way in which attached files reach the model.
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
        """The messages whose content is a list of items, not plain text. Cached, because histories are long."""
        return tuple([message for message in self.messages if not isinstance(message.content, str)])


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """One request of a batch, with its own tools and options.

    Attributes:
        messages: A question, or a history, oldest first.
        functions: The tools the model may call.
        config: Options for this answer; they override the model's.
    """

    messages: Messages
    functions: Sequence[FunctionSchema] = ()
    config: GenerateOptions = None


BatchAnswer: TypeAlias = ModelResponse | JackfieldError
"""The answer to one request of a batch, or its error."""


def with_media_noted(message: Message, facts: ModelFacts) -> Message:
    """Replace media that the model does not take in a tool's result with notes; return other messages unchanged.

    Users can leave such media out, but they do not control the results of tools.
    """
    if isinstance(message.content, str) or message.role != FUNCTION:
        return message
    items = [
        item if facts.takes(item.type) else ContentItem(text=f"({item.type} left out: this model takes none)")
        for item in message.content
    ]
    return message if items == message.content else message.replace(content=items)


def language_of(messages: Sequence[Message]) -> Lang:
    """Return `zh` if a system or user message has a Chinese character, else `en`."""
    texts = (message.get_text_content() for message in messages if message.role in (SYSTEM, USER))
    return "zh" if any(not text.isascii() and re.search(_CHINESE, text) for text in texts) else "en"
