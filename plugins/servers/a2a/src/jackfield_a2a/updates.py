"""Convert a run's events to updates of its task's artifact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jackfield.events import (
    MediaDelta,
    ResponseReplaced,
    RunEvent,
    RunFinished,
    StreamReset,
    TextDelta,
    TurnFinished,
)
from jackfield.messages import ContentItem, Message
from jackfield_a2a.messages import show_part
from jackfield_a2a.rpc import Wire
from jackfield_a2a.tasks import BETWEEN, artifact_object, media_of, text_of


class AnswerFold:
    """Converts the events that follow a recorded state of the run.

    Args:
        messages: The task's messages in that state.
        has_turns: True if the run had already produced messages.
    """

    def __init__(self, messages: Sequence[Message] = (), *, has_turns: bool = False) -> None:
        self._before = text_of(messages)
        self._media_before = media_of(messages)
        self._pieces, self._media = list[str](), list[ContentItem]()
        self._exists = bool(self._before or self._media_before)
        self._has_turns = has_turns

    def feed(self, placed: RunEvent) -> Iterator[Wire]:
        """Yield the artifact updates for one event, with the fields `artifact` and `append`."""
        if placed.depth:
            return
        match placed.event:
            case TextDelta(text):
                yield from self._grow(text)
            case MediaDelta(item):
                self._media.append(item)
                yield self._append(show_part(item))
            case StreamReset():
                if self._pieces or self._media:
                    self._pieces, self._media = [], []
                    yield self._replace()
            case TurnFinished(messages=messages):
                yield from self._become(messages)
                self._before = BETWEEN.join(text for text in (self._before, "".join(self._pieces)) if text)
                self._media_before += self._media
                self._pieces, self._media, self._has_turns = [], [], True
            case ResponseReplaced(messages=messages) | RunFinished(messages=messages) if not self._has_turns:
                yield from self._become(messages)

    def _grow(self, text: str) -> Iterator[Wire]:
        if text:
            between = BETWEEN if self._before and not self._pieces else ""
            self._pieces.append(text)
            yield self._append({"text": between + text})

    def _become(self, messages: Sequence[Message]) -> Iterator[Wire]:
        """Send whatever is still missing from a partly streamed message, or replace the artifact if they differ."""
        whole, media, shown = text_of(messages), media_of(messages), "".join(self._pieces)
        if whole.startswith(shown) and media[: len(self._media)] == self._media:
            yield from self._grow(whole[len(shown) :])
            for item in media[len(self._media) :]:
                self._media.append(item)
                yield self._append(show_part(item))
            return
        self._pieces, self._media = [whole], media
        yield self._replace()

    def _append(self, part: Wire) -> Wire:
        append, self._exists = self._exists, True
        return {"artifact": artifact_object([part]), "append": append}

    def _replace(self) -> Wire:
        text = BETWEEN.join(one for one in (self._before, "".join(self._pieces)) if one)
        media = [show_part(item) for item in (*self._media_before, *self._media)]
        self._exists = True
        return {"artifact": artifact_object([{"text": text}, *media]), "append": False}
