"""Build the fake server's answers and their delivery, as frozen values that functions create and methods refine.

```python
text("hello world").cut(7).without("done")
error(429, "slow down", headers={"Retry-After": "2"})
```
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise, zip_longest
from typing import Any, ClassVar, Literal, TypeAlias

Chunk: TypeAlias = Mapping[str, Any] | str
"""One server-sent event: an object to send as JSON, or a string to send unchanged."""

DEFAULT_USAGE: Mapping[str, object] = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}
DEFAULT_CHARS = 8
RESPONSE_ID = "chatcmpl-test"
"""The id of every answer."""
_CREATED = 1_767_225_600  # 2026-01-01, so that a reply always has the same bytes
_BOM = b"\xef\xbb\xbf"
_INSIDE_A_CHARACTER = re.compile(rb"[\x80-\xbf]")

Ending: TypeAlias = Literal["end", "reset", "stall", "comment", "flood"]


@dataclass(frozen=True, eq=False)
class Reply:
    """One answer of the server. Create it with a function in this module; each method returns a modified copy.

    A reply can be sent as a stream or as one JSON object, depending on the request. Chunk numbers count server-sent
    events from the start of the answer, excluding comments and `[DONE]`.

    Attributes:
        chunks: The events of the stream, without usage and `[DONE]`.
        body: Content sent in place of the chunks for any request, or None to send the chunks.
        status, headers: The status and headers of the response. These headers override the server's own.
        usage: The usage, sent at the end of a stream that asked for it and in every JSON object. None omits it.
        fill: True if `id`, `object`, `created` and `model` are added to each chunk.
        delay_s: The delay before the status line.
        pace_s: The delay between two pieces of the body.
        done: True if a stream ends with `[DONE]`.
        comments: True if a keep-alive comment precedes each event.
        newline: The line ending of the stream.
        ignores_stream: True if one JSON object is sent even if a stream was requested.
        cut_every: The size of the pieces in which the body is sent, in bytes. 0 sends each event as one piece.
        cut_offsets: The offsets at which the body is cut instead.
        cuts_characters: True if the body is cut inside every multi-byte character instead.
        ends_after: The number of events after which the answer breaks off, or None to send all of it.
        ending: How the answer breaks off.
        malformed_at: The number of events that precede an extra event of malformed JSON, or None for no such event.
        bom: True if a byte order mark precedes the body.
        drops: True if the connection is closed without an answer.
        closes: True if the connection is closed after the answer without being announced.
        holds_open: True if a stream stays open after everything has been sent.
        end_delay_s: The delay between the last event and the end of the response, which is then sent in its own packet.
        surplus: A whole unsolicited answer sent after this one, or None.
        surplus_delay_s: The delay before the surplus answer. 0 sends it in the same packet as the end of this one.
    """

    chunks: tuple[Chunk, ...] = ()
    body: bytes | None = None
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    usage: Mapping[str, Any] | None = None
    fill: bool = True
    delay_s: float = 0.0
    pace_s: float = 0.0
    done: bool = True
    comments: bool = False
    newline: bytes = b"\n"
    ignores_stream: bool = False
    cut_every: int = 0
    cut_offsets: tuple[int, ...] = ()
    cuts_characters: bool = False
    ends_after: int | None = None
    ending: Ending = "end"
    malformed_at: int | None = None
    bom: bool = False
    drops: bool = False
    closes: bool = False
    holds_open: bool = False
    end_delay_s: float = 0.0
    surplus: Reply | None = None
    surplus_delay_s: float = 0.0

    # --- delivery ---

    def delayed(self, seconds: float) -> Reply:
        """Delay the status line."""
        return replace(self, delay_s=seconds)

    def paced(self, delay_s: float) -> Reply:
        """Pause between the pieces of the body."""
        return replace(self, pace_s=delay_s)

    def cut(self, n: int = 0, *, at: Sequence[int] = (), inside_characters: bool = False) -> Reply:
        """Split the body into pieces that may cut events, lines or characters, rather than one piece per event.

        Pass one of these arguments:

        Args:
            n: The size of each piece, in bytes.
            at: The offsets of the cuts, in bytes from the start of the body.
            inside_characters: Cut between all bytes of every multi-byte character.
        """
        if n < 1 and not at and not inside_characters:
            raise ValueError(f"a piece must be at least 1 byte long, got {n}")
        return replace(self, cut_every=n, cut_offsets=tuple(at), cuts_characters=inside_characters)

    def ended_apart(self, delay_s: float) -> Reply:
        """Send the end of a stream in its own packet, as many servers do."""
        return replace(self, end_delay_s=delay_s)

    def held_open(self) -> Reply:
        """Never end the response of a stream, even after sending everything including `[DONE]`."""
        return replace(self, holds_open=True)

    def closing(self, *, unanswered: bool = False) -> Reply:
        """Close the connection after the answer without announcing it, as llama.cpp does.

        Args:
            unanswered: Close the connection once the request has arrived, without an answer.
        """
        return replace(self, drops=True) if unanswered else replace(self, closes=True)

    # --- notation ---

    def written(
        self,
        *,
        newline: bytes = b"",
        comments: bool = False,
        bom: bool = False,
        empty_chunks: bool = False,
        as_one_object: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Write the reply in a different way that means the same.

        Args:
            newline: The line ending of the stream: `b"\\r\\n"` as in HTTP, or only a carriage return.
            comments: Put a keep-alive comment before each event.
            bom: Put a byte order mark before the body.
            empty_chunks: Insert events without content: an empty delta, one of nulls, or no choices at all.
            as_one_object: Send one JSON object even if a stream was requested.
            headers: Additional headers to send.
        """
        return replace(
            self,
            newline=newline or self.newline,
            comments=comments or self.comments,
            bom=bom or self.bom,
            chunks=_with_empty_ones(self.chunks) if empty_chunks else self.chunks,
            ignores_stream=as_one_object or self.ignores_stream,
            headers=(*self.headers, *(headers or {}).items()),
        )

    def without(self, part: Literal["usage", "done"]) -> Reply:
        """Omit the usage, even if it is requested, or the `[DONE]` at the end of a stream."""
        return replace(self, usage=None) if part == "usage" else replace(self, done=False)

    # --- faults ---

    def followed_by(self, surplus: Reply, *, delay_s: float = 0.0) -> Reply:
        """Send a surplus answer after this one. Without a delay, it is sent in the same packet as this answer's end."""
        return replace(self, surplus=surplus, surplus_delay_s=delay_s)

    def reset_after(self, n: int) -> Reply:
        """Reset the connection (TCP RST) after n events."""
        return replace(self, ends_after=n, ending="reset")

    def stall_after(self, n: int) -> Reply:
        """Send nothing more after n events, until the client disconnects or the server closes."""
        return replace(self, ends_after=n, ending="stall")

    def broken_after(self, n: int, how: Literal["end", "malformed", "comment", "flood"]) -> Reply:
        """Send n valid events, then fail.

        Args:
            n: The number of valid events.
            how: What follows. `end` ends the response without a finish reason or `[DONE]`. `malformed` sends an event
                of malformed JSON, then the other events. `comment` sends a comment every 10 ms until the client
                disconnects. `flood` sends one endless line until the client disconnects.
        """
        return replace(self, malformed_at=n) if how == "malformed" else replace(self, ends_after=n, ending=how)


