"""Server-sent events as DashScope sends them, from bytes as they arrive."""

from __future__ import annotations

import re

_DATA = re.compile(rb"^data:(.*)$", re.MULTILINE)
_STATUS = b":HTTP_STATUS/"


class EventReader:
    """Gives the data of each event, however the bytes are cut.

    An event is `id:`, `event:`, a comment `:HTTP_STATUS/200`, and `data:`; only the data and, for errors, the status in
    the comment matter. Some gateways leave out the blank line between two events; as a data line is a whole object
    here, its end is the end of the event.
    """

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # in pieces: joining them at each feed would be quadratic in a long line
        self._status = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """The data that this piece completes."""
        end = piece.rfind(b"\n") + 1
        if not end:
            self._rest.append(piece)
            return []
        lines = piece[:end]
        if self._rest:
            lines = b"".join([*self._rest, lines])
        rest = piece[end:]
        self._rest = [rest] if rest else []
        self._note_status(lines)
        return [data for found in _DATA.findall(lines) if (data := found.strip())]

    def end(self) -> list[bytes]:
        """The data of a last line that nothing ended."""
        return self.feed(b"\n")

    @property
    def status(self) -> int | None:
        """The HTTP status that the last event gave itself."""
        return int(self._status) if self._status.isdigit() else None

    def _note_status(self, lines: bytes) -> None:
        at = lines.rfind(b"\n" + _STATUS) + 1
        if at or lines.startswith(_STATUS):
            self._status = lines[at + len(_STATUS) : at + len(_STATUS) + 3]
