"""Convert a run's events to the items of an answer, as they begin, grow and end."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from jackfield.citations import CITATIONS, Citation, citations_in
from jackfield.events import (
    ApprovalNeeded,
    FunctionCallDelta,
    MediaDelta,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    ResponseReplaced,
    RunEvent,
    RunFailed,
    RunFinished,
    StreamReset,
    TextDelta,
    ToolFinished,
    TurnFinished,
)
from jackfield.messages import FunctionCall, Message, Usage
from jackfield.results import Source, sources_in
from jackfield_serving import markdown_of

TextKind = Literal["message", "reasoning"]


@dataclass(frozen=True, slots=True)
class TextItem:
    """A text of the answer, or of the model's reasoning.

    Attributes:
        index: The item's position in the answer.
        kind: `message` or `reasoning`.
        text: The complete text, or '' while it is being streamed.
        sources: The documents and pages shown to the model; set only when the last message ends.
        citations: The passages cited by the text; set only when the last message ends.
        is_whole: False if the text was withdrawn or truncated.
    """

    index: int
    kind: TextKind
    text: str = ""
    sources: tuple[Source, ...] = ()
    citations: tuple[Citation, ...] = ()
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class CallItem:
    """A call for which the run waits.

    Attributes:
        index: The item's position in the answer.
        call_id: The call id within the run.
        call: The call.
        is_of_client: True if the client runs the call; False if the call needs the client's approval.
    """

    index: int
    call_id: str
    call: FunctionCall
    is_of_client: bool


@dataclass(frozen=True, slots=True)
class Began:
    """A text has begun."""

    item: TextItem


@dataclass(frozen=True, slots=True)
class Grew:
    """`piece` has been appended to a text."""

    item: TextItem
    piece: str


@dataclass(frozen=True, slots=True)
class Ended:
    """An item is complete. For a call, this is the only change."""

    item: TextItem | CallItem


@dataclass(frozen=True, slots=True)
class AnswerEnded:
    """The answer is complete: the run has ended or waits for the client.

    Attributes:
        end: The run's last event.
        finish_reason: Why the model stopped, or '' if unknown.
        ended: The Unix time at which the run ended; None if it is unknown or the run is waiting.
    """

    end: RunFinished | RunFailed
    finish_reason: str
    ended: float | None = None

    @property
    def usage(self) -> Usage:
        """The run's usage so far."""
        return self.end.usage if isinstance(self.end, RunFinished) else Usage()


Change: TypeAlias = Began | Grew | Ended | AnswerEnded


_REPORTS = (PluginEvent, ToolFinished)  # a union in isinstance would be rebuilt for each event


