"""Convert the chunks of a DashScope answer to Jackfield's events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

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
from jackfield.messages import FINISH_REASONS, ContentItem, FinishReason, Usage
from jackfield_dashscope.errors import error_in_answer
from jackfield_http import AnswerReader, Calls, DataLineDecoder, Failures, Wire, arguments_of, count_of

# DashScope documents the same terms as Jackfield, but also sends others.
REASONS: Mapping[str, FinishReason] = {reason: reason for reason in FINISH_REASONS}
SEARCH_EVENT = "jackfield-dashscope.search"


class DashScopeReader(AnswerReader):
    """Reader for a DashScope answer.

    DashScope repeats the usage in every chunk, but it is reported only once, at the end. If there are several choices
    (`n`), only the first is read.

    Args:
        failures: The request's error factory.
        model: The requested model, since answers may not name it.
        patience_s: How long the server may send only comments, in seconds. If None, the default applies.
    """

    advice: ClassVar[str] = (
        "check base_url, which usually ends in /api/v1, and that the server supports DashScope's protocol"
    )
    texts: ClassVar[frozenset[str]] = frozenset({"content", "reasoning_content", "text", "arguments"})
    decoder = DataLineDecoder
    events: DataLineDecoder

    def __init__(self, failures: Failures, model: str, *, patience_s: float | None = None) -> None:
        super().__init__(failures, patience_s=patience_s)
        self._model = model
        self._request_id = failures.request_id
        self._calls = Calls()
        self._usage: Wire | None = None
        self._reason = ""
        self._has_head = False
        self._has_search = False

    @property
    def complete(self) -> bool:
        """See `AnswerReader`. Only the usage may follow."""
        return bool(self._reason)

    def last_events(self) -> Iterator[ModelEvent]:
        if self._usage is not None:
            yield UsageReported(usage_of(self._usage))
        reason = REASONS.get(self._reason, "other")
        yield ModelFinished(reason, self._model, self._request_id, provider_reason=self._reason)

    def read_event(self, wire: Wire) -> list[ModelEvent]:
        if wire.get("code"):
            raise error_in_answer(self.failures, wire, status=self.events.status)
        output = wire["output"]
        if not self._has_head:
            self._read_head(wire)
        if usage := wire.get("usage"):
            self._usage = usage
        events: list[ModelEvent] = []
        if (search := output.get("search_info")) and not self._has_search:
            self._has_search = True
            events.append(PluginEvent(SEARCH_EVENT, search))
        self._read_output(output, events)
        self.done = bool(usage and self._reason)
        return events

    def _read_head(self, wire: Wire) -> None:
        self._has_head = True
        self._request_id = wire.get("request_id") or self._request_id
        self._model = wire.get("model") or self._model

    def _read_output(self, output: Wire, events: list[ModelEvent]) -> None:
        choices = output.get("choices")
        if choices:
            choice = choices[0]
            if not choice.get("index"):
                self._read_message(choice.get("message") or {}, events)
                self._note_reason(choice.get("finish_reason"))
        elif choices is None:
            # The older format, which some models send regardless of `result_format`.
            if text := output.get("text"):
                events.append(TextDelta(_text_of(text)))
            self._note_reason(output.get("finish_reason"))

    def _note_reason(self, reason: str | None) -> None:
        if reason and reason != "null":  # meaning: not finished yet
            self._reason = reason
            self.enough = True

    def _read_message(self, message: Mapping[str, Any], events: list[ModelEvent]) -> None:
        if reasoning := message.get("reasoning_content"):
            events.append(ReasoningDelta(_text_of(reasoning)))
        if content := message.get("content"):
            if isinstance(content, str):
                events.append(TextDelta(content))
            else:
                events.extend(_event_of(part) for part in content)
        if calls := message.get("tool_calls"):
            events.extend(_called(self._calls, call) for call in calls)


def usage_of(wire: Mapping[str, Any]) -> Usage:
    """Convert a `usage` object; missing and invalid counts become 0."""
    prompt = wire.get("prompt_tokens_details") or wire.get("input_tokens_details") or {}
    output = wire.get("output_tokens_details") or wire.get("completion_tokens_details") or {}
    return Usage(
        prompt_tokens=count_of(wire.get("input_tokens")),
        completion_tokens=count_of(wire.get("output_tokens")),
        total_tokens=count_of(wire.get("total_tokens")),
        cached_tokens=count_of(prompt.get("cached_tokens")),
        cache_write_tokens=count_of(prompt.get("cache_creation_input_tokens")),
        reasoning_tokens=count_of(output.get("reasoning_tokens")),
    )


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content)
    raise TypeError(f"expected a string, got {type(content).__name__}")


def _event_of(part: Mapping[str, Any]) -> ModelEvent:
    """Convert one part of a message's content."""
    if image := part.get("image"):
        return MediaDelta(ContentItem(image=image))
    audio = part.get("audio")
    if isinstance(audio, Mapping):
        audio = audio.get("url")
    if audio:
        return MediaDelta(ContentItem(audio=audio))
    text = part.get("text")
    return TextDelta(text if isinstance(text, str) else "")


def _called(calls: Calls, call: Mapping[str, Any]) -> FunctionCallDelta:
    function = call.get("function") or {}
    call_id, name = str(call.get("id") or ""), str(function.get("name") or "")
    return calls.add_piece(call.get("index"), call_id, name, arguments_of(function.get("arguments")))
