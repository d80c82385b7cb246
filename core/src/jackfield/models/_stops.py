"""End a streamed answer at the first stop word in its text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

from jackfield.events import (
    FunctionCallDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    StreamReset,
    TextDelta,
)
from jackfield.streams import closing
from jackfield.tags import StopSearch

STOPPED = "jackfield.stopped"
"""The name of the event for an answer that Jackfield, rather than the server, ended at a stop word."""


async def until_stop(words: Sequence[str], events: AsyncIterator[ModelEvent]) -> AsyncIterator[ModelEvent]:
    """Yield the events of an answer up to the first stop word in its text, even if the server ignores stop words.

    Text that may be the start of a stop word is buffered until more characters arrive, so text is never withdrawn. At a
    stop word, the server's stream is closed to stop the generation. The answer then ends with a `STOPPED` event, whose
    `stop` is the word, and `ModelFinished("stop")`. The answer has no usage, because servers report usage at the end.

    Reasoning and the arguments of native calls are not searched for stop words. Calls that start after the stop word
    are dropped. A call that started before the stop word is read to its end, because partial arguments would be a
    different call.

    Args:
        words: The stop words. At least one stop word is required, and no stop word may be empty.
        events: The events of the answer.
    """
    answer = _Answer(words)
    async with closing(events):
        async for event in events:
            for out in answer.feed(event):
                yield out
            if answer.is_complete:
                break
        else:
            return
    yield PluginEvent(STOPPED, {"stop": answer.stop})
    yield ModelFinished("stop")


class _Answer:
    """An answer that is cut off at the first stop word."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        self._begin()

    def _begin(self) -> None:
        self._search = StopSearch(self._words)
        self._calls: set[int] = set()

    @property
    def stop(self) -> str:
        """The stop word that ended the answer, or '' until one has."""
        return self._search.found

    @property
    def is_complete(self) -> bool:
        """True after a stop word, unless an earlier call is still waiting for the rest of its arguments."""
        return bool(self._search.found) and not self._calls

    def feed(self, event: ModelEvent) -> Iterator[ModelEvent]:
        """Process `event` and yield the events to forward."""
        if isinstance(event, StreamReset):
            self._begin()
        return self._after_stop(event) if self.stop else self._before_stop(event)

    def _before_stop(self, event: ModelEvent) -> Iterator[ModelEvent]:
        match event:
            case TextDelta(text):
                if shown := self._search.feed(text):
                    yield event if shown == text else TextDelta(shown)
                return
            case FunctionCallDelta(index):
                self._calls.add(index)
            case ModelFinished():
                # Part of a stop word at the end is the model's own text.
                if rest := self._search.rest():
                    yield TextDelta(rest)
        yield event

    def _after_stop(self, event: ModelEvent) -> Iterator[ModelEvent]:
        # The answer is complete; only calls that began before the stop word still arrive.
        if not event.is_delta or (isinstance(event, FunctionCallDelta) and event.index in self._calls):
            yield event
