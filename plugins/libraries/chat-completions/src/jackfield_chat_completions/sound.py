"""Assemble generated audio from base64 chunks."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable

from jackfield.media import media_type_of

SAMPLES_PER_S = 24_000  # raw sound as servers stream it: 16 bits, one channel
_BYTES_PER_SAMPLE = 2
_TYPES = {"mp3": "audio/mpeg", "opus": "audio/ogg", "flac": "audio/flac", "aac": "audio/aac"}
_CONTAINERS = ("audio/wav", "audio/ogg", "audio/flac")


def sound_uri(pieces: Iterable[str], *, named: str = "") -> str:
    """Return the audio as a `data:` URI.

    Raw samples get a WAV header. Complete files are left unchanged.

    Args:
        pieces: Base64 chunks, split anywhere, each with or without padding.
        named: The requested format, or '' if none was requested.

    Raises:
        ValueError: A chunk is not valid base64.
    """
    content = joined(pieces)
    media_type = _TYPES.get(named) or media_type_of(content[:16])
    # Raw samples may begin with any bytes, so only an unlikely signature is taken for a file's.
    if media_type not in _CONTAINERS and named not in _TYPES and not content.startswith(b"ID3"):
        media_type, content = "audio/wav", _wav_header(len(content)) + content
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def joined(pieces: Iterable[str]) -> bytes:
    """Decode and join base64 chunks. Some servers pad every chunk, others only the last."""
    content = bytearray()
    cut = ""
    for piece in pieces:
        text = cut + piece
        end = len(text) // 4 * 4  # the padding may be cut as well
        content += base64.b64decode(text[:end])
        cut = text[end:]
    return bytes(content + base64.b64decode(cut + "=" * (-len(cut) % 4)))


def _wav_header(size: int) -> bytes:
    rate = SAMPLES_PER_S * _BYTES_PER_SAMPLE
    form = struct.pack("<HHIIHH", 1, 1, SAMPLES_PER_S, rate, _BYTES_PER_SAMPLE, 8 * _BYTES_PER_SAMPLE)
    return (
        b"RIFF"
        + struct.pack("<I", 36 + size)
        + b"WAVEfmt "
        + struct.pack("<I", 16)
        + form
        + b"data"
        + struct.pack("<I", size)
    )