# --- as bytes ---


def is_stream(reply: Reply, wanted: bool) -> bool:
    """Return True if a reply is sent as events. `wanted` is True if a stream was requested."""
    return reply.body is None and wanted and not reply.ignores_stream


def is_framed(reply: Reply, wanted: bool) -> bool:
    """Return True if a reply uses chunked transfer encoding instead of a content length."""
    return is_stream(reply, wanted) or _is_recut(reply)


def breaks_off(reply: Reply) -> bool:
    """Return True if the connection fails or falls silent before the response is complete."""
    return reply.ends_after is not None and reply.ending != "end"


def _is_recut(reply: Reply) -> bool:
    return bool(reply.cut_every or reply.cut_offsets or reply.cuts_characters)


def pieces(
    reply: Reply, model: str, *, stream: bool, with_usage: bool = False, writer: Writer | None = None
) -> list[bytes]:
    """Return a reply's body, in the pieces in which it is sent.

    Args:
        reply: The reply.
        model: The model name in each chunk.
        stream: True if a stream was requested.
        with_usage: True if usage was requested in the stream.
        writer: The reply's writer, or None for Chat Completions.
    """
    writer = writer or ChatWriter(reply, model, with_usage=with_usage)
    if is_stream(reply, stream):
        whole = _events(reply, writer)
    elif reply.ends_after == 0:
        whole = []
    else:
        whole = [writer.whole() if reply.body is None else reply.body]
    if reply.bom:
        whole[:1] = [_BOM + b"".join(whole[:1])]
    return _recut(reply, whole)


