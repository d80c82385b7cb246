"""Processor that shortens requests that are too long."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from jackfield import sync
from jackfield.events import HistoryTrimmed, ModelEvent, ModelFinished, UsageReported
from jackfield.messages import Usage
from jackfield.plugins import Plugins
from jackfield.processors import CallNext, Phase, Preprocessor
from jackfield.request import ChatRequest
from jackfield.streams import closing
from jackfield.tokenizers import TokenCounter
from jackfield_truncation.config import TruncationConfig
from jackfield_truncation.limit import tokens_allowed
from jackfield_truncation.tokenizing import Counting, Countings
from jackfield_truncation.trimming import Trimmed, trim

_NOTHING = Usage()


@dataclass(frozen=True, slots=True)
class Decided:
    """The request to send, and how its tokens were counted."""

    trimmed: Trimmed
    counting: Counting


class Truncation(Preprocessor):
    """Keeps requests within `max_input_tokens` or the model's context. Requests that fit are not changed.

    See `jackfield_truncation.trimming` for what is shortened, and in which order. If anything is omitted, the answer's
    first event is `HistoryTrimmed`.

    Args:
        cfg, settings: The keys of `TruncationConfig`.
        count: Counts a text's tokens, replacing any tokenizer.
        host: The host used to look up tokenizers. If None, the installed ones are used.

    Raises:
        ConfigError: A setting is invalid.
        PluginError: `tokenizer` is not installed, or is not allowed to load.
    """

    name: ClassVar[str] = "truncation"
    config_class = TruncationConfig
    config: TruncationConfig
    phase: ClassVar[Phase] = "context"

    def __init__(
        self,
        cfg: TruncationConfig | Mapping[str, object] | None = None,
        *,
        count: TokenCounter | None = None,
        host: Plugins | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(cfg, **settings)
        self._countings = Countings(
            tokenizer=self.config.tokenizer, count=count, media_tokens=self.config.media_tokens, host=host
        )

    def __repr__(self) -> str:
        return f"<Truncation context_tokens={self.config.context_tokens}>"

    def prepare(self, request: ChatRequest) -> ChatRequest:
        """Return the request, shortened if it is too long. If a vocabulary is needed, it is loaded right away.

        Raises:
            ContextLengthError: The request cannot be shortened enough. The message names the longest part and the
                excess.
        """
        return request if self._surely_fits(request) else self._decide(request).trimmed.request

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Send the prepared request. If it was shortened, an event precedes the answer."""
        return call_next(request) if self._surely_fits(request) else self._counted(request, call_next)

    async def _counted(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        # In a thread, because loading a vocabulary and counting a long history each take a third of a second.
        if self._countings.at_hand(request):
            decided = self._decide(request)
        else:
            decided = await sync.in_worker(self._decide, request)
        async with closing(answer_with(decided, call_next)) as events:
            async for event in events:
                yield event

    def _surely_fits(self, request: ChatRequest) -> bool:
        return surely_fits(request, self.config, self._countings)

    def _decide(self, request: ChatRequest) -> Decided:
        counting = self._countings.of(request)
        limit = tokens_allowed(request, self.config, exact=counting.exact)
        assert limit is not None  # noqa: S101 - without a limit, every request certainly fits
        return Decided(trim(request, limit, counting.counter()), counting)


async def answer_with(decided: Decided, call_next: CallNext, *, spent: Usage = _NOTHING) -> AsyncIterator[ModelEvent]:
    """Yield an event about omitted messages, if any, then the answer to the shortened request.

    Args:
        decided: The request to send. The token count reported by the server improves later estimates.
        call_next: The next processor, or the model.
        spent: Usage so far, which is added to the answer's usage.
    """
    trimmed = decided.trimmed
    reported: Usage | None = None
    async with closing(call_next(trimmed.request)) as events:
        if trimmed.is_shorter:
            yield HistoryTrimmed(len(trimmed.dropped), trimmed.shortened, trimmed.tokens_before, trimmed.tokens_after)
        async for event in events:
            if isinstance(event, UsageReported):
                reported = event.usage
                event = UsageReported(reported + spent)  # noqa: PLW2901 - what is passed on
            elif isinstance(event, ModelFinished) and reported is None and spent.total_tokens:
                yield UsageReported(spent)
            yield event
    if reported:
        decided.counting.learn(trimmed.request, trimmed.tokens_after, reported.prompt_tokens)


def surely_fits(request: ChatRequest, config: TruncationConfig, countings: Countings) -> bool:
    """Return True if a request has no limit or is certainly within it, without counting tokens exactly."""
    limit = tokens_allowed(request, config, exact=False)
    return limit is None or countings.roughly(request).surely_fits(request, limit)
