"""Truncation that replaces omitted messages with a summary written by a model."""

from __future__ import annotations

from bisect import bisect
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

from jackfield import sync
from jackfield.errors import ContextLengthError
from jackfield.events import ModelEvent, PluginEvent
from jackfield.messages import Message, Usage
from jackfield.models import BaseChatModel, get_chat_model
from jackfield.plugins import Plugins
from jackfield.processors import CallNext
from jackfield.request import ChatRequest
from jackfield.streams import closing
from jackfield.tokenizers import TokenCounter
from jackfield_counting.requests import RequestCounter
from jackfield_truncation.config import SummarizingConfig
from jackfield_truncation.limit import tokens_allowed
from jackfield_truncation.processor import Decided, Truncation, answer_with
from jackfield_truncation.summary import Summaries, Summary, is_only_reasoning, note_of, question
from jackfield_truncation.trimming import Trimmed, trim
from jackfield_truncation.writing import FAILED_EVENT, Spent, failed, request_for, sizes_of_question, summary_from

__all__ = ["FAILED_EVENT", "SUMMARIZED_EVENT", "SummarizingTruncation"]

SUMMARIZED_EVENT = "jackfield-truncation.summarized"

_FULL = 0.6  # fraction of the room to empty it to in one go, so that the next questions need no new summary

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Plan:
    """The messages that a summary has to cover.

    Attributes:
        covered: The positions of the messages to replace, in order. Empty if no summary would help.
        new: The positions among these that no summary covers yet.
        known: The current summary, or an empty one.
        room: The maximum number of tokens for the summary.
        limit: The maximum number of tokens for the whole request.
    """

    covered: tuple[int, ...]
    new: tuple[int, ...]
    known: Summary
    room: int
    limit: int


@dataclass(slots=True)
class _Written(Spent):
    """The result of asking for a summary.

    Attributes:
        summary: The new summary, or the previous one (possibly empty) after an error.
        error: The reason there is no new summary.
    """

    summary: Summary = field(default_factory=lambda: Summary((), ""))
    error: Exception | None = None