class ItemFold:
    """Converts the events of one answer.

    Args:
        client_tools: The names of the client's tools.

    Attributes:
        items: The complete items, in order.
        is_broken: True if the model was retried and the new answer differs from the text already sent.
        is_over: True once the answer is complete.
    """

    def __init__(self, client_tools: Collection[str] = ()) -> None:
        self.items: list[TextItem | CallItem] = []
        self.is_broken = False
        self.is_over = False
        self._client_tools = client_tools
        self._open: TextItem | None = None
        self._count = 0
        self._sources: dict[Source, None] = {}
        self._citations: list[Citation] = []
        self._finish_reason = ""
        self._has_turns = False
        self._pieces: list[str] = []  # the pieces of the open text
        # The texts sent in the current turn, as deltas. After a retry, the texts yet to be repeated, and how many
        # characters of the first have been repeated.
        self._shown: list[tuple[TextKind, list[str]]] = []
        self._repeating: deque[tuple[TextKind, str]] = deque()
        self._repeated = 0

    def feed(self, placed: RunEvent) -> Iterator[Change]:  # noqa: C901, PLR0912 - one case for each event
        """Yield the changes for one event; none once the answer is complete."""
        event = placed.event
        if (
            type(event) is TextDelta  # true for most events
            and self._open is not None
            and self._open.kind == "message"
            and not (placed.depth or self._repeating)
        ):
            self._pieces.append(event.text)
            yield Grew(self._open, event.text)
            return
        if isinstance(event, _REPORTS):  # the sources of nested agents count as well
            report = event.data if isinstance(event, PluginEvent) else event.metadata
            self._sources.update(dict.fromkeys(sources_in(report)))
            if CITATIONS in report and isinstance(event, PluginEvent):
                self._citations = citations_in(report)
        if placed.depth or self.is_over:
            return
        match event:
            case TextDelta(text):
                yield from self._take("message", text)
            case ReasoningDelta(text):
                yield from self._take("reasoning", text)
            case MediaDelta(item):
                yield from self._take("message", markdown_of(item))
            case FunctionCallDelta():
                yield from self._close()
            case ModelFinished():
                self._finish_reason = event.reason
            case StreamReset():
                self._repeat(self._shown_texts())
            case TurnFinished():
                yield from self._finish_turn(event.messages)
            case ResponseReplaced():
                yield from self._show_again(event.messages)
            case ApprovalNeeded():
                yield from self._close()
                yield from self._wait(event)
            case RunFinished() | RunFailed():
                if isinstance(event, RunFinished) and not self._has_turns and self._open is None:
                    yield from self._show_again(event.messages)
                yield from self._close(is_last=isinstance(event, RunFinished))
                self.is_over = True
                yield AnswerEnded(event, self._finish_reason)

    # --- texts ---

    def _shown_texts(self) -> list[tuple[TextKind, str]]:
        return [(kind, "".join(pieces)) for kind, pieces in self._shown]

    def _repeat(self, texts: Iterable[tuple[TextKind, str]]) -> None:
        self._repeating, self._repeated = deque(texts), 0

    def _take(self, kind: TextKind, text: str) -> Iterator[Change]:
        """Add text, except for the part that was already sent before a retry."""
        while text and self._repeating:
            expected, shown = self._repeating[0]
            again = text[: len(shown) - self._repeated]
            if expected != kind or not shown.startswith(again, self._repeated):
                yield from self._break_off()
                break
            self._repeated += len(again)
            if self._repeated < len(shown):
                return
            text = text[len(again) :]
            self._repeating.popleft()
            self._repeated = 0
        if text:
            yield from self._show(kind, text)

    def _show(self, kind: TextKind, text: str) -> Iterator[Change]:
        if self._open is None or self._open.kind != kind:
            yield from self._close()
            self._open = TextItem(self._count, kind)
            self._count += 1
            self._pieces = []
            self._shown.append((kind, self._pieces))
            yield Began(self._open)
        self._pieces.append(text)
        yield Grew(self._open, text)

    def _break_off(self) -> Iterator[Change]:
        self.is_broken = True
        self._shown = []
        self._repeating.clear()
        yield from self._close(is_whole=False)

    def _close(self, *, is_whole: bool = True, is_last: bool = False) -> Iterator[Change]:
        if self._open is None:
            return
        item = replace(self._open, text="".join(self._pieces), is_whole=is_whole)
        if is_last and item.kind == "message":
            citations = tuple(citation for citation in self._citations if citation.is_in(item.text))
            item = replace(item, sources=tuple(self._sources), citations=citations)
        self._open = None
        self.items.append(item)
        yield Ended(item)

    def _finish_turn(self, messages: Sequence[Message]) -> Iterator[Change]:
        """Send everything that has not been streamed, since an agent may answer in complete messages."""
        self._has_turns = True
        yield from self._show_again(messages)
        is_last = not any(message.function_call for message in messages)
        yield from self._close(is_last=is_last, is_whole=not is_last or self._finish_reason != "length")
        self._shown = []
        self._repeating.clear()

    def _show_again(self, messages: Sequence[Message]) -> Iterator[Change]:
        texts = list(_texts_of(messages))
        whole = self._shown_texts()
        if whole and not _begins_with(texts, whole):
            return  # the text was sent in different pieces
        self._repeat(whole)
        for kind, text in texts:
            yield from self._take(kind, text)

    # --- calls ---

    def _wait(self, event: ApprovalNeeded) -> Iterator[Change]:
        agents = event.agents or ("",) * len(event.calls)
        for call, call_id, agent in zip(event.calls, event.call_ids, agents, strict=False):
            item = CallItem(self._count, call_id, call, is_of_client=not agent and call.name in self._client_tools)
            self._count += 1
            self.items.append(item)
            yield Ended(item)


def _texts_of(messages: Sequence[Message]) -> Iterator[tuple[TextKind, str]]:
    for message in messages:
        if message.role != "assistant":
            continue
        if message.reasoning_content:
            yield "reasoning", Message("assistant", message.reasoning_content).get_text_content()
        if text := message.get_text_content():
            yield "message", text


def _begins_with(texts: Sequence[tuple[TextKind, str]], shown: Sequence[tuple[TextKind, str]]) -> bool:
    if len(texts) < len(shown) or list(texts[: len(shown) - 1]) != list(shown[:-1]):
        return False
    (kind, text), (shown_kind, shown_text) = texts[len(shown) - 1], shown[-1]
    return kind == shown_kind and text.startswith(shown_text)
