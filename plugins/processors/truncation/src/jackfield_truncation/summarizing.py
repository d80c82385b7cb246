"""Truncation with a summary: a model summarises the omitted messages, and the summary replaces them."""

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

_FULL = 0.6  # share of the room to which it is emptied at once, so that the next questions need no new summary

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Plan:
    """The messages that a summary has to cover.

    Attributes:
        covered: The positions of the messages that it replaces, in order; empty if no summary would help.
        new: Those of them that no summary covers yet.
        known: The present summary; an empty one if there is none.
        room: The number of tokens that the summary may have in the request.
        limit: The number of tokens that the request may have.
    """

    covered: tuple[int, ...]
    new: tuple[int, ...]
    known: Summary
    room: int
    limit: int


@dataclass(slots=True)
class _Written(Spent):
    """The outcome of a request for a summary.

    Attributes:
        summary: The requested summary; after an error, the previous one, or an empty one.
        error: The reason why there is no new summary.
    """

    summary: Summary = field(default_factory=lambda: Summary((), ""))
    error: Exception | None = None


class SummarizingTruncation(Truncation):
    """Truncates like `Truncation`, but replaces the omitted turns and steps with one short summary.

    A summary is kept, and is used as long as its conversation continues; when more must be dropped, only that is added
    to it. It is kept in memory, for 256 conversations. If that fails, an event `jackfield-truncation.summary_failed`
    says so, and the request is shortened as by `Truncation`, with the previous summary, if any.

    Args:
        cfg, settings: The keys of `SummarizingConfig`; `llm` may also be a model object, which is then not closed here.
        count: As for `Truncation`.
        host: The host in which models and tokenizers are looked up; the installed ones if None.

    Raises:
        ConfigError: A setting is not valid.
        PluginError: `tokenizer`, or the backend of `llm`, is not installed, or cannot be loaded.
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
        """Close the model that writes summaries, if it was made here."""
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
        """Count here, or in a thread if that may take long."""
        return work() if self._countings.at_hand(request) else await sync.in_worker(work)

    def _plan(self, request: ChatRequest, decided: Decided) -> _Plan:
        """Return the messages that a summary has to cover so that the rest fits beside it."""
        limit = tokens_allowed(request, self.config, exact=decided.counting.exact)
        assert limit is not None  # noqa: S101 - something had to go
        room = min(self.config.summary_tokens, limit // 4)
        known = self._summaries.find(request.messages) or Summary((), "")
        new = _to_go(request, known.covered, limit - room, limit, decided.counting.counter())
        return _Plan(tuple(sorted((*known.covered, *new))), new, known, room, limit)

    async def _write(self, request: ChatRequest, plan: _Plan, counter: RequestCounter, call_next: CallNext) -> _Written:
        """Return the summary for a plan: a known one, or one that is requested and remembered."""
        written = _Written(summary=plan.known)
        if not plan.new:
            return written
        try:
            asked = await self._in_place(request, lambda: self._question(request, plan, counter))
            written.summary = Summary(plan.covered, await summary_from(self._llm, asked, call_next, written))
        except Exception as error:  # noqa: BLE001 - whatever it is, the question itself can be answered without
            written.error = error
        else:
            self._summaries.keep(request.messages, written.summary)
        return written

    def _question(self, request: ChatRequest, plan: _Plan, counter: RequestCounter) -> ChatRequest:
        """Return the request for a summary. Together with its answer, it is no longer than the original may be."""
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
    """Return the positions of messages to omit besides those in a summary; none if the rest will fit.

    If any must be omitted, more are omitted than necessary.
    """
    left, rest = _without(request, covered)
    dropped: tuple[int, ...] = ()
    for limit in (most, int(most * _FULL)):
        try:
            gone = trim(rest, limit, counter, whole_limit=whole_limit).dropped
        except ContextLengthError:  # the request as a whole can be made to fit; this was only to leave it room
            break
        if all(is_only_reasoning(rest.messages[position]) for position in gone):
            break
        dropped = tuple(left[position] for position in gone)
    return dropped


def _without(request: ChatRequest, covered: Iterable[int]) -> tuple[list[int], ChatRequest]:
    """Return the positions of messages outside of the summary, and the request with these alone."""
    out = set(covered)
    left = [position for position in range(len(request.messages)) if position not in out]
    return left, replace(request, messages=tuple(request.messages[position] for position in left))


def _with_summary(request: ChatRequest, decided: Decided, plan: _Plan, summary: Summary) -> Decided:
    """Return the request with a summary in place of its messages, or the earlier decision if that fails."""
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
    # After the last step that it covers, so that it never comes between a call and its result.
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
    """Return the event about a used summary: how many messages it covers, and how many were read now."""
    new = len(plan.new) if summary is not plan.known else 0
    return PluginEvent(SUMMARIZED_EVENT, {"messages": len(summary.covered), "new": new})
