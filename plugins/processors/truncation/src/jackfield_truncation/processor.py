"""Truncation as a processor: a request that is too long is replaced by a shorter one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import ClassVar

from jackfield.config import Lang
from jackfield.errors import ContextLengthError
from jackfield.events import ModelEvent, PluginEvent
from jackfield.processors import CallNext, Phase, Preprocessor
from jackfield.request import ChatRequest
from jackfield.streams import closing
from jackfield.tokens import TokenCounter, estimate_tokens
from jackfield_truncation.config import TruncationConfig
from jackfield_truncation.counting import RequestCounter
from jackfield_truncation.trimming import Trimmed, trim

TRIMMED_EVENT = "jackfield-truncation.trimmed"
_MOST_ANSWER_TOKENS = 4096


class Truncation(Preprocessor):
    """Keeps requests within `max_input_tokens`, else within the model's context; one that fits passes as it is.

    What becomes shorter, and in which order, is told in `jackfield_truncation.trimming`. When something does, the
    first event of the answer is `PluginEvent("jackfield-truncation.trimmed")`, with `dropped` and `shortened` (numbers
    of messages), `tokens_before`, `tokens_after`, and a `note` for people.

    Args:
        context_tokens: The model's context, for requests without `max_input_tokens`; what the backend says of it if
            None. Where neither is known, they are not touched.
        answer_tokens: How much of it is kept for an answer without `max_tokens`; a quarter, at most 4096, if None.
        margin: The part of what is left then that stays free.
        media_tokens: What an image, a sound or a frame of video counts.
        count: Counts the tokens of a text; the core's estimate, which needs no vocabulary, by default.

    Raises:
        ConfigError: A setting does not fit.
    """

    name: ClassVar[str] = "truncation"
    phase: ClassVar[Phase] = "context"

    def __init__(
        self,
        *,
        context_tokens: int | None = None,
        answer_tokens: int | None = None,
        margin: float = 0.1,
        media_tokens: int = 1000,
        count: TokenCounter = estimate_tokens,
    ) -> None:
        values = {
            "context_tokens": context_tokens,
            "answer_tokens": answer_tokens,
            "margin": margin,
            "media_tokens": media_tokens,
        }
        self.config = TruncationConfig.parse(values, what="truncation")
        self._counter = RequestCounter(count, self.config.media_tokens)

    def __repr__(self) -> str:
        return f"<Truncation context_tokens={self.config.context_tokens}>"

    def prepare(self, request: ChatRequest) -> ChatRequest:
        """The request, or a shorter one if it is too long.

        Raises:
            ContextLengthError: It cannot be made short enough; the message says what is too long, and by how much.
        """
        trimmed = self._trimmed(request)
        return request if trimmed is None else trimmed.request

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Ask with the prepared request; if it is a shorter one, say so before the answer."""
        trimmed = self._trimmed(request)
        if trimmed is None:
            return call_next(request)
        return _announced(trimmed, call_next(trimmed.request))

    def _trimmed(self, request: ChatRequest) -> Trimmed | None:
        limit = self._limit(request)
        if limit is None or self._counter.surely_fits(request, limit):
            return None
        return trim(request, limit, self._counter)

    def _limit(self, request: ChatRequest) -> int | None:
        """The most tokens of a request; None if there is no limit."""
        wanted = request.config.max_input_tokens
        if wanted is not None:
            return wanted if wanted > 0 else None
        context = self.config.context_tokens or request.facts.context_tokens
        if context is None:
            return None
        answer = request.config.max_tokens
        if answer is None:
            answer = self.config.answer_tokens
        if answer is None:
            answer = min(context // 4, _MOST_ANSWER_TOKENS)
        if answer >= context:
            raise ContextLengthError(
                f"an answer of {answer} tokens leaves no room for the request in a context of {context}: "
                "lower max_tokens (or answer_tokens of truncation)"
            )
        return int((context - answer) * (1 - self.config.margin))


async def _announced(trimmed: Trimmed, events: AsyncIterator[ModelEvent]) -> AsyncIterator[ModelEvent]:
    """The events, after one that tells what was left out."""
    async with closing(events):
        yield PluginEvent(
            TRIMMED_EVENT,
            {
                "dropped": trimmed.dropped,
                "shortened": trimmed.shortened,
                "tokens_before": trimmed.tokens_before,
                "tokens_after": trimmed.tokens_after,
                "note": _note(trimmed, trimmed.request.lang),
            },
        )
        async for event in events:
            yield event


def _note(trimmed: Trimmed, lang: Lang) -> str:
    if lang == "zh":
        return (
            f"对话过长：省略了 {trimmed.dropped} 条消息，缩短了 {trimmed.shortened} 条"
            f"（约 {trimmed.tokens_before} → {trimmed.tokens_after} 个 token）"
        )
    return (
        f"the conversation is too long: {trimmed.dropped} messages left out, {trimmed.shortened} shortened "
        f"(about {trimmed.tokens_before} → {trimmed.tokens_after} tokens)"
    )