def _events(reply: Reply, writer: Writer) -> list[bytes]:
    events = [writer.event(chunk) for chunk in reply.chunks[: reply.ends_after]]
    if len(events) != reply.ends_after:  # the answer is complete
        events += filter(None, [writer.last()])
    if reply.malformed_at is not None and reply.malformed_at <= len(events):
        events.insert(reply.malformed_at, writer.malformed)
    if reply.comments:
        events = [piece for event in events for piece in (writer.comment, event)]
    if reply.done and reply.ends_after is None:
        events += filter(None, [writer.done()])
    return [event.replace(b"\n", reply.newline) for event in events]


def _recut(reply: Reply, whole: list[bytes]) -> list[bytes]:
    if not _is_recut(reply):
        return whole
    body = b"".join(whole)
    parts = [body[start:end] for start, end in pairwise([0, *_offsets(reply, body), len(body)])]
    return [part for part in parts if part]


def _offsets(reply: Reply, body: bytes) -> Iterable[int]:
    """Return the offsets at which a reply's body is cut, in order."""
    if reply.cuts_characters:
        return [match.start() for match in _INSIDE_A_CHARACTER.finditer(body)]
    if reply.cut_offsets:
        return sorted({offset for offset in reply.cut_offsets if 0 < offset < len(body)})
    return range(reply.cut_every, len(body), reply.cut_every)


def _with_empty_ones(real: Sequence[Chunk]) -> tuple[Chunk, ...]:
    nothing: tuple[Chunk, ...] = (_delta({}), _delta({"content": None}), _delta({"content": ""}), {"choices": []})
    return tuple(chunk for index, one in enumerate(real) for chunk in (nothing[index % 4], one))


# --- encoding ---


class Writer(ABC):
    """Writes one answer in a protocol's format, either as a stream of events or as one object.

    Write lines that end with a line feed; other line endings are substituted afterwards. Each chunk becomes one piece
    with at least one event, so the n-th piece is the n-th chunk.

    Attributes:
        reply: The reply to write: its `chunks`, its `usage`, and whether to add ids (`fill`).
        model: The model name to use in the answer.
        comment: A comment that keeps the connection alive.
        malformed: An event that cannot be parsed.
    """

    comment: ClassVar[bytes] = b": ping\n\n"
    malformed: ClassVar[bytes] = b'data: {"type": "cut o\n\n'

    def __init__(self, reply: Reply, model: str) -> None:
        self.reply = reply
        self.model = model

    @abstractmethod
    def event(self, chunk: Chunk) -> bytes:
        """Encode a chunk as one piece: a string unchanged, and an object with `error` as the protocol's error."""

    @abstractmethod
    def whole(self) -> bytes:
        """Return the whole answer as one object. `folded` merges the chunks."""

    def last(self) -> bytes:
        """Return the piece that follows the last chunk, such as the usage, or b"" if there is none."""
        return b""

    def done(self) -> bytes:
        """Return the stream's end marker, or b"" if there is none. A reply that is `without("done")` omits it."""
        return b""


