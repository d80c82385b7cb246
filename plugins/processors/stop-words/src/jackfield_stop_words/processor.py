"""Stop words as a processor: the answer ends at the first of them, and so does the server's work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    StreamReset,
    TextDelta,
)
from jackfield.processors import CallNext, Phase, Processor
from jackfield.request import ChatRequest
from jackfield.streams import closing
from jackfield_stop_words.config import StopWordsConfig
from jackfield_stop_words.search import StopSearch

CUT_EVENT = "jackfield-stop-words.cut"


class StopWords(Processor):
    """Ends the answer before the first of `request.config.stop` in its text.

    Nothing that was shown is taken back: of the text, only what may be the beginning of a stop word waits for more. At
    a stop word the stream inside is closed, so that the server stops, and the answer ends with
    `PluginEvent("jackfield-stop-words.cut")`, which has the word as `stop`, and `ModelFinished("stop")`.

    Reasoning and the arguments of native calls are not looked at. A call that begins after the stop word is dropped;
    one that began before it is read to its end, and with it the answer, of which nothing else is shown.

    Args:
        send: Pass `stop` on to the server, too.

    Raises:
        ConfigError: A setting does not fit.
    """

    name: ClassVar[str] = "stop_words"
    phase: ClassVar[Phase] = "transport"
    # Inside of a cache, so that what it keeps is an answer that is whole; around all attempts.
    after: ClassVar[tuple[str, ...]] = ("cache",)
    before: ClassVar[tuple[str, ...]] = ("retry",)

    def __init__(self, *, send: bool = True) -> None:
        self.config = StopWordsConfig.parse({"send": send}, what="stop_words")

    def __repr__(self) -> str:
        return f"<StopWords send={self.config.send}>"

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Pass events on until there is a stop word."""
        words = [word for word in request.config.stop if word]
        if not self.config.send and request.config.stop:
            request = replace(request, config=request.config.model_copy(update={"stop": ()}))
        return _until_stop(words, call_next(request)) if words else call_next(request)


async def _until_stop(words: Sequence[str], events: AsyncIterator[ModelEvent]) -> AsyncIterator[ModelEvent]:
    answer = _Answer(words)
    async with closing(events):
        async for event in events:
            for out in answer.feed(event):
                yield out
            if answer.is_complete:
                break
        else:
            return
    yield PluginEvent(CUT_EVENT, {"stop": answer.stop})
    yield ModelFinished("stop")


class _Answer:
    """One answer, up to its stop word."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        self._begin()

    def _begin(self) -> None:
        self._search = StopSearch(self._words)
        self._calls: set[int] = set()

    @property
    def stop(self) -> str:
        """The stop word that came; '' if none has."""
        return self._search.found

    @property
    def is_complete(self) -> bool:
        """Whether nothing more is wanted. A call that has begun is: with half its arguments it would be another."""
        return bool(self._search.found) and not self._calls

    def feed(self, event: ModelEvent) -> Iterator[ModelEvent]:
        """What to pass on for an event."""
        match event:
            case TextDelta(text):
                shown = "" if self.stop else self._search.feed(text)
                if shown:
                    yield event if shown == text else TextDelta(shown)
            case FunctionCallDelta(index) if not self.stop or index in self._calls:
                self._calls.add(index)
                yield event
            case FunctionCallDelta() | ReasoningDelta() | MediaDelta() if self.stop:
                pass  # the answer was complete before it
            case StreamReset():
                self._begin()
                yield event
            case ModelFinished():
                # Half a stop word at the end is the model's own text: nobody can tell that it meant more.
                if rest := self._search.rest():
                    yield TextDelta(rest)
                yield event
            case _:
                yield event
