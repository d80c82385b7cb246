"""Convert the tokens of an answer to events. This module is pure: the decoder is passed in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jackfield.events import ModelEvent, ModelFinished, TextDelta, UsageReported
from jackfield.messages import Usage
from jackfield.models import ThoughtSplitter
from jackfield.tags import StopSearch
from jackfield_transformers.detokenize import Decode, TokenDecoder


@dataclass(frozen=True, slots=True)
class Reading:
    """Settings for reading an answer.

    Attributes:
        end_tokens: The tokens that end an answer.
        stops: The stop sequences.
        thoughts: True to separate a leading `<think>` block from the text.
        inside_thought: True if the prompt has already opened that block.
    """

    end_tokens: frozenset[int]
    stops: Sequence[str] = ()
    thoughts: bool = False
    inside_thought: bool = False


class AnswerReader:
    """Reader for one answer, token by token.

    Attributes:
        complete: True once the answer has ended. Later tokens are ignored.
        tokens: The number of tokens, including the end token and any stop sequence.
    """

    def __init__(self, decode: Decode, reading: Reading) -> None:
        self._end_tokens = reading.end_tokens
        self._decoder = TokenDecoder(decode)
        stops = [stop for stop in reading.stops if stop]
        self._search = StopSearch(stops) if stops else None
        self._splitter = ThoughtSplitter(inside=reading.inside_thought) if reading.thoughts else None
        self.complete = False
        self.tokens = 0
        self._reasoning_tokens = 0

    def feed(self, token: int) -> list[ModelEvent]:
        """Return the events that a token completes."""
        if self.complete:
            return []
        self.tokens += 1
        if token in self._end_tokens:
            self.complete = True
            return []
        events = list(self._split(self._before_stop(self._decoder.feed(token))))
        if self._splitter is not None and self._splitter.state == "thought":
            self._reasoning_tokens = self.tokens
        return events

    def finish(self, model: str, prompt_tokens: int) -> Iterator[ModelEvent]:
        """Yield the final events. Without an end token or stop sequence, the answer counts as truncated."""
        yield from self._split(self._before_stop(self._decoder.finish()))
        if self._search is not None:
            yield from self._split(self._search.rest())
        if self._splitter is not None:
            yield from self._splitter.finish()
        yield UsageReported(
            Usage(prompt_tokens=prompt_tokens, completion_tokens=self.tokens, reasoning_tokens=self._reasoning_tokens)
        )
        yield ModelFinished("stop" if self.complete else "length", model=model)

    def _before_stop(self, piece: str) -> str:
        """Return the text that cannot be part of a stop sequence; a complete stop sequence ends the answer."""
        if self._search is None:
            return piece
        shown = "" if self._search.found else self._search.feed(piece)
        self.complete = self.complete or bool(self._search.found)
        return shown

    def _split(self, piece: str) -> Iterator[ModelEvent]:
        if self._splitter is not None:
            yield from self._splitter.feed(piece)
        elif piece:
            yield TextDelta(piece)