class ChatWriter(Writer):
    """Writes answers in the format of Chat Completions."""

    malformed = b'data: {"choices": [{"index": 0, "delta": {"content": "cut o\n\n'

    def __init__(self, reply: Reply, model: str, *, with_usage: bool = True) -> None:
        super().__init__(reply, model)
        self._with_usage = with_usage
        self._shared = _shared(model, "chat.completion.chunk") if reply.fill else {}

    def event(self, chunk: Chunk) -> bytes:
        data = chunk.encode() if isinstance(chunk, str) else wire_json({**self._shared, **chunk})
        return b"data: " + data + b"\n\n"

    def last(self) -> bytes:
        if not self._with_usage or self.reply.usage is None:
            return b""
        return self.event({"choices": [], "usage": self.reply.usage})

    def done(self) -> bytes:
        return b"data: [DONE]\n\n"

    def whole(self) -> bytes:
        message, finish_reason = folded(self.reply.chunks)
        usage = {} if self.reply.usage is None else {"usage": self.reply.usage}
        choice = {"index": 0, "message": message, "finish_reason": finish_reason}
        return wire_json({**_shared(self.model, "chat.completion"), "choices": [choice], **usage})


def _shared(model: str, kind: str) -> dict[str, object]:
    return {"id": RESPONSE_ID, "object": kind, "created": _CREATED, "model": model}


# --- answers ---


def text(
    content: str | Sequence[str],
    *,
    chars: int = DEFAULT_CHARS,
    finish_reason: str | None = "stop",
    usage: Mapping[str, object] | None = DEFAULT_USAGE,
) -> Reply:
    """Return a text answer.

    Args:
        content: The text, or the text of each chunk.
        chars: The number of characters per chunk if `content` is one text. 0 splits surrogate pairs, see `in_halves`.
        finish_reason: The finish reason, or None for a stream that never reports one.
        usage: The usage to report.
    """
    return _answer([{"content": piece} for piece in _split(content, chars)], finish_reason, usage)


def reasoning(
    thought: str | Sequence[str],
    *,
    then: str | Sequence[str] = "",
    field: Literal["reasoning_content", "reasoning"] = "reasoning_content",
    chars: int = DEFAULT_CHARS,
    usage: Mapping[str, object] | None = DEFAULT_USAGE,
) -> Reply:
    """Return an answer with reasoning, followed by text. `field` is the name that the server uses for reasoning."""
    deltas: list[dict[str, object]] = [{field: piece} for piece in _split(thought, chars)]
    deltas += [{"content": piece} for piece in _split(then, chars)]
    return _answer(deltas, "stop", usage)


def in_halves(content: str) -> list[str]:
    """Split a text inside each character that JSON escapes as a surrogate pair, such as an emoji."""
    units = content.encode("utf-16-le")
    return [units[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(units), 2)]


def tool_call(
    name: str,
    arguments: Mapping[str, Any] | str | None,
    *,
    id: str | None = "call_1",  # noqa: A002 - the wire's word
    content: str = "",
    chars: int = DEFAULT_CHARS,
) -> Reply:
    """Return an answer with one tool call; see `tool_calls`."""
    return tool_calls([ToolCall(name, arguments, id=id)], content=content, chars=chars)


@dataclass(frozen=True)
class ToolCall:
    """A tool call in an answer. Arguments that are a string are sent unchanged, and None is sent as null."""

    name: str
    arguments: Mapping[str, Any] | str | None
    id: str | None = None


def tool_calls(
    calls: Sequence[ToolCall],
    *,
    content: str = "",
    chars: int = DEFAULT_CHARS,
    interleaved: bool = False,
    usage: Mapping[str, object] | None = DEFAULT_USAGE,
) -> Reply:
    """Return an answer with tool calls, which may follow some text.

    Args:
        calls: The calls, in the order of their indices.
        content: The text before the calls.
        chars: The number of characters of the arguments per chunk. 0 splits surrogate pairs, see `in_halves`.
        interleaved: True if the calls take turns sending a piece of their arguments, rather than arriving one after the
            other.
        usage: The usage to report.
    """
    each = [_call_deltas(index, call, chars) for index, call in enumerate(calls)]
    ordered = filter(None, chain(*zip_longest(*each))) if interleaved else chain(*each)
    words: list[dict[str, object]] = [{"content": piece} for piece in _split(content, chars)]
    return _answer([*words, *({"tool_calls": [delta]} for delta in ordered)], "tool_calls", usage)


