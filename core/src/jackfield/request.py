"""What a model is asked, and what it can do: the two values every backend and processor shares."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from jackfield.config import GenerateConfig, Lang
from jackfield.errors import JackfieldError
from jackfield.messages import FUNCTION, SYSTEM, USER, ContentItem, ItemKind, Message, Messages, ModelResponse

GenerateOptions: TypeAlias = GenerateConfig | Mapping[str, Any] | None
"""Options for an answer; they override the model's configuration."""

FunctionSchema: TypeAlias = Mapping[str, Any]
"""A tool as a model sees it: `name`, `description` and `parameters` (JSON Schema, draft 2020-12, of an object)."""


_CHINESE = re.compile("[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a backend states about its model; the core decides by these and never by names.

    Attributes:
        context_tokens: The longest prompt and answer together, in tokens; None if unknown.
        native_tools: Takes function schemas and gives back structured calls.
        images, audio, video, files: Takes content of this kind; a file is a document. Content that is
            not taken is replaced by its name.
        json_schema: Can be made to follow a JSON Schema.
        reasoning: Returns its reasoning separately from the answer.
        thoughts_in_text: The text of an answer may begin with `<think>…</think>`, which then becomes reasoning.
        tokenizer: The name of the tokenizer that counts for it; '' if none is known.
    """

    context_tokens: int | None = None
    native_tools: bool = True
    images: bool = False
    audio: bool = False
    video: bool = False
    files: bool = False
    json_schema: bool = False
    reasoning: bool = False
    thoughts_in_text: bool = True
    tokenizer: str = ""

    def takes(self, kind: ItemKind) -> bool:
        """Whether the model takes content of this kind; a file is replaced by its name if it does not."""
        named = _FACTS.get(kind)
        return named is None or bool(getattr(self, named))


_FACTS: Mapping[ItemKind, str] = {"image": "images", "audio": "audio", "video": "video"}


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a model. Processors make a changed copy with `dataclasses.replace`.

    Attributes:
        model: The model's name, as its server knows it.
        messages: The history, oldest first; at most one system message, at the front.
        functions: The tools the model may call.
        config: Options for the answer.
        lang: The language of texts that Jackfield adds.
        metadata: For processors that talk to each other, by distribution name; no backend sends it.
        facts: What the model can do, for processors that must know; a backend has its own.
        server: The server's name: the backend, and after an `@` the host of its server if that is configured.
    """

    model: str
    messages: tuple[Message, ...]
    functions: tuple[FunctionSchema, ...] = ()
    config: GenerateConfig = field(default_factory=GenerateConfig)
    lang: Lang = "en"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    facts: ModelFacts = ModelFacts()
    server: str = ""


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
    """A tool's result with a note in place of each medium that the model does not take; any other message as it is.

    The user can leave out what a model does not take, but not what a tool gives.
    """
    if isinstance(message.content, str) or message.role != FUNCTION:
        return message
    items = [_noted(item, facts) for item in message.content]
    return message if items == message.content else message.replace(content=items)


def _noted(item: ContentItem, facts: ModelFacts) -> ContentItem:
    return item if facts.takes(item.type) else ContentItem(text=f"({item.type} left out: this model takes none)")


def language_of(messages: Sequence[Message]) -> Lang:
    """`zh` if there is a Chinese character in the text of the system or the user, else `en`."""
    texts = (message.get_text_content() for message in messages if message.role in (SYSTEM, USER))
    return "zh" if any(not text.isascii() and _CHINESE.search(text) for text in texts) else "en"
