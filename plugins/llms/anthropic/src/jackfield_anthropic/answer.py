"""Convert the events of a Messages answer to Jackfield's events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from jackfield.events import (
    FunctionCallDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    TextDelta,
    UsageReported,
)
from jackfield.jsontext import dumps, loads_lenient
from jackfield.messages import FinishReason, Usage
from jackfield.request import ChatRequest
from jackfield.results import SOURCES
from jackfield_anthropic.errors import error_in_answer
from jackfield_anthropic.history import fit_name
from jackfield_anthropic.wire import Beginning, PausedRequest
from jackfield_http import AnswerReader, DataLineDecoder, Wire, count_of
from jackfield_http.backend import Exchange
from jackfield_http.server import ServerT

CITED = "jackfield-anthropic.cited"
"""Name of the event that reports a cited source."""
MAX_PAUSES = 20
"""Maximum pauses per answer; the server pauses after about ten uses of its tools."""
REASONS: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
"""Finish reasons by stop reason; any other (`pause_turn`) is `other`."""

_NO_BEGINNING = Beginning()
_PLAIN = frozenset({"text", "tool_use"})
_OWN_OF_ANSWERS = frozenset({"file_id"})  # keys of citations that requests must not contain


@dataclass(slots=True)
class _Block:
    """A content block being received.

    Attributes:
        wire: The block as it started.
        text: The deltas of its text, reasoning or input.
        signature: The signature of its reasoning.
        call: The index of its tool call in the answer, or -1 for other blocks.
        citations: The citations in its text.
    """

    wire: Wire
    text: list[str] = field(default_factory=list)
    signature: str = ""
    call: int = -1
    citations: list[Wire] = field(default_factory=list)


class MessagesReader(AnswerReader):
    """Reader for an answer in the Messages protocol.

    Args:
        exchange: The request and its server. Blocks that later requests must send back are stored with the server's
            address.
    """

    advice: ClassVar[str] = "check base_url, and that the server supports the Messages protocol"
    texts: ClassVar[frozenset[str]] = frozenset({"text", "thinking", "partial_json"})
    decoder = DataLineDecoder

    def __init__(self, exchange: Exchange[ServerT]) -> None:
        super().__init__(exchange.failures, patience_s=exchange.patience_s)
        request = exchange.request
        self._beginning = request.beginning if isinstance(request, PausedRequest) else _NO_BEGINNING
        self._server = request.server
        self._model = request.model
        self._names = {fit_name(function["name"]): str(function["name"]) for function in request.functions}
        self._id: str | None = None
        self._blocks: dict[int, _Block] = {}
        self._calls = 0
        self._cited: set[str] = set()
        self._usage: Wire = {}
        self._reason = ""

    @property
    def complete(self) -> bool:
        """See `AnswerReader`."""
        return bool(self._reason)

    @property
    def is_paused(self) -> bool:
        """True if the server expects another request for the rest of the answer, and no call has to be made first."""
        return self._reason == "pause_turn" and not self._calls and self._beginning.pauses < MAX_PAUSES

    def rest_of(self, request: ChatRequest) -> PausedRequest:
        """Return the request for the rest of a paused answer."""
        values = {each.name: getattr(request, each.name) for each in fields(ChatRequest)}
        beginning = Beginning(tuple(self._all_blocks()), self._total_usage(), self._beginning.pauses + 1)
        return PausedRequest(**values, beginning=beginning)

    def last_events(self) -> Iterator[ModelEvent]:
        if self.is_paused:
            return
        if self._usage or self._beginning.pauses:
            yield UsageReported(self._total_usage())
        content = self._all_blocks()
        # Messages contain everything if the answer consists only of text and calls.
        is_plain = all(block["type"] in _PLAIN and "citations" not in block for block in content)
        data = None if is_plain else {"server": self._server, "content": content}
        reason = REASONS.get(self._reason, "other")
        yield ModelFinished(reason, self._model, self._id, data=data, provider_reason=self._reason)

    def _total_usage(self) -> Usage:
        return self._beginning.usage + usage_of(self._usage)

    # --- one event ---

    def read_event(self, wire: Wire) -> list[ModelEvent]:
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
        """Handle an event that concerns the whole answer rather than a block."""
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
                pass  # ping, and future events, which the protocol says to expect
            case _:
                raise ValueError("an event has no type")

    def _head(self, message: Mapping[str, Any]) -> None:
        self._id = message.get("id")
        self._model = message.get("model") or self._model
        self._note_usage(message.get("usage"))

    def _note_usage(self, usage: Mapping[str, Any] | None) -> None:
        self._usage |= {name: count for name, count in (usage or {}).items() if count is not None}

    def _start(self, index: int, wire: Wire) -> list[ModelEvent]:
        block = self._blocks[index] = _Block(wire, signature=wire.get("signature") or "")
        match wire["type"]:
            case "tool_use":
                block.call = self._calls
                self._calls += 1
                name = str(wire.get("name") or "")
                return [FunctionCallDelta(block.call, str(wire.get("id") or ""), self._names.get(name, name))]
            case "text":
                events = self._delta(block, {"type": "text_delta", "text": wire.get("text")})
                for citation in wire.get("citations") or ():
                    events += self._cite(block, citation)
                return events
            case "thinking":
                return self._delta(block, {"type": "thinking_delta", "thinking": wire.get("thinking")})
        return []

    def _delta(self, block: _Block, delta: Mapping[str, Any]) -> list[ModelEvent]:
        match delta["type"]:
            case "text_delta":
                return [TextDelta(text)] if (text := _added(block, delta["text"])) else []
            case "thinking_delta":
                return [ReasoningDelta(text)] if (text := _added(block, delta["thinking"])) else []
            case "input_json_delta":
                arguments = _added(block, delta["partial_json"])
                is_own = block.call >= 0
                return [FunctionCallDelta(block.call, arguments=arguments)] if arguments and is_own else []
            case "signature_delta":
                block.signature += delta["signature"]
            case "citations_delta":
                return self._cite(block, delta["citation"])
        return []

    def _cite(self, block: _Block, citation: Wire) -> list[ModelEvent]:
        block.citations.append({key: value for key, value in citation.items() if key not in _OWN_OF_ANSWERS})
        source = _source_of(citation)
        if source is None or str(source) in self._cited:
            return []
        self._cited.add(str(source))
        return [PluginEvent(CITED, {SOURCES: [source]})]

    def _stop(self, block: _Block) -> list[ModelEvent]:
        """Return the arguments of a call if they did not arrive as deltas."""
        if block.call < 0 or block.text:
            return []
        arguments = _added(block, dumps(block.wire.get("input") or {}))
        return [FunctionCallDelta(block.call, arguments=arguments)]

    # --- the whole ---

    def read_whole(self, wire: Wire) -> list[ModelEvent]:
        if wire.get("type") == "error" or wire.get("error"):
            raise error_in_answer(self.failures, wire)
        self._head(wire)
        self._reason = wire["stop_reason"] or ""
        events: list[ModelEvent] = []
        for index, block in enumerate(wire["content"]):
            events += [*self._start(index, block), *self._stop(self._blocks[index])]
        return events

    def _all_blocks(self) -> list[Wire]:
        """Return the answer's blocks as later requests must send them back."""
        arrived = [self._sent_back(self._blocks[index]) for index in sorted(self._blocks)]
        return [*self._beginning.blocks, *(block for block in arrived if block is not None)]

    def _sent_back(self, block: _Block) -> Wire | None:
        text = "".join(block.text)
        if self.has_halves:
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        match block.wire["type"]:
            case "thinking":  # servers refuse reasoning without a signature
                signed = {"type": "thinking", "thinking": text, "signature": block.signature}
                return signed if block.signature else None
            case "text":
                cited = {"citations": block.citations} if block.citations else {}
                return {"type": "text", "text": text, **cited} if text else None
            case "tool_use":
                return {"type": "tool_use", "name": block.wire.get("name")}
            case "server_tool_use":
                return {**block.wire, "input": loads_lenient(text) if text else block.wire.get("input") or {}}
        return block.wire


