"""From the chunks of an answer to events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from jackfield.errors import ModelResponseError, ModelServiceError
from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    TextDelta,
    UsageReported,
)
from jackfield.jsontext import dumps
from jackfield.messages import FINISH_REASONS, ContentItem, FinishReason, Usage
from jackfield_backend.refusals import Secrets, shown
from jackfield_dashscope.errors import error_in_answer
from jackfield_http import DataLineDecoder, Halves, json_piece

# DashScope has the words that Jackfield has; it documents no others, but sends them.
REASONS: Mapping[str, FinishReason] = {reason: reason for reason in FINISH_REASONS}
SEARCH_EVENT = "jackfield-dashscope.search"
_TEXTS = frozenset({"content", "reasoning_content", "text", "arguments"})
_decode = msgspec.json.Decoder().decode


class AnswerReader:
    """Reads one answer, as a stream of events (`feed`) or as one object (`whole`); `finish` is the end of both.

    DashScope repeats the usage in every chunk; it is reported once, by `finish`. Of several choices (`n`) the first is
    read.

    Args:
        backend: Who asks, for errors.
        model: Which model was asked; answers do not say.
        key: The secrets that were sent; they are taken out of what errors show.
        request_id: The server's id of the request, for what has none.
        patience_s: For how many seconds there may be comments without an event; None for the default.

    Attributes:
        complete: Whether the end of the answer has come; what may follow is its usage.
        done: Whether that has come, too: nothing follows.
    """

    def __init__(
        self,
        backend: str,
        model: str,
        *,
        key: str | Secrets = "",
        request_id: str | None = None,
        patience_s: float | None = None,
    ) -> None:
        self._backend = backend
        self._model = model
        self._key = key
        self._request_id = request_id
        self._events = DataLineDecoder(patience_s=patience_s)
        self._halves: Halves | None = None  # once a chunk had half a character
        self._calls = _Calls()
        self._usage: Mapping[str, Any] | None = None
        self._reason = ""
        self._began = False
        self._told_of_search = False
        self.done = False

    @property
    def complete(self) -> bool:
        return bool(self._reason)

    def feed(self, piece: bytes) -> Iterator[ModelEvent]:
        """The events that a piece of the stream completes.

        Raises:
            ModelServiceError: It holds an error, or what is no part of an answer; the events before that come first.
        """
        for data in self._events.feed(piece):
            yield from self._chunk(data)

    def whole(self, body: bytes) -> list[ModelEvent]:
        """The events of an answer that is one object."""
        return self._chunk(body)

    def finish(self) -> Iterator[ModelEvent]:
        """The last events.

        Raises:
            ModelServiceError: The stream ended before the answer did.
        """
        for data in self._events.end():
            yield from self._chunk(data)
        if self._halves is not None:
            yield from self._halves.rest()
        if not self._began:
            raise self._error("the server sent no answer: check base_url, which usually ends in /api/v1")
        if not self.complete:
            raise self._error("the stream ended in the middle of the answer; try again")
        if self._usage is not None:
            yield UsageReported(usage_of(self._usage))
        reason = REASONS.get(self._reason, "other")
        yield ModelFinished(reason, self._model, self._request_id, provider_reason=self._reason)

    def _chunk(self, data: bytes) -> list[ModelEvent]:
        chunk = self._object(data)
        if chunk.get("code"):
            raise error_in_answer(
                chunk, self._backend, status=self._events.status, key=self._key, request_id=self._request_id
            )
        try:
            events = self._read(chunk)
            return events if self._halves is None else self._halves.mended(events)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise self._unreadable(data) from error

    def _object(self, data: bytes) -> dict[str, Any]:
        try:
            chunk = _decode(data)
        except (ValueError, RecursionError):  # msgspec's own errors are ValueErrors
            chunk = self._odd_object(data)
        if not isinstance(chunk, dict):
            raise self._unreadable(data)
        return chunk

    def _odd_object(self, data: bytes) -> Any:
        try:
            chunk = json_piece(data, _TEXTS)
        except ValueError as error:
            raise self._unreadable(data) from error
        self._halves = self._halves or Halves()
        return chunk

    def _read(self, chunk: dict[str, Any]) -> list[ModelEvent]:
        output = chunk["output"]
        if not self._began:
            self._began = True
            self._request_id = chunk.get("request_id") or self._request_id
            self._model = chunk.get("model") or self._model
        if usage := chunk.get("usage"):
            self._usage = usage
        events: list[ModelEvent] = []
        if (search := output.get("search_info")) and not self._told_of_search:
            self._told_of_search = True
            events.append(PluginEvent(SEARCH_EVENT, search))
        choices = output.get("choices")
        if choices:
            choice = choices[0]
            if not choice.get("index"):
                self._read_message(choice.get("message") or {}, events)
                self._note_reason(choice.get("finish_reason"))
        elif choices is None:
            # The older form, which some models keep to whatever is asked for.
            if text := output.get("text"):
                events.append(TextDelta(_text_of(text)))
            self._note_reason(output.get("finish_reason"))
        self.done = bool(usage and self._reason)
        return events

    def _note_reason(self, reason: str | None) -> None:
        if reason and reason != "null":  # the word stands for: not yet
            self._reason = reason

    def _read_message(self, message: Mapping[str, Any], events: list[ModelEvent]) -> None:
        if reasoning := message.get("reasoning_content"):
            events.append(ReasoningDelta(_text_of(reasoning)))
        if content := message.get("content"):
            if isinstance(content, str):
                events.append(TextDelta(content))
            else:
                events.extend(map(_event_of, content))
        if calls := message.get("tool_calls"):
            events.extend(self._calls.read(call, place) for place, call in enumerate(calls))

    def _unreadable(self, data: bytes) -> ModelServiceError:
        sent = shown(data[:1000].decode("utf-8", "replace"), self._key, 80)
        return self._error(
            f"the server sent what is no part of an answer: {sent!r}; does it speak DashScope's protocol?"
        )

    def _error(self, text: str) -> ModelServiceError:
        return ModelResponseError(f"{self._backend}: {text}", backend=self._backend, request_id=self._request_id)


def usage_of(wire: Mapping[str, Any]) -> Usage:
    """The counts of a `usage` object; what is missing or no count is 0."""
    prompt = wire.get("prompt_tokens_details") or wire.get("input_tokens_details") or {}
    output = wire.get("output_tokens_details") or wire.get("completion_tokens_details") or {}
    return Usage(
        prompt_tokens=_count(wire.get("input_tokens")),
        completion_tokens=_count(wire.get("output_tokens")),
        total_tokens=_count(wire.get("total_tokens")),
        cached_tokens=_count(prompt.get("cached_tokens")),
        cache_write_tokens=_count(prompt.get("cache_creation_input_tokens")),
        reasoning_tokens=_count(output.get("reasoning_tokens")),
    )


def _count(value: object) -> int:
    return int(value) if isinstance(value, int | float) and 0 < value < 2**63 else 0


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content)
    raise TypeError(f"a text is {type(content).__name__}")


def _event_of(part: Mapping[str, Any]) -> ModelEvent:
    """The event of one part of a content."""
    if image := part.get("image"):
        return MediaDelta(ContentItem(image=image))
    audio = part.get("audio")
    if isinstance(audio, Mapping):
        audio = audio.get("url")
    if audio:
        return MediaDelta(ContentItem(audio=audio))
    text = part.get("text")
    return TextDelta(text if isinstance(text, str) else "")


# --- tool calls -------------------------------------------------------------------------------------------------------


class _Calls:
    """Tells which call a delta belongs to: by its index, or, for models that give none, by its place or its id."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._heads: list[tuple[str, str]] = []  # of each call, its id and name

    def read(self, delta: Mapping[str, Any], place: int) -> FunctionCallDelta:
        """The event of a delta, which stands at this place of its chunk."""
        function = delta.get("function") or {}
        call_id = str(delta.get("id") or "")
        name = str(function.get("name") or "")
        number = self._number(delta.get("index"), call_id, name, place)
        old_id, old_name = self._heads[number]
        self._heads[number] = (old_id or call_id, old_name or name)
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else dumps(arguments)
        return FunctionCallDelta(number, "" if old_id else call_id, "" if old_name else name, arguments)

    def _number(self, index: object, call_id: str, name: str, place: int) -> int:
        key = ("at", index) if index is not None else ("id", call_id) if call_id else ("place", place)
        number = self._numbers.get(key)
        if number is None and index is None and not name and self._heads:
            number = len(self._heads) - 1  # more of the last one
        if number is None or self._is_another(number, call_id, name):
            number = len(self._heads)
            self._heads.append(("", ""))
        self._numbers[key] = number
        return number

    def _is_another(self, number: int, call_id: str, name: str) -> bool:
        """Whether another call begins under an index that was used before, as some servers have it."""
        old_id, old_name = self._heads[number]
        if not (name and old_name):
            return False
        return name != old_name or bool(call_id and old_id and call_id != old_id)
