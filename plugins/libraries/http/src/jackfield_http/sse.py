"""Server-sent events, from bytes as they arrive."""

from __future__ import annotations

import re

SSE_END = b"\n\n"
"""Fed at the end of a stream, it completes the last event: many servers leave out its blank line."""

_DATA_LINE = re.compile(rb"^data:(.*)$", re.MULTILINE)
_STATUS = b":HTTP_STATUS/"


class SSEDecoder:
    """Gives the `data` of each event, however the bytes are cut. Comments and other fields are left out.

    Source: https://html.spec.whatwg.org/multipage/server-sent-events.html, without its lone carriage returns as ends
    of lines, which no server sends.
    """

    def __init__(self) -> None:
        self._cut_line: list[bytes] = []  # pieces: joining them at each feed would be quadratic in a long line
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of the events that this piece completes."""
        if b"\n" not in piece:
            self._cut_line.append(piece)
            return []
        if self._cut_line:
            piece = b"".join([*self._cut_line, piece])
        lines = piece.split(b"\n")
        last = lines.pop()
        self._cut_line = [last] if last else []
        complete: list[bytes] = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:].strip())  # JSON: space around it means nothing, a carriage return neither
            elif line in (b"", b"\r") and self._data:
                complete.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                self._data = []
        return complete


class DataLineDecoder:
    """The same for servers whose events are one line of data each: it needs no blank line between them.

    Some gateways leave that out; where a line is a whole object, its end is the end of the event. DashScope gives the
    status of an event in a comment before it, `:HTTP_STATUS/400`.
    """

    def __init__(self) -> None:
        self._cut_line: list[bytes] = []  # as above
        self._status = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of the lines that this piece completes."""
        end = piece.rfind(b"\n") + 1
        if not end:
            self._cut_line.append(piece)
            return []
        lines = piece[:end]
        if self._cut_line:
            lines = b"".join([*self._cut_line, lines])
        rest = piece[end:]
        self._cut_line = [rest] if rest else []
        self._note_status(lines)
        return [data for found in _DATA_LINE.findall(lines) if (data := found.strip())]

    def end(self) -> list[bytes]:
        """The data of a last line that nothing ended."""
        return self.feed(b"\n")

    @property
    def status(self) -> int | None:
        """The HTTP status that the last event gave itself; None if none did."""
        return int(self._status) if self._status.isdigit() else None

    def _note_status(self, lines: bytes) -> None:
        at = lines.rfind(b"\n" + _STATUS) + 1
        if at or lines.startswith(_STATUS):
            self._status = lines[at + len(_STATUS) : at + len(_STATUS) + 3]
