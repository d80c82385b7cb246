"""From the events of an answer to Jackfield's events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from jackfield.events import FunctionCallDelta, ModelEvent, ModelFinished, ReasoningDelta, TextDelta, UsageReported
from jackfield.jsontext import dumps
from jackfield.messages import FinishReason, Usage
from jackfield_anthropic.errors import error_in_answer
from jackfield_http import AnswerReader, DataLineDecoder, Failures, Wire, count_of

REASONS: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
"""Why an answer ended; what is missing (`pause_turn`) is `other`."""

_THOUGHTS = frozenset({"thinking", "redacted_thinking"})


@dataclass(slots=True)
class _Block:
    """A block as it grows. `text` is what its deltas add to, in pieces; `call` the number of a tool call, from 0."""

    wire: dict[str, Any]
    text: list[str]
    signature: str = ""
    call: int = -1


class MessagesReader(AnswerReader):
    """Reads an answer in the Messages protocol.

    Args:
        failures: The errors of this request.
        server: The server's address; it is stored with the blocks that a later request must send back.
        model: Which model was asked, for a server that does not say.
        patience_s: How many seconds the server may send comments without an event; None for the default.
    """

    advice: ClassVar[str] = "check base_url, and that it speaks the Messages protocol"
    texts: ClassVar[frozenset[str]] = frozenset({"text", "thinking", "partial_json"})
    decoder = DataLineDecoder

    def __init__(
        self, failures: Failures, *, server: str = "", model: str = "", patience_s: float | None = None
    ) -> None:
        super().__init__(failures, patience_s=patience_s)
        self._server = server
        self._model = model
        self._id: str | None = None
        self._blocks: dict[int, _Block] = {}
        self._calls = 0
        self._usage: Wire = {}
        self._reason = ""

    @property
    def complete(self) -> bool:
        """See `AnswerReader`."""
        return bool(self._reason)

    def _last(self) -> Iterator[ModelEvent]:
        if self._usage:
            yield UsageReported(usage_of(self._usage))
        content = self._content()
        data_back = {"server": self._server, "content": content} if content else None
        reason = REASONS.get(self._reason, "other")
        yield ModelFinished(reason, self._model, self._id, data=data_back, provider_reason=self._reason)

    # --- one event ---

    def _read(self, wire: Wire) -> list[ModelEvent]:
        match wire["type"]:
            case "content_block_delta":
                return self._delta(self._blocks[wire["index"]], wire["delta"])
            case "content_block_start":
                return self._start(wire["index"], wire["content_block"])
            case "content_block_stop":
                return self._stop(self._blocks[wire["index"]])
            case kind:
                self._note(kind, wire)
        return []

    def _note(self, kind: object, wire: Wire) -> None:
        """Take an event that is about the answer, not about a block of it."""
        match kind:
            case "message_start":
                self._head(wire["message"])
            case "message_delta":
                self._reason = wire["delta"].get("stop_reason") or self._reason
                self._note_usage(wire.get("usage"))
            case "message_stop":
                self.done = True
            case "error":
                raise error_in_answer(self.failures, wire)
            case str():
                pass  # ping, and what will be added: the protocol says to expect it
            case _:
                raise ValueError("an event without a type")

    def _head(self, message: Mapping[str, Any]) -> None:
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

    def _read_whole(self, wire: Wire) -> list[ModelEvent]:
        if wire.get("type") == "error" or wire.get("error"):
            raise error_in_answer(self.failures, wire)
        self._head(wire)
        self._reason = wire["stop_reason"] or ""
        events: list[ModelEvent] = []
        for index, block in enumerate(wire["content"]):
            events += [*self._start(index, block), *self._stop(self._blocks[index])]
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


def usage_of(wire: Mapping[str, Any]) -> Usage:
    """The counts of a `usage` object. Tokens read from the cache, or written to it, are part of the prompt here."""
    cached, written = count_of(wire.get("cache_read_input_tokens")), count_of(wire.get("cache_creation_input_tokens"))
    prompt, output = count_of(wire.get("input_tokens")) + cached + written, count_of(wire.get("output_tokens"))
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=output,
        total_tokens=prompt + output,
        cached_tokens=cached,
        cache_write_tokens=written,
        reasoning_tokens=count_of((wire.get("output_tokens_details") or {}).get("thinking_tokens")),
    )


def _added(block: _Block, text: object) -> str:
    if text is None or text == "":
        return ""
    if not isinstance(text, str):
        raise TypeError(f"a text is {type(text).__name__}")
    block.text.append(text)
    return text