def usage_of(wire: Mapping[str, Any]) -> Usage:
    """Convert a `usage` object. Tokens read from or written to the cache count as prompt tokens."""
    cached, written = count_of(wire.get("cache_read_input_tokens")), count_of(wire.get("cache_creation_input_tokens"))
    long_written = count_of((wire.get("cache_creation") or {}).get("ephemeral_1h_input_tokens"))
    prompt, output = count_of(wire.get("input_tokens")) + cached + written, count_of(wire.get("output_tokens"))
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=output,
        total_tokens=prompt + output,
        cached_tokens=cached,
        cache_write_tokens=written,
        long_cache_write_tokens=long_written,
        reasoning_tokens=count_of((wire.get("output_tokens_details") or {}).get("thinking_tokens")),
    )


def _source_of(citation: Mapping[str, Any]) -> Mapping[str, object] | None:
    """Return the web page, search result or document that a citation refers to, with its page if there is only one."""
    location = citation.get("url") or citation.get("source") or citation.get("document_title")
    if not isinstance(location, str):
        return None
    first, end = citation.get("start_page_number"), citation.get("end_page_number")
    # The end is exclusive; a source has one page or none.
    is_one_page = isinstance(first, int) and end == first + 1
    return {"location": location, "page": first} if is_one_page else {"location": location}


def _added(block: _Block, text: object) -> str:
    if text is None or text == "":
        return ""
    if not isinstance(text, str):
        raise TypeError(f"expected a string, got {type(text).__name__}")
    block.text.append(text)
    return text
