"""From the tokens of an answer to events. Pure: what decodes tokens is handed in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jackfield.events import ModelEvent, ModelFinished, TextDelta, UsageReported
from jackfield.messages import Usage
from jackfield.models.thoughts import ThoughtSplitter
from jackfield_transformers.detokenize import Decode, TokenDecoder
from jackfield_transformers.stops import StopCutter


@dataclass(frozen=True, slots=True)
class Reading:
    """How an answer is read.

    Attributes:
        end_tokens: The tokens that end an answer.
        stops: The texts that end it.
        thoughts: Whether `<think>` at its beginning is taken apart.
        inside_thought: Whether the prompt has opened that already.
    """

    end_tokens: frozenset[int]
    stops: Sequence[str] = ()
    thoughts: bool = False
    inside_thought: bool = False


class AnswerReader:
    """Reads one answer, token by token.

    Attributes:
        complete: Whether the answer has ended; tokens after that are none of it.
        tokens: How many tokens it has, that of its end and those of a stop text included.
    """

    def __init__(self, decode: Decode, reading: Reading) -> None:
        self._end_tokens = reading.end_tokens
        self._decoder = TokenDecoder(decode)
        self._cutter = StopCutter(reading.stops)
        self._splitter = ThoughtSplitter(inside=reading.inside_thought) if reading.thoughts else None
        self.complete = False
        self.tokens = 0
        self._reasoning_tokens = 0

    def feed(self, token: int) -> list[ModelEvent]:
        """The events that a token completes."""
        if self.complete:
            return []
        self.tokens += 1
        if token in self._end_tokens:
            self.complete = True
            return []
        events = list(self._split(self._cutter.feed(self._decoder.feed(token))))
        self.complete = self._cutter.stopped
        if self._splitter is not None and self._splitter.place == "thought":
            self._reasoning_tokens = self.tokens
        return events

    def finish(self, model: str, prompt_tokens: int) -> Iterator[ModelEvent]:
        """The last events; without an end or a stop text, the answer was cut at its longest."""
        yield from self._split(self._cutter.feed(self._decoder.finish()))
        yield from self._split(self._cutter.finish())
        if self._splitter is not None:
            yield from self._splitter.finish()
        yield UsageReported(
            Usage(prompt_tokens=prompt_tokens, completion_tokens=self.tokens, reasoning_tokens=self._reasoning_tokens)
        )
        yield ModelFinished("stop" if self.complete or self._cutter.stopped else "length", model=model)

    def _split(self, piece: str) -> Iterator[ModelEvent]:
        if self._splitter is not None:
            yield from self._splitter.feed(piece)
        elif piece:
            yield TextDelta(piece)