def chunks(events: Sequence[Chunk]) -> Reply:
    """Return a stream of exactly these events and `[DONE]`. Objects are sent as JSON, strings unchanged."""
    return Reply(chunks=tuple(events), fill=False)


def error(
    status: int,
    message: str = "the server says no",
    *,
    code: str | None = None,
    type: str | None = None,  # noqa: A002 - the wire's word
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """Return an error in OpenAI's format."""
    body = {"error": {"message": message, "type": type or "invalid_request_error", "param": None, "code": code}}
    return Reply(body=wire_json(body), status=status, headers=tuple((headers or {}).items()))


def raw(body: bytes, headers: Mapping[str, str] | None = None, *, status: int = 200) -> Reply:
    """Return a reply with these bytes, unchanged. The content type is JSON unless set in `headers`."""
    return Reply(body=body, status=status, headers=tuple((headers or {}).items()))


# --- their parts ---


def _answer(
    deltas: Sequence[Mapping[str, object]], finish_reason: str | None, usage: Mapping[str, object] | None
) -> Reply:
    # The role is part of the first delta, not a separate one, so that the n-th event is the n-th piece.
    named = [{"role": "assistant", **delta} if index == 0 else delta for index, delta in enumerate(deltas)]
    events = [_delta(delta) for delta in named]
    if finish_reason is not None:
        events.append(_delta({}, finish_reason))
    return Reply(chunks=tuple(events), usage=usage)


def _delta(delta: Mapping[str, object], finish_reason: str | None = None) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def _call_deltas(index: int, call: ToolCall, chars: int) -> list[dict[str, object]]:
    begun = None if call.arguments is None else ""
    head: dict[str, Any] = {"index": index, "type": "function", "function": {"name": call.name, "arguments": begun}}
    if call.id is not None:
        head["id"] = call.id
    arguments = "" if call.arguments is None else call.arguments
    whole = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    pieces = _split(whole, chars) if whole else []
    return [head, *({"index": index, "function": {"arguments": piece}} for piece in pieces)]


def _split(content: str | Sequence[str], chars: int) -> list[str]:
    if not isinstance(content, str):
        return list(content)
    if chars == 0:
        return in_halves(content)
    return [content[start : start + chars] for start in range(0, len(content), chars)]


def wire_json(value: object) -> bytes:
    """Encode a value as JSON in UTF-8, or with ASCII escapes if it contains a lone surrogate."""
    # Servers of Chinese models send UTF-8, which is also the only form that can be cut inside a character.
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def folded(events: Sequence[Chunk]) -> tuple[dict[str, Any], str | None]:
    """Return the message that a stream adds up to, and its finish reason."""
    message: dict[str, object] = {"role": "assistant", "content": None}
    calls: dict[int, dict[str, Any]] = {}
    finish_reason = None
    for choice in chain(*(event.get("choices") or () for event in events if not isinstance(event, str))):
        finish_reason = choice.get("finish_reason") or finish_reason
        _add_delta(message, calls, choice.get("delta") or {})
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return message, finish_reason


def _add_delta(message: dict[str, Any], calls: dict[int, dict[str, Any]], delta: Mapping[str, Any]) -> None:
    for key in ("content", "reasoning_content", "reasoning"):
        if delta.get(key):
            message[key] = (message.get(key) or "") + delta[key]
    for part in delta.get("tool_calls") or ():
        _add_call_part(calls, part)


def _add_call_part(calls: dict[int, dict[str, Any]], part: Mapping[str, Any]) -> None:
    index = part.get("index", len(calls))
    call = calls.setdefault(index, {"type": "function", "function": {"name": "", "arguments": None}})
    if part.get("id"):
        call["id"] = part["id"]
    function = part.get("function") or {}
    call["function"]["name"] = function.get("name") or call["function"]["name"]
    if function.get("arguments") is not None:
        call["function"]["arguments"] = (call["function"]["arguments"] or "") + function["arguments"]
