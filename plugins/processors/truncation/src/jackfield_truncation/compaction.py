"""Compaction: a toolset that replaces older history with a summary and lets the model read the originals again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeVar

from jackfield import sync
from jackfield.errors import ContextLengthError
from jackfield.events import ModelEvent, PluginEvent
from jackfield.messages import Message
from jackfield.models import BaseChatModel, get_chat_model
from jackfield.processors import CallNext, Phase, Processor
from jackfield.request import ChatRequest, FunctionSchema
from jackfield.streams import closing
from jackfield.tools import ToolContext, ToolEntry, Toolset
from jackfield_counting.requests import RequestCounter
from jackfield_truncation.config import CompactionConfig
from jackfield_truncation.earlier import NAME, ReadEarlier
from jackfield_truncation.limit import tokens_allowed
from jackfield_truncation.processor import Decided, answer_with
from jackfield_truncation.shortening import keep_both_ends
from jackfield_truncation.summary import Summaries, Summary, digest_of, note_of, question
from jackfield_truncation.tokenizing import Counting, Countings
from jackfield_truncation.trimming import SMALLEST_TEXT, Trimmed, trim
from jackfield_truncation.view import Sizes, View, next_view, numbered_from
from jackfield_truncation.writing import Spent, failed, request_for, sizes_of_question, summary_from

COMPACTED_EVENT = "jackfield-truncation.compacted"
UNKNOWN_EVENT = "jackfield-truncation.context_unknown"

_WORTH, _SOON = 8, 32  # divisors of the compaction threshold; no model is asked to save less while the request fits
_LEAST = 256  # tokens for the words around a summary
_ATTEMPTS = 6  # each with half the rejected length
_REFUSED = 0.75  # share of the rejected length, because the answer needs room as well
_FULL = 0.8  # share of a summary request, because the text around each message counts as well
_UNKNOWN = {
    "en": "the context size of {model} is unknown, so nothing is compacted until a request is "
    "rejected; set context_tokens",
    "zh": "{model} 的上下文长度未知：在请求被拒绝之前不会压缩对话，请设置 context_tokens",
}
_NOTED = {
    "en": "messages 1 to {through} were replaced by a summary ({before} → {after} tokens)",
    "zh": "第 1 至 {through} 条消息已由摘要代替（{before} → {after} 个 token）",
}
_READ = {
    "en": "Messages 1 to {through} are not shown, but for some. The tool {tool} gives any of them by its number.",
    "zh": "第 1 至 {through} 条消息除个别外不再显示，可用 {tool} 工具按编号读取。",
}

T = TypeVar("T")


class Compaction(Toolset):
    """Keeps a run's visible conversation below a share of the model's context, however long the run is.

    Above that share, a model summarises the older messages, and the summary replaces them in the model's view. When
    more must be dropped, the summary is extended. The history itself stays complete, in the result and in the run's
    record. The model can read any summarised message with the `read_earlier` tool, which is offered once there is a
    summary. A resumed run continues with its summary.

    The system message, the last turns, the last step, the user's files, and messages with `extra={"pinned": True}` are
    never summarised. If writing a summary fails, an event reports this, and texts that are too long are shortened as in
    `Truncation`.

    Args:
        cfg, settings: The keys of `CompactionConfig`. `llm` may also be a model object.

    Raises:
        ConfigError: A setting is invalid.
        PluginError: `tokenizer`, or the backend of `llm`, is not installed or cannot be loaded.
    """

    name = "compaction"
    config_class = CompactionConfig
    config: CompactionConfig

    def __init__(self, cfg: CompactionConfig | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        self._made: _Shared | None = None

    @property
    def shared(self) -> _Shared:
        """State shared by all runs of the agent."""
        if self._made is None:  # not in __init__, because the host is set later
            config = self.config
            llm = None if config.llm is None else get_chat_model(config.llm, host=self.host)
            countings = Countings(
                tokenizer=config.tokenizer, count=None, media_tokens=config.media_tokens, host=self.host
            )
            self._made = _Shared(config, llm, countings, Summaries())
        return self._made

    def fixed_tools(self) -> Sequence[ToolEntry]:
        """Return the tool that reads summarised messages, and the toolset that compacts each run."""
        # All runs share the tool, because checking its schema in each run would take longer than everything else.
        return [ReadEarlier(), _OfEachRun(self)]

    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:  # noqa: ARG002
        """Return the same entries as `fixed_tools`."""
        return self.fixed_tools()


class _OfEachRun(Toolset):
    """Toolset without tools that provides each run with its own compacting processor."""

    name = "compaction"
    effects = ()

    def __init__(self, whole: Compaction) -> None:
        super().__init__()
        self._whole = whole

    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:  # noqa: ARG002
        return ()

    def processor_of_run(self, context: ToolContext[Any], reported: Sequence[PluginEvent]) -> Compacting:  # noqa: ARG002
        return Compacting(self._whole.shared, reported)


@dataclass(slots=True)
class _Shared:
    """State shared by the runs of one agent."""

    config: CompactionConfig
    llm: BaseChatModel | None
    countings: Countings
    summaries: Summaries
    said_unknown: bool = False
    learned: int | None = None  # the request limit, if it is only known from the server's rejections

    def limit(self, request: ChatRequest, *, exact: bool) -> int | None:
        """Return the maximum length of a request, or None if it is unknown or unlimited."""
        allowed = tokens_allowed(request, self.config, exact=exact)
        return self.learned if allowed is None and request.config.max_input_tokens is None else allowed


@dataclass(frozen=True, slots=True)
class _Measure:
    """A request's length and limits, in tokens.

    Attributes:
        request: The request as the run made it.
        counting, counter: The objects that count tokens.
        limit: The maximum length of the request.
        most: The length above which the request is compacted.
        around: The size of the system message and the schemas.
    """

    request: ChatRequest
    counting: Counting
    counter: RequestCounter
    limit: int
    most: int
    around: int


@dataclass(frozen=True, slots=True)
class _Look:
    """The result of examining a request.

    Attributes:
        measure: The request's length and limits.
        found: An event that reports an existing summary when it is first used, so that each record contains it.
        decided: The request to send, or a view that must be summarised before that can be decided.
    """

    measure: _Measure
    found: PluginEvent | None
    decided: Decided | View


@dataclass(frozen=True, slots=True)
class _Frame:
    """The part that all requests of a run have in common.

    Attributes:
        given: The tools of the request.
        system: The system message.
        functions: The tools without `read_earlier`, for requests with no summary.
        bound: An upper bound for the tokens of the system message and the tools.
    """

    given: tuple[FunctionSchema, ...] = ()
    system: tuple[Message, ...] = ()
    functions: tuple[FunctionSchema, ...] = ()
    bound: int = 0

    @classmethod
    def of(cls, request: ChatRequest, counter: RequestCounter) -> _Frame:
        system = request.messages[: numbered_from(request.messages)]
        bound = sum(map(counter.at_most, system)) + counter.functions_at_most(request.functions)
        return cls(request.functions, system, _without_tool(request).functions, bound)

    def is_of(self, request: ChatRequest) -> bool:
        # Schemas are the same objects in each turn, so comparing them is cheap.
        return request.functions == self.given and request.messages[: numbered_from(request.messages)] == self.system


class Compacting(Processor):
    """Compacts the model's view of one run. Each run has its own instance."""

    name: ClassVar[str] = "compaction"
    phase: ClassVar[Phase] = "input"

    def __init__(self, shared: _Shared, reported: Sequence[PluginEvent]) -> None:
        super().__init__()
        self._shared = shared
        self._reported = reported
        self._frame = _Frame()
        self._bounds = Sizes()
        self._sizes = Sizes()
        self._view = View()
        self._note: Message | None = None
        self._looked = False
        self._wait_for = 0

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Send the messages that the model should see. A request that certainly fits is not counted."""
        limit = self._shared.limit(request, exact=False)
        if limit is None:
            return self._ask_without_limit(request, call_next)
        if not self._view.through and self._surely_fits(request, int(limit * self._shared.config.share)):
            return call_next(replace(request, functions=self._frame.functions))
        return self._compact(request, call_next)

    def _surely_fits(self, request: ChatRequest, most: int) -> bool:
        counter = self._shared.countings.roughly(request)
        self._bounds.take(request.messages, counter.at_most)
        if not self._frame.is_of(request):
            self._frame = _Frame.of(request, counter)
        return (self._bounds.total + self._frame.bound) * max(1.0, counter.factor) <= most

    async def _ask_without_limit(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        may_learn = request.config.max_input_tokens is None
        if may_learn and not self._shared.said_unknown:
            self._shared.said_unknown = True
            yield PluginEvent(UNKNOWN_EVENT, {"note": _UNKNOWN[request.lang].format(model=request.model)})
        events = self._learning(request, call_next) if may_learn else call_next(_without_tool(request))
        async with closing(events):
            async for event in events:
                yield event

    async def _learning(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Send the request, and compact it further each time the server rejects it as too long."""
        events, has_answered = call_next(_without_tool(request)), False
        for left in range(_ATTEMPTS - 1, -1, -1):
            try:
                async with closing(events):
                    async for event in events:
                        has_answered = has_answered or event.is_delta
                        yield event
            except ContextLengthError:
                if has_answered or not left:
                    raise
            else:
                return
            self._shared.learned = await self._in_place(request, lambda: self._less_than(request))
            self._wait_for = 0
            events = self._compact(request, call_next)

    def _less_than(self, request: ChatRequest) -> int:
        """Return a lower limit for later requests after this one, or a compacted version of it, was too long."""
        learned = self._shared.learned
        if learned:
            return learned // 2
        return int(self._shared.countings.of(request).counter().request(request) * _REFUSED)

    async def _compact(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        spent = Spent()
        look = await self._in_place(request, lambda: self._look(request))
        if look.found:
            yield look.found
        decided = look.decided
        if isinstance(decided, View):
            measure = look.measure
            try:
                view = await self._summarise(measure, decided, call_next, spent)
            except Exception as error:  # noqa: BLE001 - the question can be answered without a summary
                await self._in_place(request, partial(self._wait, measure, _WORTH))
                yield failed(error, request.lang)
            else:
                yield await self._in_place(request, partial(self._take, view, measure))
            decided = await self._in_place(request, lambda: self._decide_request(measure))
        async with closing(answer_with(decided, call_next, spent=spent.usage)) as events:
            async for event in events:
                yield event

    def _take(self, view: View, measure: _Measure) -> PluginEvent:
        """Start using a new view, and return the event that reports it."""
        self._use(view, measure)
        return self._make_event(measure, note=_NOTED[measure.request.lang])

    def _look(self, request: ChatRequest) -> _Look:
        # In one go, because with a vocabulary each count is a round trip to a thread.
        measure = self._measure_request(request)
        found = self._make_event(measure) if not self._looked and self._finds(measure) else None
        return _Look(measure, found, self._wanted(measure) or self._decide_request(measure))

    async def _in_place(self, request: ChatRequest, work: Callable[[], T]) -> T:
        """Count right here, or in a thread if counting may take long."""
        return work() if self._shared.countings.at_hand(request) else await sync.in_worker(work)

    # --- the present view ---

    def _measure_request(self, request: ChatRequest) -> _Measure:
        shared = self._shared
        counting = shared.countings.of(request)
        counter = counting.counter()
        limit = shared.limit(request, exact=counting.exact)
        assert limit is not None  # noqa: S101 - the limit does not depend on how tokens are counted
        self._sizes.take(request.messages, counter.message)
        system = request.messages[: numbered_from(request.messages)]
        around = sum(map(counter.message, system)) + counter.functions(request.functions)
        return _Measure(request, counting, counter, limit, int(limit * shared.config.share), around)

    def _tokens(self, measure: _Measure) -> int:
        note = measure.counter.message(self._note) if self._note else 0
        return measure.around + self._sizes.seen(self._view) + note

    def _decide_request(self, measure: _Measure) -> Decided:
        """Return the request to send: the visible messages, shortened if they are still too long."""
        request, tokens = measure.request, self._tokens(measure)
        if self._note:
            request = replace(request, messages=self._view.seen(request.messages, self._note))
        trimmed = Trimmed(request, (), 0, tokens, tokens)
        if tokens > measure.limit:
            trimmed = self._shorten(request, measure)
        if not self._note and not trimmed.dropped:
            trimmed = replace(trimmed, request=_without_tool(trimmed.request))
        return Decided(trimmed, measure.counting)

    def _shorten(self, request: ChatRequest, measure: _Measure) -> Trimmed:
        """Shorten a request, leaving the summary and the messages kept next to it unchanged if possible."""
        start = numbered_from(request.messages)
        end = start + (1 + len(self._view.kept) if self._note else 0)
        messages, counter = request.messages, measure.counter
        beside = sum(map(counter.message, messages[start:end]))
        rest = replace(request, messages=(*messages[:start], *messages[end:]))
        try:
            trimmed = trim(rest, measure.limit - beside, counter, whole_limit=measure.limit)
        except ContextLengthError:
            return trim(request, measure.limit, counter)
        left = trimmed.request.messages
        whole = replace(request, messages=(*left[:start], *messages[start:end], *left[start:]))
        before, after = trimmed.tokens_before + beside, trimmed.tokens_after + beside
        return replace(trimmed, request=whole, tokens_before=before, tokens_after=after)

    def _use(self, view: View, measure: _Measure) -> None:
        more = _READ[measure.request.lang].format(through=view.through, tool=NAME)
        self._view = view
        self._note = note_of(view.text, measure.limit, measure.counter, measure.request.lang, more=more)

    def _finds(self, measure: _Measure) -> bool:
        """Restore the view of the interrupted run, or of an earlier run of the same conversation.

        Returns:
            True if there was one to restore.
        """
        self._looked = True
        conversation = _said(measure.request)
        view: View | None = None
        for event in reversed(self._reported):
            if event.name == COMPACTED_EVENT and view is None:
                view = _view_from(event.data, conversation)
        if view is None:
            view = _view_of(self._shared.summaries.find(conversation))
        if view is not None:
            self._use(view, measure)
        return view is not None

    # --- the next view ---

    def _wanted(self, measure: _Measure) -> View | None:
        """Return the view that the next summary should create, or None to keep the current one."""
        tokens, before = self._tokens(measure), self._view
        if tokens <= measure.most or tokens < self._wait_for:
            return None
        turns = self._shared.config.keep_turns
        view = next_view(measure.request.messages, self._sizes, before=before, turns=turns, most=measure.most)
        saved = self._sizes.seen(before) - self._sizes.seen(view)
        if saved * _WORTH >= measure.most or (saved > _LEAST and tokens > measure.limit):
            return view
        self._wait(measure, _SOON)  # there is too little to save; do not check again in every turn
        return None

    def _wait(self, measure: _Measure, part: int) -> None:
        self._wait_for = self._tokens(measure) + measure.most // part

    async def _summarise(self, measure: _Measure, planned_view: View, call_next: CallNext, spent: Spent) -> View:
        """Write the summary for a view, and store it.

        Raises:
            Exception: The summary could not be written. The cost of the attempt is in `spent`.
        """
        covered, already = planned_view.covered(), set(self._view.covered())
        new = [number for number in covered if number not in already]
        # A summary is shorter than the messages it replaces, however short they are.
        room = min(self._shared.config.summary_tokens, measure.most // 4, sum(map(self._sizes.of, covered)) // 2)
        text = self._view.text
        for part in self._parts(new, measure, room):
            part_request = await self._in_place(measure.request, partial(self._question, measure, part, text, room))
            answer = await summary_from(self._shared.llm, part_request, call_next, spent)
            shorten = partial(keep_both_ends, answer, room, measure.counter.text, measure.request.lang)
            text = await self._in_place(measure.request, shorten)
        self._shared.summaries.keep(_said(measure.request), Summary(tuple(number - 1 for number in covered), text))
        return replace(planned_view, text=text)

    def _parts(self, numbers: Sequence[int], measure: _Measure, room: int) -> Iterator[list[int]]:
        """Split messages into batches that each fit into one request, so that even a very long history is covered."""
        limit, answer_tokens = sizes_of_question(self._shared.llm, measure.limit, room)
        most = (limit - answer_tokens - room) * _FULL
        part: list[int] = []
        size = 0
        for number in numbers:
            own = max(self._sizes.of(number), SMALLEST_TEXT)
            if part and size + own > most:
                yield part
                part, size = [], 0
            part.append(number)
            size += own
        yield part

    def _question(self, measure: _Measure, numbers: Sequence[int], so_far: str, room: int) -> ChatRequest:
        limit, answer_tokens = sizes_of_question(self._shared.llm, measure.limit, room)
        conversation = _said(measure.request)
        messages = question(
            [conversation[number - 1] for number in numbers],
            so_far,
            size=room,
            most=limit - answer_tokens,
            counter=measure.counter,
            lang=measure.request.lang,
            numbers=numbers,
        )
        return request_for(measure.request, messages, answer_tokens)

    def _make_event(self, measure: _Measure, *, note: str = "") -> PluginEvent:
        """Return an event that reports the current view to users and records. A run can be resumed from it."""
        view = self._view
        before, after = measure.around + self._sizes.total, self._tokens(measure)
        data: dict[str, object] = {
            "through": view.through,
            "kept": sorted(view.kept),
            "summary": view.text,
            "of": digest_of(_said(measure.request)[: view.through]),
            "tokens_before": before,
            "tokens_after": after,
        }
        if note:
            data["note"] = note.format(through=view.through, before=before, after=after)
        return PluginEvent(COMPACTED_EVENT, data)


def _said(request: ChatRequest) -> Sequence[Message]:
    return request.messages[numbered_from(request.messages) :]


def _view_from(data: Mapping[str, Any], conversation: Sequence[Message]) -> View | None:
    """Return the view stored in an event, or None if it belongs to another conversation or version."""
    match data:
        case {"through": int(through), "kept": [*kept], "summary": str(text), "of": str(digest)}:
            if 0 < through <= len(conversation) and digest_of(conversation[:through]) == digest:
                return View(through, frozenset(kept), text)
    return None


def _view_of(summary: Summary | None) -> View | None:
    if summary is None:
        return None
    covered = {position + 1 for position in summary.covered}
    through = max(covered)
    return View(through, frozenset(range(1, through + 1)) - covered, summary.text)


def _without_tool(request: ChatRequest) -> ChatRequest:
    """Remove `read_earlier` from the request, because there are no summarised messages to read."""
    functions: tuple[FunctionSchema, ...] = tuple(one for one in request.functions if one.get("name") != NAME)
    return request if len(functions) == len(request.functions) else replace(request, functions=functions)
