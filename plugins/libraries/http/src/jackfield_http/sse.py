"""Decode server-sent events incrementally from bytes.

Lines, events and whole streams have a maximum size, and a server may send other data only for a limited time without
completing an event.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

SSE_END = b"\n\n"
"""Fed at the end of a stream to complete the last event, whose blank line many servers omit."""

MAX_EVENT_BYTES = 32_000_000  # several large images in base64
MAX_STREAM_BYTES = 300_000_000  # a hundred thousand tokens with their alternatives
PATIENCE = 10  # without an event, comments may continue for this many times the allowed silence
PATIENCE_S = 120.0 * PATIENCE

_BOM = b"\xef\xbb\xbf"
_DATA_LINE = re.compile(rb"^data:(.*)$", re.MULTILINE)
_STATUS = b":HTTP_STATUS/"


class StreamTooLongError(ValueError):
    """A line, an event or the whole stream is longer than `max_bytes`."""

    def __init__(self, what: str, max_bytes: int) -> None:
        super().__init__(f"{what} of more than {max_bytes:,} bytes")


class NoEventError(ValueError):
    """No event arrived for `patience_s` seconds, only other data such as comments."""

    def __init__(self, patience_s: float) -> None:
        super().__init__(f"no event in {patience_s:g} s")
        self.patience_s = patience_s


class _Lines:
    """Splits a stream into lines, wherever its bytes are cut.

    Args:
        patience_s: The number of seconds for which other data, such as comments, may arrive without an event.
        clock: Returns the time in seconds. Replaced in tests.
    """

    def __init__(self, *, patience_s: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience_s = PATIENCE_S if patience_s is None else patience_s
        self._clock = clock
        self._waits_since: float | None = None
        self._cut_line: list[bytes] = []  # joined once, because joining at each feed takes quadratic time
        self._cut_bytes = 0
        self._bytes = 0
        self._head: bytes | None = b""  # perhaps the beginning of a byte order mark; None once that is decided
        self._after_cr = False

    def _count(self, piece: bytes) -> None:
        self._bytes += len(piece)
        if self._bytes > MAX_STREAM_BYTES:
            raise StreamTooLongError("a stream", MAX_STREAM_BYTES)

    def _lines(self, piece: bytes) -> bytes:
        """Return the lines that a chunk completes, each ending in a line feed."""
        self._count(piece)
        if self._head is not None:
            piece = self._without_bom(piece)
        if self._after_cr or b"\r" in piece:
            piece = self._with_line_feeds(piece)
        end = piece.rfind(b"\n") + 1
        lines, rest = piece[:end], piece[end:]
        if end:
            if self._cut_line:
                lines = b"".join([*self._cut_line, lines])
            self._cut_line = []
            self._cut_bytes = 0
        if rest:
            self._cut_line.append(rest)
            self._cut_bytes += len(rest)
            if self._cut_bytes > MAX_EVENT_BYTES:
                raise StreamTooLongError("a line", MAX_EVENT_BYTES)
        return lines

    def _without_bom(self, piece: bytes) -> bytes:
        head = (self._head or b"") + piece
        if len(head) < len(_BOM) and _BOM.startswith(head):
            self._head = head
            return b""
        self._head = None
        return head.removeprefix(_BOM)

    def _with_line_feeds(self, piece: bytes) -> bytes:
        """Replace each CR or CRLF by a line feed, even if the pair is split across chunks."""
        if not piece:  # the chunk after it may still complete a CRLF
            return piece
        if self._after_cr:
            piece = piece.removeprefix(b"\n")
        self._after_cr = piece.endswith(b"\r")
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _check_patience(self) -> None:
        """Record that a chunk completed no event, and raise an error if that has gone on for too long."""
        now = self._clock()
        if self._waits_since is None:
            self._waits_since = now
        elif now - self._waits_since > self._patience_s:
            raise NoEventError(self._patience_s)


class SSEDecoder(_Lines):
    """Extracts the `data` of each event, wherever the bytes are cut. Comments and other fields are ignored.

    Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
    """

    def __init__(self, *, patience_s: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(patience_s=patience_s, clock=clock)
        self._data: list[bytes] = []
        self._more_bytes = 0  # lines of an event after its first

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the data of the events that this chunk completes.

        Raises:
            StreamTooLongError: A line, an event or the stream is too long.
            NoEventError: No event arrived for `patience_s` seconds.
        """
        if self._is_one_event(piece):
            self._count(piece)
            self._waits_since = None
            return [piece[5:].strip()]
        complete: list[bytes] = []
        lines = self._lines(piece).split(b"\n")
        lines.pop()  # the empty text after the last line feed
        for line in lines:
            if line.startswith(b"data:"):
                if self._data:
                    self._count_more(line)
                self._data.append(line[5:].strip())  # in JSON, surrounding space has no meaning
            elif not line and self._data:
                complete.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                self._data = []
                self._more_bytes = 0
        if complete:
            self._waits_since = None
        else:
            self._check_patience()
        return complete

    def end(self) -> list[bytes]:
        """Return the data of a last event that lacks a blank line after it."""
        return self.feed(SSE_END)

    def _is_one_event(self, piece: bytes) -> bool:
        """Return True if a chunk is exactly one single-line event, as most chunks are."""
        return (
            piece.endswith(b"\n\n")
            and piece.startswith(b"data:")
            and piece.find(b"\n") == len(piece) - 2
            and b"\r" not in piece
            and not (self._cut_line or self._data or self._after_cr or self._head is not None)
        )

    def _count_more(self, line: bytes) -> None:
        self._more_bytes += len(line)
        if self._more_bytes > MAX_EVENT_BYTES:
            raise StreamTooLongError("an event", MAX_EVENT_BYTES)


class DataLineDecoder(_Lines):
    """Extracts the `data` of events that are one line each, with or without blank lines between them.

    Some gateways omit the blank lines. DashScope sends an event's status in a comment before it, `:HTTP_STATUS/400`.
    """

    def __init__(self, *, patience_s: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(patience_s=patience_s, clock=clock)
        self._status = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the data of the lines that this chunk completes.

        Raises:
            StreamTooLongError: A line or the stream is too long.
            NoEventError: No event arrived for `patience_s` seconds.
        """
        lines = self._lines(piece)
        self._note_status(lines)
        complete = [data for line in _DATA_LINE.findall(lines) if (data := line.strip())]
        if complete:
            self._waits_since = None
        else:
            self._check_patience()
        return complete

    def end(self) -> list[bytes]:
        """Return the data of a last line that lacks a line feed."""
        return self.feed(b"\n")

    @property
    def status(self) -> int | None:
        """The HTTP status in the last comment before an event, or None if there was none."""
        return int(self._status) if self._status.isdigit() else None

    def _note_status(self, lines: bytes) -> None:
        at = lines.rfind(b"\n" + _STATUS) + 1
        if at or lines.startswith(_STATUS):
            self._status = lines[at + len(_STATUS) : at + len(_STATUS) + 3]
