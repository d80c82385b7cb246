"""Server-sent events, from bytes as they arrive."""

from __future__ import annotations

SSE_END = b"\n\n"
"""Fed at the end of a stream, it completes the last event: many servers leave out its blank line."""


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
