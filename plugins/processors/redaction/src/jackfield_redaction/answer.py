"""Rewrite a streamed answer, with a separate rewriter for its text, its reasoning and each call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    TextDelta,
)

ANSWER_EVENT = "jackfield-redaction.answer"


class Rewriter(Protocol):
    """Rewrites one streamed text."""

    def feed(self, text: str) -> str:
        """Add text and return the part that is now decided."""

    def finish(self) -> str:
        """Return the remaining text."""


MakeRewriter = Callable[[], Rewriter]
Counts = Mapping[str, int]


class AnswerTransform:
    """Rewrites one answer.

    To preserve the order of events, buffered text or reasoning is released as soon as something else follows it. Calls
    may be interleaved, so their buffered arguments are released at the end.

    Args:
        make_text: Creates a rewriter for text or reasoning.
        make_arguments: Creates a rewriter for one call's arguments.
        counts: The number of replacements in this answer, by kind. The rewriters update it, and an event reports it
            before the final event.
    """

    def __init__(self, make_text: MakeRewriter, make_arguments: MakeRewriter, counts: Counts) -> None:
        self._make_text = make_text
        self._make_arguments = make_arguments
        self._counts = counts
        self._open: tuple[type[TextDelta] | type[ReasoningDelta], Rewriter] | None = None
        self._calls: dict[int, Rewriter] = {}

    def feed(self, event: ModelEvent) -> Iterator[ModelEvent]:
        """Yield the events to forward for one event."""
        match event:
            case TextDelta() | ReasoningDelta():
                yield from self._feed_text(event)
            case FunctionCallDelta():
                yield from self._close_text()
                yield from self._feed_call(event)
            case MediaDelta():
                yield from self._close_text()
                yield event
            case ModelFinished():
                yield from self._finish()
                yield event
            case _:
                yield event

    def _feed_text(self, event: TextDelta | ReasoningDelta) -> Iterator[ModelEvent]:
        if not event.text:  # some servers send an empty delta of the other kind with each one
            return
        kind = type(event)
        if self._open is None or self._open[0] is not kind:
            yield from self._close_text()
            self._open = (kind, self._make_text())
        text = self._open[1].feed(event.text)
        if text:
            yield event if text == event.text else kind(text)

    def _close_text(self) -> Iterator[ModelEvent]:
        if self._open is not None:
            kind, rewriter = self._open
            self._open = None
            rest = rewriter.finish()
            if rest:
                yield kind(rest)

    def _feed_call(self, delta: FunctionCallDelta) -> Iterator[ModelEvent]:
        rewriter = self._calls.get(delta.index)
        if rewriter is None:
            rewriter = self._calls[delta.index] = self._make_arguments()
        arguments = rewriter.feed(delta.arguments) if delta.arguments else ""
        if delta.id or delta.name or arguments:
            yield FunctionCallDelta(delta.index, id=delta.id, name=delta.name, arguments=arguments)

    def _finish(self) -> Iterator[ModelEvent]:
        yield from self._close_text()
        for index, rewriter in self._calls.items():
            rest = rewriter.finish()
            if rest:
                yield FunctionCallDelta(index, arguments=rest)
        if self._counts:
            yield PluginEvent(ANSWER_EVENT, dict(self._counts))
