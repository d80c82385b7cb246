"""Separate thoughts (`<think>…</think>`) at the start of an answer from the rest. Chunks can have any size."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Literal

from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    ReasoningDelta,
    StreamReset,
    TextDelta,
)

BEGIN = "<think>"
END = "</think>"
_MAX_SPACE = 200  # whitespace before a thought; buffering more would take quadratic time

State = Literal["before", "opening", "thought", "gap", "answer"]


class ThoughtSeparator(AsyncIterator[ModelEvent]):
    """Iterator over an answer's events that converts thoughts at the start of the text to reasoning.

    If the prompt opened a thought but the answer contains neither tag, the answer turns out to be text. The answer has
    already been yielded as reasoning by then, so a `StreamReset` withdraws the reasoning, and the answer is repeated as
    text.

    Once no thought can follow, forwarding an event costs one function call. Only text is ever changed.
    Calls, media and the final event never overtake buffered text.

    Args:
        events: The backend's events.
        inside: True if the prompt has already opened the thought.
    """

    __slots__ = ("_events", "_has_other_parts", "_inside", "_next", "_out", "_splitter")

    def __init__(self, events: AsyncIterator[ModelEvent], *, inside: bool = False) -> None:
        self._events = events
        self._inside = inside
        self._has_other_parts = False
        self._splitter = ThoughtSplitter(inside=inside)
        self._out: list[ModelEvent] = []  # only a few events; a deque would be larger than the rest of this object
        self._next: Callable[[], Awaitable[ModelEvent]] = self._next_while_undecided

    def __anext__(self) -> Awaitable[ModelEvent]:  # not async: a coroutine for each event would cost more
        return self._next()

    async def aclose(self) -> None:
        """Close the backend's own stream."""
        close = getattr(self._events, "aclose", None)
        if close is not None:
            await close()

    async def _next_while_undecided(self) -> ModelEvent:
        while not self._out:
            try:
                event = await anext(self._events)
            except StopAsyncIteration:
                self._out.extend(self._splitter.finish())  # the stream broke off; the next call ends this iterator
                if not self._out:
                    raise
                break
            if isinstance(event, TextDelta) and self._splitter.is_answer_from(event.text):
                self._next = self._events.__anext__
                return event
            self._out.extend(self._read(event))
        if len(self._out) == 1 and self._splitter.state == "answer":
            self._next = self._events.__anext__
        return self._out.pop(0)

    def _read(self, event: ModelEvent) -> Iterator[ModelEvent]:
        match event:
            case TextDelta(text) if text:
                yield from self._splitter.feed(text)
                return
            case ReasoningDelta():  # the server separates thoughts itself
                yield from self._splitter.finish_unless_begun()
            case FunctionCallDelta() | MediaDelta() if self._splitter.state == "before":
                yield from self._splitter.finish()
            case FunctionCallDelta() | MediaDelta():
                self._has_other_parts = True
            case ModelFinished(reason="stop") if not self._has_other_parts and self._splitter.unmarked_text.strip():
                if self._splitter.has_begun:
                    yield StreamReset("the answer has no </think>, so all of it was treated as text")
                yield TextDelta(self._splitter.unmarked_text)
                self._splitter = ThoughtSplitter()
            case ModelFinished():
                yield from self._splitter.finish()
            case StreamReset():
                self._splitter = ThoughtSplitter(inside=self._inside)
                self._has_other_parts = False
            case _:
                pass
        yield event


