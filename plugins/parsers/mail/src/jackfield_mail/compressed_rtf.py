"""Decompress the RTF text of Outlook messages.

Source: [MS-OXRTFCP], sections 2 and 3.
"""

from __future__ import annotations

import struct

_COMPRESSED, _UNCOMPRESSED = b"LZFu", b"MELA"
_WINDOW = 4096
_INITIAL = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript "
    rb"\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    b"\r\n"
    rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)


def decompress(data: bytes) -> bytes:
    """Return the decompressed RTF, which is at most eight times as long as the input.

    Raises:
        ValueError: The data is not compressed RTF.
    """
    if len(data) < 16:
        raise ValueError("too short")
    size_bytes, raw_bytes, kind, _ = struct.unpack_from("<II4sI", data)
    content = data[16 : max(16, size_bytes + 4)]
    if kind == _UNCOMPRESSED:
        return content[:raw_bytes]
    if kind != _COMPRESSED:
        raise ValueError("of another kind")
    return _expand(content)


def _expand(content: bytes) -> bytes:
    """Expand a token stream.

    Each control byte announces eight tokens, which are literal bytes or references into a 4096-byte window.
    """
    window = bytearray(_INITIAL.ljust(_WINDOW, b"\0"))
    write = len(_INITIAL)
    output = bytearray()
    place = 0
    while place < len(content):
        control = content[place]
        place += 1
        for bit in range(8):
            is_reference = control >> bit & 1
            token = content[place : place + 1 + is_reference]
            place += len(token)
            if len(token) < 1 + is_reference:  # cut off
                return bytes(output)
            offset, length = write, 1
            if is_reference:
                offset, length = int.from_bytes(token, "big") >> 4, (token[1] & 15) + 2
                if offset == write:  # the end
                    return bytes(output)
            for step in range(length):
                byte = window[(offset + step) % _WINDOW] if is_reference else token[0]
                window[write] = byte
                write = (write + 1) % _WINDOW
                output.append(byte)
    return bytes(output)
