"""From the events of an answer to Jackfield's events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from jackfield.errors import ModelResponseError, ModelServiceError
from jackfield.events import FunctionCallDelta, ModelEvent, ModelFinished, ReasoningDelta, TextDelta, UsageReported
from jackfield.jsontext import dumps
from jackfield.messages import FinishReason, Usage
from jackfield_anthropic.errors import error_in_answer
from jackfield_backend.refusals import Secrets, shown
from jackfield_http import DataLineDecoder, Halves, json_piece

REASONS: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
"""Why an answer ended; what is missing (`pause_turn`) is `other`."""

_TEXTS = frozenset({"text", "thinking", "partial_json"})
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_decode = msgspec.json.Decoder().decode


@dataclass(slots=True)
class _Block:
    """A block as it grows. `text` is what its deltas add to, in pieces; `call` the number of a tool call, from 0."""

    wire: dict[str, Any]
    text: list[str]
    signature: str = ""
    call: int = -1


class AnswerReader:
    """Reads one answer, as a stream of events (`feed`) or as one object (`whole`); `finish` is the end of both.

    Args:
        backend: Who asks, for errors.
        server: Who is asked; it is put beside the blocks that a later request needs back.
        model: Which model was asked, for a server that does not say.
        key: The secrets that were sent; they are taken out of what errors show.
        request_id: The server's id of the request.
        patience_s: For how many seconds there may be comments without an event; None for the default.

    Attributes:
        done: Whether nothing follows.
    """

    def __init__(
        self,
        backend: str,
        *,
        server: str = "",
        model: str = "",
        key: str | Secrets = "",
        request_id: str | None = None,
        patience_s: float | None = None,
    ) -> None:
        self._backend = backend
        self._server = server
        self._model = model
        self._key = key
        self._request_id = request_id
        self._events = DataLineDecoder(patience_s=patience_s)
        self._halves: Halves | None = None  # once an event had half a character
        self._id: str | None = None
        self._blocks: dict[int, _Block] = {}
        self._calls = 0
        self._usage: dict[str, Any] = {}
        self._reason = ""
        self._began = False
        self.done = False

    def feed(self, piece: bytes) -> Iterator[ModelEvent]:
        """The events that a piece of the stream completes.

        Raises:
            ModelServiceError: It holds an error, or what is no part of an answer; the events before that come first.
        """
        for data in self._events.feed(piece):
            yield from self._event(data)

    def whole(self, body: bytes) -> list[ModelEvent]:
        """The events of an answer that is one object."""
        answer = self._object(body)
        if answer.get("type") == "error" or answer.get("error"):
            raise self._failure(answer)
        try:
            events = self._read_whole(answer)
            return events if self._halves is None else self._halves.mended(events)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._unreadable(body) from error

    def finish(self) -> Iterator[ModelEvent]:
        """The last events.

        Raises:
            ModelServiceError: The stream ended before the answer did.
        """
        for data in self._events.end():
            yield from self._event(data)
        if self._halves is not None:
            yield from self._halves.rest()
        if not self._began:
            raise self._error("the server sent no answer: check base_url, and that it speaks the Messages protocol")
        if not self._reason:
            raise self._error("the stream ended in the middle of the answer; try again")
        if self._usage:
            yield UsageReported(usage_of(self._usage))
        content = self._content()
        data_back = {"server": self._server, "content": content} if content else None
        reason = REASONS.get(self._reason, "other")
        yield ModelFinished(reason, self._model, self._id, data=data_back, provider_reason=self._reason)

    # --- one event ---

    def _event(self, data: bytes) -> list[ModelEvent]:
        event = self._object(data)
        try:
            events = self._read(event)
            return events if self._halves is None else self._halves.mended(events)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._unreadable(data) from error

    def _read(self, event: Mapping[str, Any]) -> list[ModelEvent]:
        match event["type"]:
            case "content_block_delta":
                return self._delta(self._blocks[event["index"]], event["delta"])
            case "content_block_start":
                return self._start(event["index"], event["content_block"])
            case "content_block_stop":
                return self._stop(self._blocks[event["index"]])
            case "message_start":
                self._head(event["message"])
            case "message_delta":
                self._reason = event["delta"].get("stop_reason") or self._reason
                self._note_usage(event.get("usage"))
            case "message_stop":
                self.done = True
            case "error":
                raise self._failure(event)
            case str():
                pass  # ping, and what will be added: the protocol says to expect it
            case _:
                raise ValueError("an event without a type")
        return []

    def _head(self, message: Mapping[str, Any]) -> None:
        self._began = True
        self._id = message.get("id")
        self._model = message.get("model") or self._model
        self._note_usage(message.get("usage"))

    def _note_usage(self, usage: Mapping[str, Any] | None) -> None:
        self._usage |= {name: count for name, count in (usage or {}).items() if count is not None}

    def _start(self, index: int, wire: dict[str, Any]) -> list[ModelEvent]:
        block = self._blocks[index] = _Block(wire, [], wire.get("signature") or "")
        match wire["type"]:
            case "tool_use":
                block.call = self._calls
                self._calls += 1
                return [FunctionCallDelta(block.call, str(wire.get("id") or ""), str(wire.get("name") or ""))]
            case "text":
                return self._delta(block, {"type": "text_delta", "text": wire.get("text")})
            case "thinking":
                return self._delta(block, {"type": "thinking_delta", "thinking": wire.get("thinking")})
        return []

    def _delta(self, block: _Block, delta: Mapping[str, Any]) -> list[ModelEvent]:
        match delta["type"]:
            case "text_delta":
                return [TextDelta(text)] if (text := _added(block, delta["text"])) else []
            case "thinking_delta":
                return [ReasoningDelta(text)] if (text := _added(block, delta["thinking"])) else []
            case "input_json_delta" if block.call >= 0:
                arguments = _added(block, delta["partial_json"])
                return [FunctionCallDelta(block.call, arguments=arguments)] if arguments else []
            case "signature_delta":
                block.signature += delta["signature"]
        return []

    def _stop(self, block: _Block) -> list[ModelEvent]:
        """The input of a call that did not come in pieces."""
        if block.call < 0 or block.text:
            return []
        arguments = _added(block, dumps(block.wire.get("input") or {}))
        return [FunctionCallDelta(block.call, arguments=arguments)]

    # --- the whole ---

    def _read_whole(self, answer: Mapping[str, Any]) -> list[ModelEvent]:
        self._head(answer)
        self._reason = answer["stop_reason"] or ""
        events: list[ModelEvent] = []
        for index, wire in enumerate(answer["content"]):
            events += [*self._start(index, wire), *self._stop(self._blocks[index])]
        return events

    def _content(self) -> list[dict[str, Any]]:
        """The blocks as they go back; none where nothing but text and calls was said, which the messages hold."""
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        if not any(block.wire["type"] in _THOUGHTS for block in blocks):
            return []
        return [wire for block in blocks if (wire := self._sent_back(block)) is not None]

    def _sent_back(self, block: _Block) -> dict[str, Any] | None:
        text = "".join(block.text)
        if self._halves is not None:
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        match block.wire["type"]:
            case "thinking":  # one without a signature is refused
                signed = {"type": "thinking", "thinking": text, "signature": block.signature}
                return signed if block.signature else None
            case "text":
                return {"type": "text", "text": text} if text else None
            case "tool_use":
                return {"type": "tool_use", "name": block.wire.get("name")}
        return block.wire

    # --- what cannot be read ---

    def _object(self, data: bytes) -> dict[str, Any]:
        try:
            value = _decode(data)
        except (ValueError, RecursionError):  # msgspec's own errors are ValueErrors
            value = self._odd_object(data)
        if not isinstance(value, dict):
            raise self._unreadable(data)
        return value

    def _odd_object(self, data: bytes) -> Any:
        try:
            value = json_piece(data, _TEXTS)
        except ValueError as error:
            raise self._unreadable(data) from error
        self._halves = self._halves or Halves()
        return value

    def _failure(self, event: Mapping[str, Any]) -> ModelServiceError:
        return error_in_answer(event, self._backend, key=self._key, request_id=self._request_id)

    def _unreadable(self, data: bytes) -> ModelServiceError:
        sent = shown(data[:1000].decode("utf-8", "replace"), self._key, 80)
        return self._error(
            f"the server sent what is no part of an answer: {sent!r}; does it speak the Messages protocol?"
        )

    def _error(self, text: str) -> ModelServiceError:
        return ModelResponseError(f"{self._backend}: {text}", backend=self._backend, request_id=self._request_id)


def usage_of(wire: Mapping[str, Any]) -> Usage:
    """The counts of a `usage` object. What is read from the cache, or written to it, is part of the prompt here."""
    cached, written = _count(wire.get("cache_read_input_tokens")), _count(wire.get("cache_creation_input_tokens"))
    prompt, output = _count(wire.get("input_tokens")) + cached + written, _count(wire.get("output_tokens"))
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=output,
        total_tokens=prompt + output,
        cached_tokens=cached,
        cache_write_tokens=written,
        reasoning_tokens=_count((wire.get("output_tokens_details") or {}).get("thinking_tokens")),
    )


def _count(value: object) -> int:
    return int(value) if isinstance(value, int | float) and 0 < value < 2**63 else 0


def _added(block: _Block, text: object) -> str:
    if text is None or text == "":
        return ""
    if not isinstance(text, str):
        raise TypeError(f"a text is {type(text).__name__}")
    block.text.append(text)
    return text
