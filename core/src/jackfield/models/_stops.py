"""End an answer at the first stop word in its text, which comes in pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

from jackfield.events import (
    FunctionCallDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    StreamReset,
    TextDelta,
)
from jackfield.streams import closing
from jackfield.tags import Tags

STOPPED = "jackfield.stopped"
"""The name of the event that reports the stop word at which an answer was ended here, rather than by the server."""


async def until_stop(words: Sequence[str], events: AsyncIterator[ModelEvent]) -> AsyncIterator[ModelEvent]:
    """The events of an answer, up to the first of some texts in its text, whether or not the server knows of them.

    Text that was shown is never taken back: only what may be the beginning of a stop word is held back. At
    a stop word the stream inside is closed, so that the server stops, and the answer ends with `STOPPED`, which has the
    word as `stop`, and `ModelFinished("stop")`. A server that is left in the middle reports no usage.

    Reasoning and the arguments of native calls are not searched. A call that begins after the stop word is dropped;
    one that began before it is read to its end, and with it the answer, of which nothing else is shown.

    Args:
        words: At least one, none of them empty.
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
                # Half a stop word at the end is the model's own text: nobody can tell that it meant more.
                if rest := self._search.rest():
                    yield TextDelta(rest)
        yield event

    def _after_stop(self, event: ModelEvent) -> Iterator[ModelEvent]:
        # The answer is complete; only calls that began before the stop word still arrive.
        if not event.is_delta or (isinstance(event, FunctionCallDelta) and event.index in self._calls):
            yield event


class StopSearch:
    """Looks for stop words in a text, piece by piece, and compares exactly, character by character.

    The first one is that which is complete first, as for a server that looks after each character; of several that end
    in one place, the longest. How the text is cut makes no difference.

    Args:
        words: At least one, and none of them empty.

    Attributes:
        found: The stop word, once it has come; '' until then.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._tags = Tags(*_that_can_be_first(words))
        self._held = ""
        self.found = ""

    def feed(self, text: str) -> str:
        """What may be shown after this piece: up to the stop word, or to where one may have begun."""
        if not self._held and not self._tags.may_be_in(text):
            return text
        whole = self._held + text
        match = self._tags.search(whole)
        if match:
            self.found, self._held = match[0], ""
            return whole[: match.start()]
        end = self._tags.half(whole)
        self._held = whole[end:]
        return whole[:end]

    def rest(self) -> str:
        """What was held back, when the text ends without a stop word."""
        rest, self._held = self._held, ""
        return rest


def _that_can_be_first(words: Iterable[str]) -> list[str]:
    """The words without those in which another one is complete before they are.

    Of the words that are left, none contains another but at its end. So the one that begins first also ends first, or
    is the longest of those that end there: what a regular expression finds.
    """
    unique = list(dict.fromkeys(words))
    return [word for word in unique if not any(other in word[:-1] for other in unique)]
