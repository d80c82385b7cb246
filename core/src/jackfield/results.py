"""The results of runs, and streams of their events."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeAlias

from typing_extensions import TypeVar

from jackfield import sync
from jackfield._runstate import RunState
from jackfield.errors import ConfigError, InvalidAnswerError, InvalidMessageError
from jackfield.events import (
    AgentEvent,
    HistoryTrimmed,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    RunEvent,
    RunFinished,
    RunStarted,
    StopReason,
    ToolFinished,
    TurnFinished,
)
from jackfield.messages import (
    ASSISTANT,
    FinishReason,
    FunctionCall,
    Message,
    MessageLike,
    ModelResponse,
    Usage,
    as_messages,
    basename_of,
    name_in_file,
    without_system_text,
)
from jackfield.plurals import format_count
from jackfield.streams import closing

if TYPE_CHECKING:
    from jackfield.citations import Citation

T = TypeVar("T", default=str)
Output = type[T] | Mapping[str, object] | None
"""An output type: a type that pydantic can validate, or a JSON Schema. None means text."""

Way = Literal["native", "tool", "prompt"]
"""A strategy for making a model follow a schema: the server enforces it, a tool takes it, or the prompt contains it."""

WAY_EVENT = "jackfield.answer_way"
"""The name of the `PluginEvent` at the start of a run that ends with structured data. Its data contains the `way`."""

SOURCES = "sources"
"""Key under which tools (in `ToolResult.metadata`) and `PluginEvent`s (in `data`) list their sources."""


WARNINGS = "warnings"
"""The key under which a tool (in `ToolResult.metadata`) and a `PluginEvent` (in `data`) list what was not used."""


@dataclass(frozen=True, slots=True)
class Source:
    """A source of content that the model was shown.

    Attributes:
        location: A path, URL or name, as given by the plugin that supplied the content.
        page: The page number, counted from 1, or None if the source has no pages or several pages were shown.
        part: The file inside the source that `page` refers to, such as 'a.pdf' or 'scans.zip › a.pdf', or ''.
    """

    location: str
    page: int | None = None
    part: str = ""

    def __str__(self) -> str:
        name = name_in_file(basename_of(self.location), self.part)
        return name if self.page is None else f"{name}, page {self.page}"


def sources_in(data: Mapping[str, object]) -> list[Source]:
    """Return the sources that a plugin lists under `sources`: strings, or dicts with `location`, `page` and `part`.

    Other values are ignored, because plugins of any version may write this list.
    """
    sources: list[Source] = []
    listed = data.get(SOURCES)
    for entry in listed if isinstance(listed, list | tuple) else ():
        match entry:
            case str():
                sources.append(Source(entry))
            case {"location": str(location)}:
                page, part = entry.get("page"), entry.get("part")
                page = page if isinstance(page, int) else None
                sources.append(Source(location, page, part if isinstance(part, str) else ""))
    return sources


def warnings_in(data: Mapping[str, object]) -> list[str]:
    """Return the warnings that a plugin lists under `warnings`. Anything but a list of strings is ignored."""
    listed = data.get(WARNINGS)
    return [entry for entry in listed if isinstance(entry, str)] if isinstance(listed, list | tuple) else []


@dataclass(frozen=True, slots=True)
class Structured(Generic[T]):
    """A structured answer.

    Attributes:
        value: The answer, as an instance of the requested type or, for a JSON Schema, as plain JSON data.
        response: The model's last response, with the total usage of all attempts.
        attempts: The number of requests sent to the model.
    """

    value: T
    response: ModelResponse
    attempts: int


class _Missing:
    """The type of `RunResult.data` when a run has no data."""


_MISSING = _Missing()
_NOT_YET = "no result yet: read all events first"


History: TypeAlias = "Sequence[MessageLike] | RunResult[Any]"
"""The conversation so far: a list of messages, or the result of the run that ended it."""


def messages_so_far(history: History) -> tuple[Message, ...]:
    """Return the messages of a history.

    Raises:
        ConfigError: `history` contains neither messages nor a result.
        InvalidMessageError: A message is not valid.
    """
    if isinstance(history, RunResult):
        return history.history
    value: Any = history
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        got = type(value).__name__
        raise ConfigError(f"history must be a list of messages or the result of an earlier run, got {got}")
    try:
        return as_messages(history)
    except InvalidMessageError as error:
        raise InvalidMessageError(f"history: {error}") from None


@dataclass(frozen=True, kw_only=True, repr=False)
class RunResult(Generic[T]):
    """The result of asking a model or an agent. `print` shows the text, and notebooks display the full result.

    Attributes:
        messages: The new messages: the model's answers and calls, and the results of the calls.
        history: The entire conversation: the question and `messages`. To continue it, use
            `ask(…, history=result.history)`.
        usage: The tokens used by the run and its subagents, and their cost if the price is known.
        stop_reason: The reason why the run ended, as in `RunFinished`: `finished`, `turn_limit`, `approval_needed`, …
        finish_reason: The reason why the model's last answer ended. `length` means that the answer was cut off.
        sources: The documents and pages that the model was shown, in order and without duplicates.
        citations: The passages that the answer cites, in the order in which their marks (`[1]`, `[2]`) appear in the
            text. Citations are verified against the passages that the model was shown.
        warnings: One line for each attached file that was not read, with the reason. More lines follow if the model did
            not receive the entire conversation, including file contents, or if marks in the answer are wrong.
        waiting: The calls that need approval, keyed by call id. To approve a call, use
            `ask([], history=result.history, resume={id: True})`.
        run_id: The run's id, as in its events, or '' if a model was asked without an agent.
        seconds: The run's duration in seconds.
        path: The names of the agents that held the conversation, in order. More than one name means that there were
            hand-offs.
        usage_by_agent: The usage of each agent in the tree, keyed by name, with the cost if known.
        way: The strategy that made the model follow `output`: `native`, `tool` or `prompt`, or None if no `output` was
            requested.
    """

    messages: tuple[Message, ...]
    history: tuple[Message, ...]
    usage: Usage
    stop_reason: StopReason
    finish_reason: FinishReason | None = None
    sources: tuple[Source, ...] = ()
    citations: tuple[Citation, ...] = ()
    warnings: tuple[str, ...] = ()
    waiting: Mapping[str, FunctionCall] = field(default_factory=dict)
    run_id: str = ""
    seconds: float = 0.0
    path: tuple[str, ...] = ()
    usage_by_agent: Mapping[str, Usage] = field(default_factory=dict)
    way: Way | None = None
    data: T | _Missing = _MISSING

    @property
    def text(self) -> str:
        """The text of the final answer, after all calls and without reasoning."""
        return text_of_answer(self.messages)

    @property
    def output(self) -> T:
        """The requested data, or the text if no `output` was requested.

        Raises:
            InvalidAnswerError: The run ended before its answer was complete.
        """
        if isinstance(self.data, _Missing):
            raise InvalidAnswerError(
                f"no output: the run ended with {self.stop_reason!r} before the answer was complete",
                partial_text=self.text,
            )
        return self.data

    @property
    def cost(self) -> Decimal | None:
        """The cost in `usage.currency`, or None (never 0) if the price of any answer is unknown."""
        return self.usage.cost

    def to_dict(self) -> dict[str, Any]:
        """Return everything except `output` as JSON-compatible values. Unknown values are omitted."""
        values = {name: value for name in _IN_DICT if (value := getattr(self, name)) is not None}
        values["sources"] = [
            {
                "location": source.location,
                **({"part": source.part} if source.part else {}),
                **({"page": source.page} if source.page else {}),
            }
            for source in self.sources
        ]
        values["citations"] = [citation.to_dict() for citation in self.citations]
        values["seconds"] = round(self.seconds, 3)
        from pydantic import TypeAdapter  # few programs write results as JSON

        plain: dict[str, Any] = TypeAdapter(Any).dump_python(values, mode="json", exclude_none=True)
        return plain

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return (
            f"RunResult(text={self.text!r}, stop_reason={self.stop_reason!r}, messages={len(self.messages)}, "
            f"tokens={self.usage.total_tokens}, cost={self._shown_cost()})"
        )

    def _shown_cost(self) -> str:
        return "unknown" if self.cost is None else f"{self.cost} {self.usage.currency or ''}".rstrip()

    def _repr_markdown_(self) -> str:
        from jackfield.display import markdown_of

        return markdown_of(
            self.messages,
            sources=[str(source) for source in self.sources],
            citations=[str(citation) for citation in self.citations],
            warnings=self.warnings,
            waiting=[call.name for call in self.waiting.values()],
            stop_reason=self.stop_reason,
        )

    def _ipython_display_(self) -> None:
        from jackfield.display import show

        show(self._repr_markdown_(), self.text, self.messages)


_IN_DICT = (
    "text",
    "stop_reason",
    "finish_reason",
    "usage",
    "sources",
    "citations",
    "warnings",
    "waiting",
    "messages",
    "run_id",
    "seconds",
    "path",
    "usage_by_agent",
)


def text_of_answer(messages: Sequence[Message]) -> str:
    """Return the text that the last speaker wrote after the last call and result."""
    texts: list[str] = []
    for message in reversed(messages):
        if message.role != ASSISTANT or message.function_call or message.name != messages[-1].name:
            break
        texts.append(message.get_text_content())
    return "".join(reversed(texts))


class ResultFold:
    """Builds a run's result from its events.

    Args:
        asked: The conversation as the caller passed it. If None, the run's initial messages are used.
        system_text: The agent's system text, which is removed from the initial messages.

    Attributes:
        run_id: The run's id, or '' until the first `RunEvent`.
    """

    def __init__(self, asked: Sequence[Message] | None, *, system_text: str = "") -> None:
        self._asked = None if asked is None else tuple(asked)
        self._system_text = system_text
        self._began = time.monotonic()
        self._sources: dict[Source, None] = {}
        self._citations: list[Citation] = []
        self._warnings: dict[str, None] = {}
        self._trimmed: HistoryTrimmed | None = None
        self._finish_reason: FinishReason | None = None
        self._way: Way | None = None
        self._state = RunState()
        self.run_id = ""
        self._turns: list[tuple[str, Usage]] = []

    def feed(self, event: ModelEvent | AgentEvent | RunEvent) -> None:
        """Add one event. `RunEvent`s of subagents are accepted as well."""
        if not isinstance(event, RunEvent):
            self._feed(event)
        elif not (event.event.is_delta and self.run_id):  # most events are deltas
            self._feed_placed(event, event.event)

    def _feed_placed(self, placed: RunEvent, event: ModelEvent | AgentEvent) -> None:
        if not self.run_id:
            self.run_id = placed.run_id
            self._state.agents.append(placed.agent)
        if isinstance(event, TurnFinished):
            self._turns.append((placed.agent, event.usage))
        if placed.run_id == self.run_id:
            self._feed(event)
        elif isinstance(event, PluginEvent | ToolFinished):  # sources of subagents count as well
            self._add_reports(event)

    def _feed(self, event: ModelEvent | AgentEvent) -> None:
        match event:
            case ModelFinished():
                self._finish_reason = event.reason
            case PluginEvent() if event.name == WAY_EVENT:
                self._way = event.data.get("way")
            case HistoryTrimmed():
                self._trimmed = event
            case PluginEvent() | ToolFinished():
                self._add_reports(event)
            case RunStarted() if self._asked is None:
                self._asked = without_system_text(event.messages, self._system_text)
        self._state.apply(event)

    def _add_reports(self, event: PluginEvent | ToolFinished) -> None:
        report = event.data if isinstance(event, PluginEvent) else event.metadata
        self._sources.update(dict.fromkeys(sources_in(report)))
        self._warnings.update(dict.fromkeys(warnings_in(report)))
        if isinstance(event, PluginEvent):
            from jackfield.citations import CITATIONS, citations_in  # most runs cite nothing

            if CITATIONS in report:
                self._citations = citations_in(report)

    def result(self, read: Callable[[str], T]) -> RunResult[T]:
        """Return the result of the finished run.

        Args:
            read: A function that converts the answer's text to the output. To get the text itself, pass `str`.

        Raises:
            RuntimeError: The run has not ended.
        """
        end, waiting = self._state.end, self._state.waiting
        if not isinstance(end, RunFinished):
            raise RuntimeError(_NOT_YET)
        is_there = end.stop_reason == "finished" or read is str
        text = text_of_answer(end.messages)
        return RunResult(
            messages=end.messages,
            history=(*(self._asked or ()), *end.messages),
            usage=end.usage,
            stop_reason=end.stop_reason,
            finish_reason=self._finish_reason,
            sources=tuple(self._sources),
            # Citations of earlier answers, or of subagents whose text is not the answer, have other ranges.
            citations=tuple(citation for citation in self._citations if citation.is_in(text)),
            warnings=(*self._warnings, *_warn_of_trimming(self._trimmed)),
            waiting={} if waiting is None else dict(zip(waiting.call_ids, waiting.calls, strict=False)),
            run_id=self.run_id,
            seconds=time.monotonic() - self._began,
            path=tuple(self._state.agents),
            usage_by_agent=self._usage_by_agent(end.usage),
            way=self._way,
            data=read(text) if is_there else _MISSING,
        )

    def _usage_by_agent(self, whole: Usage) -> dict[str, Usage]:
        used: dict[str, Usage] = {}
        for name, usage in self._turns:
            used[name] = used.get(name, Usage()) + usage
        return used if len(used) > 1 else dict.fromkeys(used, whole)


def _warn_of_trimming(trimmed: HistoryTrimmed | None) -> list[str]:
    if trimmed is None:
        return []
    return [
        f"the conversation is too long for the model: {format_count(trimmed.dropped, 'message')} dropped, "
        f"{trimmed.shortened} shortened (about {trimmed.tokens_before} → {trimmed.tokens_after} tokens)"
    ]


class RunStream(Generic[T]):
    """The events of a run as they happen. Once the run has ended, its `result` is available.

    Subagents' events are `RunEvent`s, which include the agent and its depth. All other events are plain events.

    A stream can only be read once, with `async for`, or with plain `for` outside an event loop. To stop reading early,
    use `async with` or call `aclose`. A plain `for` loop closes the stream automatically.
    """

    def __init__(
        self,
        events: AsyncIterator[RunEvent],
        asked: Sequence[Message] | None,
        read: Callable[[str], T],
        *,
        system_text: str = "",
    ) -> None:
        self._events = events
        self._fold = ResultFold(asked, system_text=system_text)
        self._read = read
        self._result: RunResult[T] | None = None
        self._reading: AsyncGenerator[ModelEvent | AgentEvent | RunEvent] | None = None

    @property
    def result(self) -> RunResult[T]:
        """The result of the run.

        Raises:
            RuntimeError: There are unread events.
        """
        if self._result is None:
            raise RuntimeError(_NOT_YET)
        return self._result

    def __aiter__(self) -> AsyncIterator[ModelEvent | AgentEvent | RunEvent]:
        if self._reading is not None:
            raise RuntimeError("a run's events can only be read once: store the events you need, or start another run")
        self._reading = self._events_told()
        return self._reading

    def __iter__(self) -> Iterator[ModelEvent | AgentEvent | RunEvent]:
        return sync.iterate(aiter(self))

    async def aclose(self) -> None:
        """Stop the run if it is still in progress."""
        if self._reading is not None:
            await self._reading.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _events_told(self) -> AsyncGenerator[ModelEvent | AgentEvent | RunEvent]:
        fold = self._fold
        async with closing(self._events) as events:
            async for event in events:
                fold.feed(event)
                if event.run_id != fold.run_id:  # the event belongs to a subagent
                    yield event
                    continue
                inner = event.event
                if isinstance(inner, RunFinished):
                    self._result = fold.result(self._read)
                yield inner
