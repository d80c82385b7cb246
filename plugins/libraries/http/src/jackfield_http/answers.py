"""Read responses made of JSON objects, streamed or single, for any protocol."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, TypeAlias

import msgspec

from jackfield.errors import ModelServiceError
from jackfield.events import ModelEvent
from jackfield.jsontext import dumps
from jackfield_http.failures import Failures
from jackfield_http.halves import Halves
from jackfield_http.jsonbytes import json_piece
from jackfield_http.sse import DataLineDecoder, SSEDecoder

Wire: TypeAlias = dict[str, Any]
"""A JSON object as received from a server."""

_decode = msgspec.json.Decoder().decode
_NUMBERS = (int, float)  # otherwise a union would be created for each check


class AnswerReader(ABC):
    """Reads one response, as a stream of events (`feed`) or a single object (`whole`). Both end with `finish`.

    Subclasses define `read_event`, `last_events` and `complete`, and may extend `read_whole` and `held_events`.

    Args:
        failures: Builds the request's errors.
        patience_s: The number of seconds for which the server may send only comments. None means the default.

    Attributes:
        done: True once nothing more can follow. The rest is not read.
        enough: True once the rest is not worth waiting for. Data that has already arrived is still read.
        advice: Advice for users whose server sends something else.
        texts: The keys of texts that continue in the next object, and may be split in the middle of a character.
        decoder: The class that decodes a stream's events.
        events: The decoder for this response.
        end_mark: The data that ends a stream, if it is not an object. None if there is no such marker.
    """

    advice: ClassVar[str] = "check base_url"
    texts: ClassVar[frozenset[str]] = frozenset()
    decoder: ClassVar[type[SSEDecoder | DataLineDecoder]] = SSEDecoder
    end_mark: ClassVar[bytes | None] = None

    def __init__(self, failures: Failures, *, patience_s: float | None = None) -> None:
        self.failures = failures
        self.done = False
        self.enough = False
        self.events = self.decoder(patience_s=patience_s)
        self._halves: Halves | None = None  # from the first lone surrogate on
        self._began = False

    def feed(self, piece: bytes) -> Iterator[ModelEvent]:
        """Return the events that a chunk of the stream completes.

        Raises:
            ModelServiceError: The chunk contains an error, or data that does not belong to an answer. Any earlier
                events are yielded first.
        """
        objects = self.events.feed(piece)
        if len(objects) == 1 and objects[0] != self.end_mark and not self.done:  # nearly always; saves a generator
            return iter(self._parse(objects[0], self.read_event))
        return self._parse_all(objects)

    def whole(self, body: bytes) -> list[ModelEvent]:
        """Return the events of a response that is a single object, which some servers send instead of a stream.

        Raises:
            ModelServiceError: See `feed`.
        """
        return self._parse(body, self.read_whole)

    def finish(self) -> Iterator[ModelEvent]:
        """Yield the last events.

        Raises:
            ModelServiceError: The stream ended before the answer was complete.
        """
        if not self.done:
            yield from self._parse_all(self.events.end())
        yield from self.held_events()
        if not self.complete:
            text = "the stream ended before the response was complete; try again"
            raise self.failures.wrong(text if self._began else f"the server sent no response: {self.advice}")
        yield from self.last_events()

    @property
    def has_halves(self) -> bool:
        """True once an object with a lone surrogate has arrived, such as a text split in the middle of a character."""
        return self._halves is not None

    # --- what a protocol writes ---

    @property
    @abstractmethod
    def complete(self) -> bool:
        """True once the end of the answer has arrived."""

    @abstractmethod
    def read_event(self, wire: Wire) -> list[ModelEvent]:
        """Return an object's events. For missing or malformed parts, Python's built-in errors may be raised."""

    @abstractmethod
    def last_events(self) -> Iterable[ModelEvent]:
        """Return the events that come last and only once: the usage and `ModelFinished`."""

    def read_whole(self, wire: Wire) -> list[ModelEvent]:
        """Return the events of a response that is a single object."""
        return self.read_event(wire)

    def held_events(self) -> list[ModelEvent]:
        """Return the events that were buffered until the end."""
        return [] if self._halves is None else self._halves.rest()

    # --- one object ---

    def _parse_all(self, events: Iterable[bytes]) -> Iterator[ModelEvent]:
        end_mark, read = self.end_mark, self.read_event
        for data in events:
            if data == end_mark:
                self.done = True
            if self.done:
                return
            yield from self._parse(data, read)

    def _parse(self, data: bytes, read: Callable[[Wire], list[ModelEvent]]) -> list[ModelEvent]:
        try:
            wire = _decode(data)
        except (ValueError, RecursionError):  # msgspec's own errors are ValueErrors
            wire = self._odd_json(data)
        if not isinstance(wire, dict):
            raise self._unreadable(data)
        self._began = True
        try:
            events = read(wire)
            return events if self._halves is None else self._halves.mend(events)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise self._unreadable(data) from error

    def _odd_json(self, data: bytes) -> Any:
        try:
            wire = json_piece(data, self.texts)
        except ValueError as error:
            raise self._unreadable(data) from error
        self._halves = self._halves or Halves()
        return wire

    def _unreadable(self, data: bytes) -> ModelServiceError:
        return self.failures.unreadable(data, advice=self.advice)


def arguments_of(value: object) -> str:
    """Return a call's arguments as text. Some servers send them as an object, or omit them."""
    if value is None:
        return ""
    return value if isinstance(value, str) else dumps(value)


def count_of(value: object) -> int:
    """Return a count received from a server, or 0 if the value is not a valid count."""
    if not isinstance(value, _NUMBERS) or isinstance(value, bool):  # a bool is a number in Python, not in JSON
        return 0
    return int(value) if 0 < value < 2**63 else 0
