"""Turn response chunks into events, from standard and deviating servers alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar

from jackfield.errors import ContentFilterError
from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    ReasoningDelta,
    TextDelta,
    UsageReported,
)
from jackfield.messages import ContentItem, FinishReason, Usage
from jackfield_chat_completions.errors import error_in_stream, filtered_categories
from jackfield_chat_completions.sound import sound_uri
from jackfield_http import AnswerReader, Calls, Failures, Wire, arguments_of, count_of

REASONS: Mapping[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "tool_call": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}
"""Finish reasons: the protocol's own, and those of servers that otherwise follow it."""
_KEYS_OF_TEXT = frozenset({"role", "content"})


class ChatReader(AnswerReader):
    """Reads a Chat Completions response.

    Only the first choice is read, even if `n` in `extra_body` requests several. `finish` reports the usage and the end,
    so both come once and last, even from servers that repeat the usage in every chunk. Audio is delivered as a whole
    before them. Its transcript becomes the text if the server sends no other text.

    Args:
        failures: Builds the request's errors.
        sound_format: The requested audio format, or '' if none was requested.
        cost_currency: The currency of `cost` in the usage, or '' if that field is not a cost.
        patience_s: The number of seconds for which the server may send only comments. None means the default.
    """

    advice: ClassVar[str] = "check base_url, and that the server supports Chat Completions"
    texts: ClassVar[frozenset[str]] = frozenset(
        {"content", "reasoning_content", "reasoning", "refusal", "text", "thinking", "arguments"}
    )
    end_mark: ClassVar[bytes | None] = b"[DONE]"

    def __init__(
        self,
        failures: Failures,
        *,
        sound_format: str = "",
        cost_currency: str = "",
        patience_s: float | None = None,
    ) -> None:
        super().__init__(failures, patience_s=patience_s)
        self._sound_format = sound_format
        self._cost_currency = cost_currency
        self._calls = Calls()
        self._sound: list[str] = []
        self._wrote = False  # the server sent text, so the transcript is not needed
        self._showed = False  # the server sent anything else: a transcript, an image
        self._filtered: object = None
        self._usage: Usage | None = None
        self._reason = ""  # the server's word
        self._model = ""
        self._id: str | None = None
        self._created: int | None = None

    @property
    def complete(self) -> bool:
        """See `AnswerReader`."""
        return bool(self._reason or self.done)

    def read_whole(self, wire: Wire) -> list[ModelEvent]:
        events = self.read_event(wire)
        self.done = bool(events)
        return events

    def last_events(self) -> Iterator[ModelEvent]:
        reason = self._finish_reason()
        if reason == "content_filter" and not self._has_answered():
            raise self._refused()
        if self._sound:
            yield MediaDelta(ContentItem(audio=self._sound_uri()))
        if self._usage is not None:
            yield UsageReported(self._usage)
        yield ModelFinished(reason, self._model, self._id, self._created, provider_reason=self._reason)

    def _has_answered(self) -> bool:
        return bool(self._wrote or self._showed or self._calls or self._sound)

    def _finish_reason(self) -> FinishReason:
        if self._reason:
            return REASONS.get(self._reason, "other")
        return "tool_calls" if self._calls else "stop"

    def read_event(self, wire: Wire) -> list[ModelEvent]:
        if wire.get("error") or wire.get("object") == "error":
            raise error_in_stream(self.failures, wire)
        if self._id is None:
            self._read_head(wire)
        if usage := wire.get("usage"):
            self._usage = usage_of(usage, cost_currency=self._cost_currency)
        choices = wire.get("choices")
        return self._choice(choices[0]) if choices else []

    def _read_head(self, chunk: Mapping[str, Any]) -> None:
        if isinstance(chunk.get("id"), str):
            self._id = chunk["id"]
        if isinstance(chunk.get("model"), str):
            self._model = chunk["model"]
        self._created = self._created or count_of(chunk.get("created")) or None

    def _choice(self, choice: Mapping[str, Any]) -> list[ModelEvent]:
        if choice.get("index"):
            return []
        if reason := choice.get("finish_reason"):
            self._reason = str(reason)
            self._filtered = choice.get("content_filter_results")
        delta = choice.get("delta")
        if delta and delta.keys() <= _KEYS_OF_TEXT and (text := delta.get("content")) and isinstance(text, str):
            self._wrote = True
            return [TextDelta(text)]  # nearly every chunk
        said = choice.get("message") if delta is None else delta
        return list(self._said(said, is_whole=delta is None)) if said else []

    def _said(self, said: Mapping[str, Any], *, is_whole: bool) -> Iterator[ModelEvent]:
        # Two names for the same field; a server that is migrating sends both.
        if reasoning := said.get("reasoning_content") or said.get("reasoning"):
            yield ReasoningDelta(_text_of(reasoning))
        for key, read in _READERS:
            if value := said.get(key):
                yield from read(self, value)
        for call in said.get("tool_calls") or ():
            yield self._called(call, is_whole=is_whole)

    def _called(self, call: Mapping[str, Any], *, is_whole: bool) -> FunctionCallDelta:
        function = call.get("function") or {}
        call_id, name = str(call.get("id") or ""), str(function.get("name") or "")
        arguments = arguments_of(function.get("arguments"))
        if is_whole:
            return self._calls.add_whole(call_id, name, arguments)
        return self._calls.add_piece(call.get("index"), call_id, name, arguments)

    def _written(self, content: object) -> Iterator[ModelEvent]:
        """Yield the events for a content string or a list of parts, which some servers send."""
        self._wrote = True
        for part in content if isinstance(content, list) else [content]:
            if isinstance(part, Mapping) and part.get("image_url"):
                yield self._image(part)
            elif text := _text_of([part]):
                yield TextDelta(text)

    def _images(self, parts: Iterable[Mapping[str, Any]]) -> Iterator[ModelEvent]:
        return map(self._image, parts)

    def _image(self, part: Mapping[str, Any]) -> MediaDelta:
        self._showed = True
        address = part["image_url"]
        return MediaDelta(ContentItem(image=address if isinstance(address, str) else address["url"]))

    def _heard(self, audio: Mapping[str, Any]) -> Iterator[ModelEvent]:
        if data := audio.get("data"):
            self._sound.append(data)
        transcript = audio.get("transcript")
        if transcript and not self._wrote:
            self._showed = True
            yield TextDelta(transcript)

    def _sound_uri(self) -> str:
        try:
            return sound_uri(self._sound, named=self._sound_format)
        except (TypeError, ValueError) as error:
            raise self.failures.wrong("the server sent audio that is not valid base64; try again") from error

    def _refused(self) -> ContentFilterError:
        found = filtered_categories(self._filtered)
        return ContentFilterError(
            f"{self.failures.backend}: the provider's filter withheld the entire response{found}: change the request",
            backend=self.failures.backend,
            code="content_filter",
            request_id=self.failures.request_id,
        )


