"""Stop words as a processor: the answer ends at the first of them, and so does the server's work."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import ClassVar

from jackfield.events import ModelEvent
from jackfield.models import until_stop
from jackfield.processors import CallNext, Phase, Processor
from jackfield.request import ChatRequest
from jackfield_stop_words.config import StopWordsConfig


class StopWords(Processor):
    """Ends the answer before the first of `request.config.stop` in its text, around all attempts: see `until_stop`.

    Every model already does this; this processor can also hide them from a server that refuses them.

    Args:
        cfg, settings: The keys of `StopWordsConfig`.

    Raises:
        ConfigError: A setting is not valid.
    """

    name: ClassVar[str] = "stop_words"
    config_class = StopWordsConfig
    config: StopWordsConfig
    phase: ClassVar[Phase] = "transport"
    # Inside of a cache, so that what it keeps is an answer that is whole; around all attempts.
    after: ClassVar[tuple[str, ...]] = ("cache",)
    before: ClassVar[tuple[str, ...]] = ("retry",)

    def __repr__(self) -> str:
        return f"<StopWords send={self.config.send}>"

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Pass events on until there is a stop word."""
        words = [word for word in request.config.stop if word]
        if not self.config.send and request.config.stop:
            request = replace(request, config=request.config.model_copy(update={"stop": ()}))
        return until_stop(words, call_next(request)) if words else call_next(request)
