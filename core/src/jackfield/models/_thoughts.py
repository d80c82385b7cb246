"""Tell the thoughts that begin an answer from the answer: `<think>…</think>`, wherever the pieces are cut."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Literal

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
_MOST_SPACE = 200  # blank characters before a thought: to hold back more of them, piece by piece, would cost the square

Place = Literal["before", "thought", "gap", "answer"]


class WithThoughtsApart(AsyncGenerator[ModelEvent, None]):
    """The events of an answer, the thoughts that its text begins with as reasoning.

    As soon as it is clear that there are none, or that they have ended, it only passes events on: each one then costs
    one call of a function. Events that are not thoughts pass unchanged, in order.

    Args:
        events: What a backend gives.
        inside: Whether the prompt has already opened the thought.
    """

    __slots__ = ("_events", "_inside", "_kept", "_next", "_out", "_splitter")

    def __init__(self, events: AsyncIterator[ModelEvent], *, inside: bool = False) -> None:
        self._events = events
        self._inside = inside
        self._splitter = ThoughtSplitter(inside=inside)
        self._kept: list[ModelEvent] = []  # from the first text that may begin a thought on, while that is not decided
        self._out: list[ModelEvent] = []  # few: a deque is larger than all the rest of this
        self._next: Callable[[], Awaitable[ModelEvent]] = self._looking

    def __aiter__(self) -> WithThoughtsApart:
        return self

    def __anext__(self) -> Awaitable[ModelEvent]:  # type: ignore[override] # a coroutine for each event would cost more
        return self._next()

    async def asend(self, value: None) -> ModelEvent:  # noqa: ARG002 - nobody listens
        """The next event."""
        return await self._next()

    async def athrow(self, kind: Any, error: Any = None, trace: Any = None) -> ModelEvent:  # noqa: ARG002
        """Close the backend's own stream, and raise."""
        await self.aclose()
        raise kind if error is None else error

    async def aclose(self) -> None:
        """Close the backend's own stream."""
        close = getattr(self._events, "aclose", None)
        if close is not None:
            await close()

    async def _looking(self) -> ModelEvent:
        while not self._out:
            try:
                event = await anext(self._events)
            except StopAsyncIteration:
                self._out.extend(self._rest())  # broken off: who asks again is told that this was the end
                if not self._out:
                    raise
                break
            if isinstance(event, TextDelta) and self._begins_with(event.text):
                self._splitter.place, self._next = "answer", self._events.__anext__
                return event
            self._out.extend(self._read(event))
        if len(self._out) == 1 and self._splitter.place == "answer":
            self._next = self._events.__anext__
        return self._out.pop(0)

    def _begins_with(self, text: str) -> bool:
        """Whether the answer begins with this text, which cannot become a thought: that of most answers cannot."""
        begins = self._splitter.place == "before" and not self._kept
        return begins and bool(text) and text[0] != BEGIN[0] and not text[0].isspace()

    def _read(self, event: ModelEvent) -> Iterator[ModelEvent]:
        match event:
            case TextDelta(text):
                yield from self._text(event, text)
                return
            case ReasoningDelta() | FunctionCallDelta() | MediaDelta() if self._splitter.place == "before":
                yield from self._rest()  # the server takes thoughts apart itself, or the answer has begun without
            case ReasoningDelta():
                self._splitter.give_way()
            case ModelFinished():
                yield from self._rest()
            case StreamReset():
                self._splitter, self._kept = ThoughtSplitter(inside=self._inside), []
            case _ if self._kept:
                self._kept.append(event)
                return
            case _:
                pass
        yield event

    def _text(self, event: ModelEvent, text: str) -> Iterator[ModelEvent]:
        if self._splitter.place == "answer" or not (text or self._kept):
            yield event
            return
        if self._splitter.place != "before":
            yield from self._splitter.feed(text)
            return
        self._kept.append(event)
        found = list(self._splitter.feed(text))
        if self._splitter.place == "before":
            return
        kept, self._kept = self._kept, []
        if self._splitter.place == "answer" and not any(isinstance(one, ReasoningDelta) for one in found):
            yield from kept
        else:
            yield from (one for one in kept if not isinstance(one, TextDelta))
            yield from found

    def _rest(self) -> Iterator[ModelEvent]:
        """What was held back, when nothing follows that could decide."""
        if self._splitter.place == "before":
            kept, self._kept = self._kept, []
            self._splitter.place = "answer"
            yield from kept
        else:
            yield from self._splitter.finish()


class ThoughtSplitter:
    """Splits one answer. Only text at the very beginning is a thought: a tag further on is text.

    Blank lines at either end of a thought, and those between it and the answer, belong to neither.

    Args:
        inside: Whether the prompt has already opened the thought, as some chat templates do.

    Attributes:
        place: What the next character belongs to.
    """

    __slots__ = ("_began", "_blank", "_held", "place")

    def __init__(self, *, inside: bool = False) -> None:
        self.place: Place = "thought" if inside else "before"
        self._held = ""
        self._blank: list[str] = []  # blank lines of a thought, which are its end if no more of it follows
        self._began = False  # whether something of the thought was given

    def feed(self, piece: str) -> Iterator[TextDelta | ReasoningDelta]:
        """The parts of the answer that a piece makes certain."""
        if self.place == "answer":
            if piece:
                yield TextDelta(piece)
            return
        self._held += piece
        if self.place == "before":
            self._look_for_thought()
        if self.place == "thought":
            yield from self._think()
        if self.place == "gap":
            self._held = self._held.lstrip("\r\n")
            if self._held:
                self.place = "answer"
        if self.place == "answer" and self._held:
            yield TextDelta(self._held)
            self._held = ""

    def finish(self) -> Iterator[TextDelta | ReasoningDelta]:
        """What was held back for more."""
        held, self._held = self._held, ""
        if self.place == "thought":
            if thought := self._more_of_thought(held):
                yield ReasoningDelta(thought)
        elif held and self.place != "gap":
            yield TextDelta(held)

    def give_way(self) -> None:
        """Nothing that comes is a thought, unless some of one has come."""
        if not (self._began or self._held):
            self.place = "answer"

    def _look_for_thought(self) -> None:
        text = self._held.lstrip()
        if len(self._held) - len(text) > _MOST_SPACE:
            self.place = "answer"
        elif text.startswith(BEGIN):
            self.place, self._held = "thought", text[len(BEGIN) :]
        elif not BEGIN.startswith(text):
            self.place = "answer"

    def _think(self) -> Iterator[ReasoningDelta]:
        end = self._held.find(END)
        has_ended = end >= 0
        thought = self._more_of_thought(self._held[: end if has_ended else _half_of_end(self._held)])
        self._held = self._held[end + len(END) if has_ended else _half_of_end(self._held) :]
        if has_ended:
            self.place = "gap"
        if thought or (has_ended and not self._began):
            # Of an empty thought, too, something is told: who reads on then knows that it was taken out.
            self._began = True
            yield ReasoningDelta(thought)

    def _more_of_thought(self, text: str) -> str:
        """The text with the blank lines before it, if it is not blank itself; none at the beginning of a thought."""
        words = text.rstrip("\r\n")
        if not words:
            self._blank.append(text)
            return ""
        thought = "".join([*self._blank, words])
        self._blank = [text[len(words) :]]
        return thought if self._began else thought.lstrip("\r\n")


def _half_of_end(text: str) -> int:
    """Where an end tag begins that may go on in the next piece; the end of the text if none does."""
    begun = text.rfind(END[0], -len(END) + 1)
    return begun if begun >= 0 and END.startswith(text[begun:]) else len(text)