_READERS: Sequence[tuple[str, Callable[[ChatReader, Any], Iterator[ModelEvent]]]] = (
    ("content", ChatReader._written),
    ("refusal", ChatReader._written),
    ("audio", ChatReader._heard),
    ("images", ChatReader._images),
)
"""The reader for each key of a delta, in event order."""


def usage_of(wire: Mapping[str, Any], *, cost_currency: str = "") -> Usage:
    """Return the token counts and cost in a `usage` object. Missing or invalid counts are 0.

    Args:
        wire: The object as received.
        cost_currency: The currency of `cost`, or '' if that field is not a cost.
    """
    prompt = wire.get("prompt_tokens_details") or {}
    completion = wire.get("completion_tokens_details") or {}
    return Usage(
        prompt_tokens=count_of(wire.get("prompt_tokens")),
        completion_tokens=count_of(wire.get("completion_tokens")),
        total_tokens=count_of(wire.get("total_tokens")),
        # The second name is DeepSeek's, the third Moonshot's.
        cached_tokens=count_of(
            prompt.get("cached_tokens") or wire.get("prompt_cache_hit_tokens") or wire.get("cached_tokens")
        ),
        cache_write_tokens=count_of(prompt.get("cache_write_tokens")),
        reasoning_tokens=count_of(completion.get("reasoning_tokens")),
        **_cost(wire.get("cost"), cost_currency),
    )


def _cost(value: object, currency: str) -> dict[str, Any]:
    if not currency or isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        return {}
    # From the digits, because the nearest float is a different number.
    return {"cost": Decimal(str(value)), "currency": currency}


def _text_of(content: object) -> str:
    """Return the text of a content string or a list of parts, which some servers send."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(
            part if isinstance(part, str) else _text_of(part.get("text") or part.get("thinking") or "")
            for part in content
        )
    raise TypeError(f"content is {type(content).__name__}")
