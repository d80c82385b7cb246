"""Separate thoughts at the beginning of an answer, `<think>…</think>`, from the rest, for chunks of any size."""

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
_MAX_SPACE = 200  # blank characters before a thought; holding back more would take quadratic time

State = Literal["before", "opening", "thought", "gap", "answer"]


class ThoughtSeparator(AsyncIterator[ModelEvent]):
    """Iterates over the events of an answer, and turns thoughts at the beginning of its text into reasoning.

    If an answer should start inside a thought but contains neither tag, it is text after all. It has been passed on as
    reasoning by then, so a `StreamReset` withdraws it, and it is repeated as text.

    Once there can be no more thoughts, events are only passed on, at the cost of one function call each. All events
    except texts are passed on unchanged. Calls, media and the end never overtake text that is held back.

    Args:
        events: The events of a backend.
        inside: True if the prompt has already opened the thought.
    """

    __slots__ = ("_events", "_has_other_parts", "_inside", "_next", "_out", "_splitter")

    def __init__(self, events: AsyncIterator[ModelEvent], *, inside: bool = False) -> None:
        self._events = events
        self._inside = inside
        self._has_other_parts = False
        self._splitter = ThoughtSplitter(inside=inside)
        self._out: list[ModelEvent] = []  # a few events; a deque would be larger than the rest of this object
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
                    yield StreamReset("the answer has no </think>, so it is text")
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
    """Splits one answer. Only text at the very beginning is a thought; a later tag is text.

    Blank lines at either end of a thought, and between it and the answer, are dropped.

    Args:
        inside: True if the prompt has already opened the thought, as some chat templates do. If the model opens it
            again, the same thought continues.

    Attributes:
        state: The part of the answer to which the next character belongs.
    """

    __slots__ = ("_blank", "_has_begun", "_held", "_pieces", "state")

    def __init__(self, *, inside: bool = False) -> None:
        self.state: State = "opening" if inside else "before"
        self._pieces: list[str] | None = [] if inside else None  # None once the model has written a tag
        self._held = ""
        self._blank: list[str] = []  # blank lines of a thought, dropped if they are its end
        self._has_begun = False  # true once a part of the thought was passed on

    def is_answer_from(self, piece: str) -> bool:
        """Return True if this is the first piece and cannot begin a thought, as in most answers."""
        return self.state == "before" and not self._held and piece[:1].strip() not in ("", BEGIN[0])

    def feed(self, piece: str) -> Iterator[TextDelta | ReasoningDelta]:
        """Add a piece of text, and yield the parts of the answer that are now certain."""
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
        """The whole answer if only the prompt opened the thought and nothing closed it; otherwise ''."""
        return "".join(self._pieces or ())

    @property
    def has_begun(self) -> bool:
        """True once a part of the thought was passed on."""
        return self._has_begun

    def finish(self) -> Iterator[TextDelta | ReasoningDelta]:
        """Yield the text that was held back. Everything after it is text of the answer."""
        (held, self._held), (state, self.state) = (self._held, ""), (self.state, "answer")
        self._pieces = None
        is_thought = state in ("opening", "thought")
        if is_thought:
            held = self._without_blank_ends(held)
        if held and state != "gap":
            yield ReasoningDelta(held) if is_thought else TextDelta(held)

    def finish_unless_begun(self) -> Iterator[TextDelta | ReasoningDelta]:
        """Unless a thought has begun, yield the text that was held back. Everything after it is text of the answer."""
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
        """Return part of a thought with the preceding blank lines, unless they open the thought."""
        words = text.rstrip("\r\n")
        if not words:
            self._blank.append(text)
            return ""
        thought = "".join([*self._blank, words])
        self._blank = [text[len(words) :]]
        return thought if self._has_begun else thought.lstrip("\r\n")


def _start_of_partial_end(text: str) -> int:
    """Return the position of an end tag that may continue in the next piece; the text's length if there is none."""
    start = text.rfind(END[0], -len(END) + 1)
    return start if start >= 0 and END.startswith(text[start:]) else len(text)
