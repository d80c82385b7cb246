"""Assemble an answer's events into messages in linear time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from jackfield.errors import ModelResponseError, ModelServiceError
from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    StreamReset,
    TextDelta,
    UsageReported,
)
from jackfield.messages import ASSISTANT, ContentItem, FunctionCall, Message, ModelResponse, Origin, Usage
from jackfield.results import warnings_in


class _Call:
    """A call whose arguments are still arriving."""

    __slots__ = ("arguments", "id", "name")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


class Fold:
    """Accumulator for the events of an answer.

    `messages()` may be called at any time, and its results never change later. The messages contain, in this order: the
    reasoning (in a separate message without content), the text and media, and one message per call. A call appears once
    its name is known. A call without an id is identified by its number in the answer, starting at 1.

    Args:
        backend: The backend that answers, for `Message.origin` and errors.
        name: The speaker's name, for `Message.name`.
    """

    def __init__(self, backend: str = "", *, name: str | None = None) -> None:
        self._backend = backend
        self._name = name
        self._warnings: list[str] = []
        self._clear()

    def _clear(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._media: list[ContentItem] = []
        self._calls: dict[int, _Call] = {}
        self._usage: Usage | None = None
        self.finished: ModelFinished | None = None

    def feed(self, event: ModelEvent) -> None:
        """Add one event."""
        match event:
            case TextDelta():
                self._text.append(event.text)
            case ReasoningDelta():
                if event.text:
                    self._reasoning.append(event.text)
            case FunctionCallDelta():
                self._feed_call(event)
            case MediaDelta():
                self._media.append(event.item)
            case UsageReported():
                self._usage = event.usage
            case ModelFinished():
                self.finished = event
            case StreamReset():
                self._clear()
            case PluginEvent():
                self._warnings += warnings_in(event.data)
            case _:  # other events are notes for people, not part of the answer
                pass

    def _feed_call(self, delta: FunctionCallDelta) -> None:
        call = self._calls.get(delta.index)
        if call is None:
            call = self._calls[delta.index] = _Call()
        call.id = delta.id or call.id
        call.name = delta.name or call.name
        if delta.arguments:
            call.arguments.append(delta.arguments)

    @property
    def usage(self) -> Usage:
        """The usage reported by the server, or empty usage if the server reported none."""
        return Usage() if self._usage is None else self._usage

    @property
    def text(self) -> str:
        """The text so far."""
        self._text = ["".join(self._text)]
        return self._text[0]

    def messages(self) -> list[Message]:
        """Return the answer so far. A finished answer has at least one message, which may be empty."""
        parts = [*self._spoken_parts(), *self._call_parts()]
        if not parts and self.finished is not None:
            parts = [{"content": ""}]
        shared: dict[str, Any] = {"role": ASSISTANT, "name": self._name, "origin": self._origin()}
        return [Message(**shared, **part) for part in parts]

    @property
    def is_empty(self) -> bool:
        """True if the answer has ended without any content."""
        return self.finished is not None and not [*self._spoken_parts(), *self._call_parts()]

    def _spoken_parts(self) -> Iterator[dict[str, Any]]:
        if self._reasoning:
            self._reasoning = ["".join(self._reasoning)]
            yield {"content": "", "reasoning_content": self._reasoning[0]}
        text = self.text
        if self._media:
            yield {"content": [*([ContentItem(text=text)] if text else []), *self._media]}
        elif text:
            yield {"content": text}

    def _call_parts(self) -> Iterator[dict[str, Any]]:
        for number, (_, call) in enumerate(sorted(self._calls.items()), start=1):
            if call.name:
                call.arguments = ["".join(call.arguments)]
                function_call = FunctionCall(_without_surrogates(call.name), call.arguments[0])
                extra = {"function_id": call.id or str(number)}
                yield {"content": "", "function_call": function_call, "extra": extra}

    def _origin(self) -> Origin | None:
        if self.finished is None or self.finished.data is None:
            return None
        return Origin(backend=self._backend, id=self.finished.response_id, data=dict(self.finished.data))

    def reading_from(self, model: str) -> AbstractContextManager[None]:
        """Return a context manager for reading the answer.

        If a `ModelServiceError` is raised, the text so far becomes its `partial_text`. Otherwise `check_complete` runs
        on exit.
        """
        return _Reading(self, model)

    def check_complete(self, model: str) -> None:
        """Check that the entire answer has arrived.

        Args:
            model: The model that answers, for the error message.

        Raises:
            ModelResponseError: The stream ended before the answer was complete.
        """
        if self.finished is None:
            raise ModelResponseError(
                f"the response from {model} was cut off", backend=self._backend, partial_text=self.text
            )

    def response(self) -> ModelResponse:
        """Return the answer as a `ModelResponse`."""
        end = self.finished
        if end is None:
            return ModelResponse(messages=self.messages(), usage=self.usage, warnings=tuple(self._warnings))
        return ModelResponse(
            messages=self.messages(),
            usage=self.usage,
            model=end.model,
            finish_reason=end.reason,
            response_id=end.response_id,
            created=end.created,
            provider_reason=end.provider_reason,
            warnings=tuple(self._warnings),
        )


class _Reading(AbstractContextManager[None]):
    """The context manager returned by `Fold.reading_from`.

    A generator-based context manager would be several times slower.
    """

    __slots__ = ("_fold", "_model")

    def __init__(self, fold: Fold, model: str) -> None:
        self._fold, self._model = fold, model

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if error is None:
            self._fold.check_complete(self._model)
        elif isinstance(error, ModelServiceError):
            error.partial_text = error.partial_text or self._fold.text


def _without_surrogates(name: str) -> str:
    """Replace lone surrogates, which messages must not contain."""
    return name if name.isascii() else name.encode(errors="replace").decode()


def fold(events: Iterable[ModelEvent], backend: str = "") -> ModelResponse:
    """Assemble events into the complete answer."""
    answer = Fold(backend)
    for event in events:
        answer.feed(event)
    return answer.response()
