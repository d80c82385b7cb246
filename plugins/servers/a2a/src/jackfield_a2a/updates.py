"""Fold the events of a run into the pieces of its artifact."""

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
    """Folds the events of a run that follow a recorded step.

    Args:
        response: The messages of the run before them.
    """

    def __init__(self, response: Sequence[Message] = ()) -> None:
        self._before = text_of(response)
        self._media_before = media_of(response)
        self._text, self._media = "", list[ContentItem]()
        self._exists = bool(self._before or self._media_before)
        self._has_turns = bool(response)

    def feed(self, placed: RunEvent) -> Iterator[Wire]:
        """Yield the pieces that follow from one event, as `artifact` and `append`."""
        if placed.depth:
            return
        match placed.event:
            case TextDelta(text):
                yield from self._grow(text)
            case MediaDelta(item):
                self._media.append(item)
                yield self._append(show_part(item))
            case StreamReset():
                if self._text or self._media:
                    self._text, self._media = "", []
                    yield self._replace()
            case TurnFinished(messages=messages):
                yield from self._become(messages)
                self._before = BETWEEN.join(text for text in (self._before, self._text) if text)
                self._media_before += self._media
                self._text, self._media, self._has_turns = "", [], True
            case ResponseReplaced(messages=messages) | RunFinished(messages=messages) if not self._has_turns:
                yield from self._become(messages)

    def _grow(self, text: str) -> Iterator[Wire]:
        if text:
            between = BETWEEN if self._before and not self._text else ""
            self._text += text
            yield self._append({"text": between + text})

    def _become(self, messages: Sequence[Message]) -> Iterator[Wire]:
        """Show the whole of what was shown in part."""
        whole, media = text_of(messages), media_of(messages)
        if whole.startswith(self._text) and media[: len(self._media)] == self._media:
            yield from self._grow(whole[len(self._text) :])
            for item in media[len(self._media) :]:
                self._media.append(item)
                yield self._append(show_part(item))
            return
        self._text, self._media = whole, media
        yield self._replace()

    def _append(self, part: Wire) -> Wire:
        append, self._exists = self._exists, True
        return {"artifact": artifact_object([part]), "append": append}

    def _replace(self) -> Wire:
        text = BETWEEN.join(one for one in (self._before, self._text) if one)
        media = [show_part(item) for item in (*self._media_before, *self._media)]
        self._exists = True
        return {"artifact": artifact_object([{"text": text}, *media]), "append": False}
