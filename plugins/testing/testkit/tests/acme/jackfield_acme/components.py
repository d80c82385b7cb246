"""What the light module describes, mostly what stands in the zoo."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, ClassVar

import tiny_backend
from jackfield_zoo import call_formats, embedders, parsers, processors, tokenizers

from jackfield.config import Config, LLMConfig
from jackfield.errors import ConfigError
from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.messages import Usage
from jackfield.plugins import Texts
from jackfield.request import ChatRequest, ModelFacts
from jackfield.retrieval import Document, Embedded, Purpose
from jackfield.tools import BaseTool, ToolContext
from jackfield_acme.plugin import PARAMETERS


class Format(call_formats.Honest):
    pass


Format.name = "acme"


class ChatConfig(LLMConfig):
    native_tools: bool = True


class Chat(tiny_backend.Tiny):
    """Asks a server; without one, it answers by itself."""

    config_class = ChatConfig

    @property
    def facts(self) -> ModelFacts:
        return ModelFacts(native_tools=bool(self.config.server_url), context_tokens=4096)

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        if request.config.seed is not None:
            raise ConfigError("the protocol has no seed: leave it out")
        if self.config.server_url:
            async for event in super().stream(request):
                yield event
            return
        yield TextDelta("A small answer.")
        yield ModelFinished("stop", model=request.model)


class EmbedsConfig(Config):
    model: str = "small"
    base_url: str = ""
    api_key: str = "none"
    dimension: int | None = None
    batch_size: int = 100
    request_timeout: float = 5
    max_retries: int = 0


class Embeds(embedders.Honest):
    """Asks a server; without one, it takes the letters for numbers."""

    def __init__(self, **settings: Any) -> None:
        self.settings: Any = EmbedsConfig.parse(settings)

    def body(self, batch: list[str], purpose: Purpose) -> bytes:
        told = json.loads(super().body(batch, purpose))
        return json.dumps({name: value for name, value in told.items() if name != "purpose"}).encode()

    async def asked(self, batch: list[str], purpose: Purpose) -> Embedded:
        if self.settings.base_url:
            return await super().asked(batch, purpose)
        return Embedded(tuple(self.vector_of(text) for text in batch), Usage(prompt_tokens=len(batch)))

    def vector_of(self, text: str) -> tuple[float, ...]:
        numbers = [1.0] * self.settings.dimension
        for place, letter in enumerate(text):
            numbers[(place * 31 + ord(letter)) % len(numbers)] += 1.0
        return tuple(numbers)


class Reads(parsers.Honest):
    def parse(self, data: bytes, *, source: str) -> Document:
        return super().parse(self.mark() + data + b"\nend", source=source)


class Shouts(processors.Honest):
    pass


Shouts.name = "shout"


class Bytes(tokenizers.Honest):
    def __init__(self) -> None:
        self.name = "acme"


class Counter(BaseTool):
    name: ClassVar[str] = "counter"
    description: Texts = "Counts words."
    parameters: ClassVar[Mapping[str, Any]] = PARAMETERS

    def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> str:
        words: Sequence[str] = self.parse_arguments(params)["text"].split()
        return f"{len(words)} words"
