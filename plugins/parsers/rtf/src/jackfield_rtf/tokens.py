"""Split RTF into tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    rb"\\(?P<word>[A-Za-z]{1,32})(?P<number>-?[0-9]{1,10})? ?"
    rb"|\\'(?P<byte>[0-9A-Fa-f]{2})"
    rb"|\\(?P<symbol>[^A-Za-z])"
    rb"|(?P<brace>[{}])"
    rb"|(?P<end>[\r\n]+)"
    rb"|(?P<text>[^\\{}\r\n]+)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """An RTF token.

    Attributes:
        kind: `word` or `symbol` for a control word or symbol, `open` or `close` for a group, or `text`.
        value: The word or symbol, otherwise ''.
        number: The parameter of a control word, or None.
        data: The bytes of a text.
    """

    kind: str
    value: str = ""
    number: int | None = None
    data: bytes = b""


def tokens_of(data: bytes) -> Iterator[Token]:
    """Yield the tokens of a file, skipping binary data and meaningless line breaks."""
    place = 0
    while match := _TOKEN.match(data, place):
        place = match.end()
        kind = match.lastgroup
        if word := match["word"]:
            number = int(match["number"]) if match["number"] else None
            if word == b"bin":
                place += max(0, number or 0)
            else:
                yield Token("word", word.decode(), number)
        elif kind == "byte":
            yield Token("text", data=bytes.fromhex(match["byte"].decode()))
        elif kind == "symbol":
            yield Token("symbol", match["symbol"].decode("latin-1"))
        elif kind == "brace":
            yield Token("open" if match["brace"] == b"{" else "close")
        elif kind == "text":
            yield Token("text", data=match["text"])
