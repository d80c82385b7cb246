"""Tell the thoughts that begin an answer from the answer: `<think>…</think>`, wherever the pieces are cut."""

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
_MOST_SPACE = 200  # blank characters before a thought: to hold back more of them, piece by piece, would cost the square

Place = Literal["before", "opening", "thought", "gap", "answer"]


class WithThoughtsApart(AsyncIterator[ModelEvent]):
    """The events of an answer, the thoughts that its text begins with as reasoning.

    As soon as it is clear that there are none, or that they have ended, it only passes events on: each one then costs
    one call of a function. All but texts pass unchanged, and no call, medium or end passes a text that is held back.

    Args:
        events: What a backend gives.
        inside: Whether the prompt has already opened the thought.
    """

    __slots__ = ("_events", "_inside", "_next", "_out", "_splitter")

    def __init__(self, events: AsyncIterator[ModelEvent], *, inside: bool = False) -> None:
        self._events = events
        self._inside = inside
        self._splitter = ThoughtSplitter(inside=inside)
        self._out: list[ModelEvent] = []  # few: a deque is larger than all the rest of this
        self._next: Callable[[], Awaitable[ModelEvent]] = self._looking

    def __anext__(self) -> Awaitable[ModelEvent]:  # no coroutine of its own for each event: that would cost more
        return self._next()

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
                self._out.extend(self._splitter.finish())  # broken off: the next call hears that this was the end
                if not self._out:
                    raise
                break
            self._out.extend(self._read(event))
        if len(self._out) == 1 and self._splitter.place == "answer":
            self._next = self._events.__anext__
        return self._out.pop(0)

    def _read(self, event: ModelEvent) -> Iterator[ModelEvent]:
        match event:
            case TextDelta(text) if text:
                yield from self._splitter.feed(text)
                return
            case ReasoningDelta():  # the server takes thoughts apart itself
                yield from self._splitter.give_way()
            case FunctionCallDelta() | MediaDelta() if self._splitter.place == "before":
                yield from self._splitter.finish()
            case ModelFinished():
                yield from self._splitter.finish()
            case StreamReset():
                self._splitter = ThoughtSplitter(inside=self._inside)
            case _:
                pass
        yield event


class ThoughtSplitter:
    """Splits one answer. Only text at the very beginning is a thought: a tag further on is text.

    Blank lines at either end of a thought, and those between it and the answer, belong to neither.

    Args:
        inside: Whether the prompt has already opened the thought, as some chat templates do. A model that opens it all
            the same opens the same thought.

    Attributes:
        place: What the next character belongs to.
    """

    __slots__ = ("_began", "_blank", "_held", "place")

    def __init__(self, *, inside: bool = False) -> None:
        self.place: Place = "opening" if inside else "before"
        self._held = ""
        self._blank: list[str] = []  # blank lines of a thought, which are its end if no more of it follows
        self._began = False  # whether something of the thought was given

    def feed(self, piece: str) -> Iterator[TextDelta | ReasoningDelta]:
        """The parts of the answer that a piece makes certain."""
        self._held += piece
        if self.place == "before":
            self._look_for_thought()
        elif self.place == "opening":
            self._look_for_opening()
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
        """What was held back for more; nothing that comes is a thought."""
        (held, self._held), (place, self.place) = (self._held, ""), (self.place, "answer")
        is_thought = place in ("opening", "thought")
        if is_thought:
            held = self._more_of_thought(held)
        if held and place != "gap":
            yield ReasoningDelta(held) if is_thought else TextDelta(held)

    def give_way(self) -> Iterator[TextDelta | ReasoningDelta]:
        """What was held back, if none of a thought has come: nothing that comes is one, then."""
        if self.place == "before" or not (self._began or self._held):
            yield from self.finish()

    def _look_for_thought(self) -> None:
        text = self._held.lstrip()
        if len(self._held) - len(text) > _MOST_SPACE:
            self.place = "answer"
        elif text.startswith(BEGIN):
            self.place, self._held = "thought", text[len(BEGIN) :]
        elif not BEGIN.startswith(text):
            self.place = "answer"

    def _look_for_opening(self) -> None:
        text = self._held.lstrip()
        if text == BEGIN or not BEGIN.startswith(text) or len(self._held) - len(text) > _MOST_SPACE:
            self.place, self._held = "thought", text.removeprefix(BEGIN) if text.startswith(BEGIN) else self._held

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