class SummarizingTruncation(Truncation):
    """Truncation that replaces omitted turns and steps with one short summary.

    The summary is reused for as long as its conversation continues, and extended when more must be dropped. Summaries
    of up to 256 conversations are held in memory. If writing a summary fails, a `jackfield-truncation.summary_failed`
    event reports this, and the request is shortened as in `Truncation`, using the previous summary if there is one.

    Args:
        cfg, settings: The keys of `SummarizingConfig`. `llm` may also be a model object, which is never closed here.
        count: The same as for `Truncation`.
        host: The host used to look up models and tokenizers. If None, the installed ones are used.

    Raises:
        ConfigError: A setting is invalid.
        PluginError: `tokenizer`, or the backend of `llm`, is not installed or cannot be loaded.
    """

    name: ClassVar[str] = "summarizing_truncation"
    config_class = SummarizingConfig
    config: SummarizingConfig
    before: ClassVar[tuple[str, ...]] = ("truncation",)

    def __init__(
        self,
        cfg: SummarizingConfig | Mapping[str, object] | None = None,
        *,
        count: TokenCounter | None = None,
        host: Plugins | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(cfg, count=count, host=host, **settings)
        llm = self.config.llm
        self._llm = None if llm is None else get_chat_model(llm, host=host)
        self._llm_is_ours = not isinstance(llm, BaseChatModel)
        self._summaries = Summaries()

    async def aclose(self) -> None:
        """Close the model that writes summaries, unless it was passed in."""
        if self._llm and self._llm_is_ours:
            await self._llm.aclose()

    async def _counted(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        decided = await self._in_place(request, lambda: self._decide(request))
        spent = Usage()
        if decided.trimmed.dropped:
            plan = await self._in_place(request, lambda: self._plan(request, decided))
            if plan.covered:
                written = await self._write(request, plan, decided.counting.counter(), call_next)
                spent = written.usage
                if written.error:
                    yield failed(written.error, request.lang)
                if (summary := written.summary).text:
                    plain = decided
                    decided = await self._in_place(request, lambda: _with_summary(request, plain, plan, summary))
                    if decided is not plain:
                        yield _summarized(summary, plan)
        async with closing(answer_with(decided, call_next, spent=spent)) as events:
            async for event in events:
                yield event

    async def _in_place(self, request: ChatRequest, work: Callable[[], T]) -> T:
        """Count right here, or in a thread if counting may take long."""
        return work() if self._countings.at_hand(request) else await sync.in_worker(work)

    def _plan(self, request: ChatRequest, decided: Decided) -> _Plan:
        """Decide which messages a summary must cover so that the rest fits next to it."""
        limit = tokens_allowed(request, self.config, exact=decided.counting.exact)
        assert limit is not None  # noqa: S101 - something had to be dropped
        room = min(self.config.summary_tokens, limit // 4)
        known = self._summaries.find(request.messages) or Summary((), "")
        new = _to_go(request, known.covered, limit - room, limit, decided.counting.counter())
        return _Plan(tuple(sorted((*known.covered, *new))), new, known, room, limit)

    async def _write(self, request: ChatRequest, plan: _Plan, counter: RequestCounter, call_next: CallNext) -> _Written:
        """Return the summary for a plan, asking for a new one if messages are not covered yet."""
        written = _Written(summary=plan.known)
        if not plan.new:
            return written
        try:
            asked = await self._in_place(request, lambda: self._question(request, plan, counter))
            written.summary = Summary(plan.covered, await summary_from(self._llm, asked, call_next, written))
        except Exception as error:  # noqa: BLE001 - the question can be answered without a summary
            written.error = error
        else:
            self._summaries.keep(request.messages, written.summary)
        return written

    def _question(self, request: ChatRequest, plan: _Plan, counter: RequestCounter) -> ChatRequest:
        """Return the request for a summary. Including its answer, it is no longer than the original request may be."""
        limit, answer_tokens = sizes_of_question(self._llm, plan.limit, plan.room)
        messages = question(
            [message for position in plan.new if not is_only_reasoning(message := request.messages[position])],
            plan.known.text,
            size=plan.room,
            most=limit - answer_tokens,
            counter=counter,
            lang=request.lang,
        )
        return request_for(request, messages, answer_tokens)


def _to_go(
    request: ChatRequest, covered: Sequence[int], most: int, whole_limit: int, counter: RequestCounter
) -> tuple[int, ...]:
    """Return the positions of messages to omit beyond those already covered, or none if the rest fits.

    If any must be omitted, more are omitted than strictly necessary.
    """
    left, rest = _without(request, covered)
    dropped: tuple[int, ...] = ()
    for limit in (most, int(most * _FULL)):
        try:
            gone = trim(rest, limit, counter, whole_limit=whole_limit).dropped
        except ContextLengthError:  # the whole request can be made to fit; this only tried to leave it more room
            break
        if all(is_only_reasoning(rest.messages[position]) for position in gone):
            break
        dropped = tuple(left[position] for position in gone)
    return dropped


def _without(request: ChatRequest, covered: Iterable[int]) -> tuple[list[int], ChatRequest]:
    """Return the positions of messages that are not covered, and the request with only those messages."""
    out = set(covered)
    left = [position for position in range(len(request.messages)) if position not in out]
    return left, replace(request, messages=tuple(request.messages[position] for position in left))


def _with_summary(request: ChatRequest, decided: Decided, plan: _Plan, summary: Summary) -> Decided:
    """Replace the covered messages with a summary, or return the earlier decision if the result does not fit."""
    counter = decided.counting.counter()
    note = note_of(summary.text, plan.room, counter, request.lang)
    covered = summary.covered
    left, rest = _without(request, covered)
    try:
        trimmed = trim(rest, plan.limit - counter.message(note), counter, whole_limit=plan.limit)
    except ContextLengthError:
        return decided
    gone = set(map(left.__getitem__, trimmed.dropped))
    kept_positions = [position for position in left if position not in gone]
    # After the last step that the summary covers, so that it never separates a call from its result.
    last_covered = max(position for position in covered if not is_only_reasoning(request.messages[position]))
    before = bisect(kept_positions, last_covered)
    messages: tuple[Message, ...] = trimmed.request.messages
    return replace(
        decided,
        trimmed=Trimmed(
            replace(request, messages=(*messages[:before], note, *messages[before:])),
            tuple(sorted((*covered, *gone))),
            trimmed.shortened,
            decided.trimmed.tokens_before,
            trimmed.tokens_after + counter.message(note),
        ),
    )


def _summarized(summary: Summary, plan: _Plan) -> PluginEvent:
    """Return an event that reports how many messages a summary covers, and how many of them are new."""
    new = len(plan.new) if summary is not plan.known else 0
    return PluginEvent(SUMMARIZED_EVENT, {"messages": len(summary.covered), "new": new})
