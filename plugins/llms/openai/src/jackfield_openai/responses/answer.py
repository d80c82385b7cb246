"""Convert the typed events of a Responses answer to Jackfield's events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

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
from jackfield_http import AnswerReader, Failures, Wire, arguments_of, count_of
from jackfield_openai.responses.errors import error_of_failure
from jackfield_openai.responses.growing import Channel, GrowingItem, Items
from jackfield_openai.responses.items import Item, call_id_of, image_of, parts_of

# Reasons for an incomplete answer.
_REASONS: Mapping[str, FinishReason] = {"max_output_tokens": "length", "content_filter": "content_filter"}


class ResponsesReader(AnswerReader):
    """Reader for an answer in the Responses API.

    A server sends all content up to three times: as deltas, in the complete item, and in the complete response. The
    first copy is used, and later ones only fill gaps.

    Args:
        failures: The request's error factory.
        server: The server's address, which is stored with the items that later requests must send back.
        patience_s: How long the server may send only comments, in seconds. If None, the default applies.
    """

    advice: ClassVar[str] = "check base_url, and that the server supports the Responses API"
    texts: ClassVar[frozenset[str]] = frozenset({"delta"})
    end_mark: ClassVar[bytes | None] = b"[DONE]"

    def __init__(self, failures: Failures, *, server: str = "", patience_s: float | None = None) -> None:
        super().__init__(failures, patience_s=patience_s)
        self._server = server
        self._items = Items()
        self._text = Channel()
        self._reasoning = Channel()
        self._model = ""
        self._id: str | None = None
        self._created: int | None = None
        self._usage: Usage | None = None
        self._reason: FinishReason = "stop"
        self._provider_reason = ""
        self._complete = False

    @property
    def complete(self) -> bool:
        """See `AnswerReader`."""
        return self._complete

    def read_whole(self, wire: Wire) -> list[ModelEvent]:
        if "output" not in wire:
            self._raise_if_error(wire)
            raise ValueError("the response has no output")
        return self._response(wire)

    def held_events(self) -> list[ModelEvent]:
        return [*super().held_events(), *([] if self._complete else self._release_all())]

    def last_events(self) -> Iterator[ModelEvent]:
        if self._usage is not None:
            yield UsageReported(self._usage)
        output = self._items.output()
        data = {"server": self._server, "output": output} if output else None
        yield ModelFinished(self._reason, self._model, self._id, self._created, data, self._provider_reason)

    # --- one event ---

    def read_event(self, wire: Wire) -> list[ModelEvent]:
        match wire.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                return self._text_delta(wire)
            case "response.reasoning_text.delta":
                return self._reasoning_delta(wire, "content")
            case "response.reasoning_summary_text.delta":
                return self._reasoning_delta(wire, "summary")
            case "response.function_call_arguments.delta":
                return self._call(self._items.of(wire), {}, arguments_of(wire["delta"]))
            case "response.function_call_arguments.done":
                return self._call(self._items.of(wire), wire)
            case "response.output_item.added":
                return self._item_added(wire)
            case "response.output_item.done":
                return self._item_done(wire)
        return self._about_all(wire)

    def _about_all(self, event: Mapping[str, Any]) -> list[ModelEvent]:
        """Handle an event that concerns the whole answer rather than an item."""
        match event.get("type"):
            case "response.created":
                self._head(event["response"])
            case "response.completed" | "response.incomplete" | "response.failed":
                return self._response(event["response"])
            case "error":
                self._raise_if_error(event)
            case str():
                pass  # other events that add nothing, and future ones
            case _:
                self._raise_if_error(event)
                raise ValueError("an event has no type")
        return []

    def _raise_if_error(self, event: Mapping[str, Any]) -> None:
        if event.get("type") == "error" or event.get("error"):
            raise error_of_failure(self.failures, event.get("error") or event)

    # --- pieces ---

    def _text_delta(self, event: Mapping[str, Any]) -> list[ModelEvent]:
        item = self._items.of(event)
        delta = event["delta"]
        item.count("content", delta)
        return _texts(self._text.say(item, item, delta))

    def _reasoning_delta(self, event: Mapping[str, Any], where: str) -> list[ModelEvent]:
        item = self._items.of(event)
        delta = event["delta"]
        item.count(where, delta)
        return _thoughts(self._reasoning.say(item, (item, where, event.get(f"{where}_index")), delta))

    def _call(self, item: GrowingItem, wire: Mapping[str, Any], delta: str = "") -> list[ModelEvent]:
        """Return the next part of a call: a delta of its arguments, or whatever in `wire` has not arrived yet."""
        arguments = delta or arguments_of(wire.get("arguments"))[item.arrived["arguments"] :]
        item.count("arguments", arguments)
        new_id, new_name = item.learn(call_id_of(wire), str(wire.get("name") or ""))
        if not (new_id or new_name or arguments):
            return []
        return [FunctionCallDelta(self._items.number_of_call(item), new_id, new_name, arguments)]

    # --- items ---

    def _item_added(self, event: Mapping[str, Any]) -> list[ModelEvent]:
        wire = event["item"]
        item = self._items.begin(wire.get("id"), event.get("output_index"))
        match wire["type"]:
            case "message":
                self._text.begin(item)
            case "reasoning":
                self._reasoning.begin(item)
            case "function_call":
                # The arguments may be complete here, and arrive again as deltas.
                return self._call(item, {**wire, "arguments": ""})
        return []

    def _item_done(self, event: Mapping[str, Any]) -> list[ModelEvent]:
        wire = event["item"]
        return self._finish_item(self._items.unfinished(wire.get("id"), event.get("output_index")), wire)

    def _finish_item(self, item: GrowingItem, wire: Item) -> list[ModelEvent]:
        """Return the part of an item that did not arrive as deltas."""
        item.wire = wire
        match wire["type"]:
            case "message":
                spoken = [self._text.say(item, item, text) for text, _ in _rest(wire, "content", item)]
                return _texts("".join([*spoken, self._text.end(item)]))
            case "reasoning":
                rest = [(text, part) for where in ("summary", "content") for text, part in _rest(wire, where, item)]
                spoken = [self._reasoning.say(item, part, text) for text, part in rest]
                return _thoughts("".join([*spoken, self._reasoning.end(item)]))
            case "function_call":
                return self._call(item, wire)
        image = image_of(wire)
        return [MediaDelta(ContentItem(image=image))] if image else []

    # --- the response ---

    def _head(self, response: Mapping[str, Any]) -> None:
        self._id = str(response.get("id") or "") or self._id
        self._model = str(response.get("model") or self._model)
        self._created = count_of(response.get("created_at")) or self._created

    def _response(self, response: Mapping[str, Any]) -> list[ModelEvent]:
        """Handle the end of the answer."""
        status = response.get("status") or "completed"
        if status not in ("completed", "incomplete"):
            self._raise_if_error(response)
            raise self.failures.wrong(f"the response ended with status {status!r}: try again without background mode")
        self._head(response)
        missing = self._items.missing(response.get("output") or ())
        events = [event for item, wire in missing for event in self._finish_item(item, wire)]
        if usage := response.get("usage"):
            self._usage = usage_of(usage)
        if status == "completed":
            self._provider_reason = status
            self._reason = "tool_calls" if self._items.calls else "stop"
        else:
            self._provider_reason = str((response.get("incomplete_details") or {}).get("reason") or status)
            self._reason = _REASONS.get(self._provider_reason, "other")
        self._complete = self.done = True
        return [*events, *self._release_all()]

    def _release_all(self) -> list[ModelEvent]:
        """Return all text that is still buffered."""
        return [*_thoughts(self._reasoning.end_all()), *_texts(self._text.end_all())]


def _texts(text: str) -> list[ModelEvent]:
    return [TextDelta(text)] if text else []


def _thoughts(text: str) -> list[ModelEvent]:
    return [ReasoningDelta(text)] if text else []


def _rest(wire: Item, where: str, item: GrowingItem) -> Iterator[tuple[str, object]]:
    """Yield the texts in an item that did not arrive as deltas, each with its part (None to continue the last one)."""
    arrived = item.arrived[where]
    for number, text in enumerate(parts_of(wire.get(where))):
        yield text[arrived:], None if arrived else (item, where, number)
        arrived = max(0, arrived - len(text))


def usage_of(wire: Mapping[str, Any]) -> Usage:
    """Convert a `usage` object; missing and invalid counts become 0."""
    details = wire.get("input_tokens_details") or {}
    return Usage(
        prompt_tokens=count_of(wire.get("input_tokens")),
        completion_tokens=count_of(wire.get("output_tokens")),
        total_tokens=count_of(wire.get("total_tokens")),
        cached_tokens=count_of(details.get("cached_tokens")),
        cache_write_tokens=count_of(details.get("cache_write_tokens")),
        reasoning_tokens=count_of((wire.get("output_tokens_details") or {}).get("reasoning_tokens")),
    )