class ThoughtSplitter:
    """Incremental parser that splits an answer into thought and text.

    Tags after the start of the answer are plain text.

    Blank lines at either end of a thought, and between the thought and the answer, are dropped.

    Args:
        inside: True if the prompt has already opened the thought, as some chat templates do. If the model repeats the
            opening tag, the tag is ignored.

    Attributes:
        state: The part of the answer to which the next character belongs.
    """

    __slots__ = ("_blank", "_has_begun", "_held", "_pieces", "state")

    def __init__(self, *, inside: bool = False) -> None:
        self.state: State = "opening" if inside else "before"
        self._pieces: list[str] | None = [] if inside else None  # None once the model has written a tag
        self._held = ""
        self._blank: list[str] = []  # blank lines of a thought, dropped if they are its end
        self._has_begun = False  # True once part of the thought has been yielded

    def is_answer_from(self, piece: str) -> bool:
        """Return True for a first chunk that cannot be the start of a thought, which is the most common case."""
        return self.state == "before" and not self._held and piece[:1].strip() not in ("", BEGIN[0])

    def feed(self, piece: str) -> Iterator[TextDelta | ReasoningDelta]:
        """Add a chunk of text, and yield the parts of the answer that have now been identified."""
        self._held += piece
        if self._pieces is not None:
            self._pieces.append(piece)
        if self.state == "before":
            self._look_for_thought()
        elif self.state == "opening":
            self._look_for_opening()
        if self.state == "thought":
            yield from self._read_thought()
        if self.state == "gap":
            self._held = self._held.lstrip("\r\n")
            if self._held:
                self.state = "answer"
        if self.state == "answer" and self._held:
            yield TextDelta(self._held)
            self._held = ""

    @property
    def unmarked_text(self) -> str:
        """The entire answer if the prompt opened a thought and the answer has contained no tag so far, otherwise ''."""
        return "".join(self._pieces or ())

    @property
    def has_begun(self) -> bool:
        """True once part of the thought has been yielded."""
        return self._has_begun

    def finish(self) -> Iterator[TextDelta | ReasoningDelta]:
        """Yield the buffered text. Any later text belongs to the answer."""
        (held, self._held), (state, self.state) = (self._held, ""), (self.state, "answer")
        self._pieces = None
        is_thought = state in ("opening", "thought")
        if is_thought:
            held = self._without_blank_ends(held)
        if held and state != "gap":
            yield ReasoningDelta(held) if is_thought else TextDelta(held)

    def finish_unless_begun(self) -> Iterator[TextDelta | ReasoningDelta]:
        """Unless a thought has begun, yield the buffered text and treat any later text as part of the answer."""
        if self.state == "before" or not (self._has_begun or self._held):
            yield from self.finish()

    def _look_for_thought(self) -> None:
        text = self._held.lstrip()
        if len(self._held) - len(text) > _MAX_SPACE:
            self.state = "answer"
        elif text.startswith(BEGIN):
            self.state, self._held = "thought", text[len(BEGIN) :]
        elif not BEGIN.startswith(text):
            self.state = "answer"

    def _look_for_opening(self) -> None:
        text = self._held.lstrip()
        if text == BEGIN or not BEGIN.startswith(text) or len(self._held) - len(text) > _MAX_SPACE:
            if text.startswith(BEGIN):
                self._pieces = None
            self.state, self._held = "thought", text.removeprefix(BEGIN) if text.startswith(BEGIN) else self._held

    def _read_thought(self) -> Iterator[ReasoningDelta]:
        end = self._held.find(END)
        has_ended = end >= 0
        if not has_ended:
            end = _start_of_partial_end(self._held)
        thought = self._without_blank_ends(self._held[:end])
        self._held = self._held[end + len(END) :] if has_ended else self._held[end:]
        if has_ended:
            self.state, self._pieces = "gap", None
        if thought or (has_ended and not self._has_begun):
            # An empty thought is reported as well, so that readers know that it was removed.
            self._has_begun = True
            yield ReasoningDelta(thought)

    def _without_blank_ends(self, text: str) -> str:
        """Return part of a thought without trailing blank lines, which are buffered for the next part.

        Blank lines at the start of the thought are dropped.
        """
        words = text.rstrip("\r\n")
        if not words:
            self._blank.append(text)
            return ""
        thought = "".join([*self._blank, words])
        self._blank = [text[len(words) :]]
        return thought if self._has_begun else thought.lstrip("\r\n")


def _start_of_partial_end(text: str) -> int:
    """Return the index of a partial end tag at the end of the text, or the text's length if there is none."""
    start = text.rfind(END[0], -len(END) + 1)
    return start if start >= 0 and END.startswith(text[start:]) else len(text)
