"""Check that untrusted bytes are an image before they enter a conversation.

Tool servers and model-written code label their own output. An HTML page or a private text labelled `image/png` would
reach a provider as an image, and a few bytes can declare dimensions that exhaust any decoder's memory. Only the bytes
count here: signature, structure and dimensions. Nothing is decompressed.
"""

from __future__ import annotations

import base64
import binascii
import struct

from jackfield.errors import UnsupportedInputError
from jackfield.media import MAX_FILE_BYTES, Media, media_type_of

MAX_PIXELS = 50_000_000
"""The default limit for width times height: 200 MB once decoded."""
MAX_SIDE = 65_535
"""The maximum width or height, which is JPEG's limit."""

_Size = tuple[int, int]
_START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # these three are tables, not frames
_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD8)})
_MAX_SEGMENTS = 10_000  # chunks of a PNG, segments of a JPEG; a photo has fewer than 1,000


def decode_image(encoded: str, *, max_bytes: int = MAX_FILE_BYTES, max_pixels: int = MAX_PIXELS) -> Media:
    """Decode a base64 image and validate it with `check_image`.

    Args:
        encoded: The base64 text, with or without line breaks.
        max_bytes: The maximum decoded size; longer input is rejected before decoding.
        max_pixels: The maximum width times height.

    Raises:
        UnsupportedInputError: The text is not base64, is too long, or is not a valid image.
    """
    if len(encoded) > max_bytes // 3 * 4 + max_bytes // 32 + 8:  # four characters for three bytes, and line breaks
        raise UnsupportedInputError(f"the image is larger than {max_bytes:,} bytes: send a smaller one")
    try:
        content = base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise UnsupportedInputError("the image is not valid base64") from error
    if len(content) > max_bytes:
        raise UnsupportedInputError(f"the image is larger than {max_bytes:,} bytes: send a smaller one")
    return check_image(content, max_pixels=max_pixels)


def check_image(content: bytes, *, max_pixels: int = MAX_PIXELS) -> Media:
    """Return an image with the media type detected from its bytes: PNG, JPEG, GIF or WebP.

    Args:
        content: The complete file. Its label and name are never considered.
        max_pixels: The maximum width times height.

    Raises:
        UnsupportedInputError: The bytes are in another format (including SVG, HTML and text), are truncated before the
            dimensions, or declare dimensions that are zero or too large.
    """
    media_type = media_type_of(content[:16])
    read_size = _READERS.get(media_type)
    if read_size is None:
        raise UnsupportedInputError(f"expected a PNG, JPEG, GIF or WebP image, got {media_type or 'an unknown format'}")
    try:
        width, height = read_size(content)
    except (struct.error, IndexError, ValueError):
        raise UnsupportedInputError(f"the {media_type} image is corrupted: its dimensions cannot be read") from None
    if not (0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE):
        raise UnsupportedInputError(f"the {media_type} image declares impossible dimensions: {width} x {height} pixels")
    if width * height > max_pixels:
        raise UnsupportedInputError(
            f"the {media_type} image has {width} x {height} pixels, but the limit is {max_pixels:,}: send a smaller one"
        )
    return Media(media_type, content)


def _png_size(content: bytes) -> _Size:
    """Read the dimensions from IHDR, and walk the chunks to IEND; a PNG without image data or an end is invalid."""
    length, kind, width, height = struct.unpack_from(">I4sII", content, 8)
    if (length, kind) != (13, b"IHDR"):
        raise ValueError("IHDR is not first")
    position, kinds = 8, set[bytes]()
    for _ in range(_MAX_SEGMENTS):
        length, kind = struct.unpack_from(">I4s", content, position)
        kinds.add(kind)
        position += 12 + length
        if kind == b"IEND":
            break
    if not {b"IDAT", b"IEND"} <= kinds or position > len(content):
        raise ValueError("image data or end marker is missing")
    return width, height


def _jpeg_size(content: bytes) -> _Size:
    """Walk the segments to the frame header, which holds the dimensions."""
    position = 2
    for _ in range(_MAX_SEGMENTS):
        if content[position] != 0xFF:
            raise ValueError("a required marker is missing")
        marker = content[position + 1]
        if marker == 0xFF:  # fill bytes may precede a marker
            position += 1
        elif marker in _WITHOUT_LENGTH:
            position += 2
        elif marker in _START_OF_FRAME:
            height, width = struct.unpack_from(">HH", content, position + 5)
            return width, height
        else:
            (length,) = struct.unpack_from(">H", content, position + 2)
            if length < 2:
                raise ValueError("a segment is shorter than its length")
            position += 2 + length
    raise ValueError("no frame")


def _gif_size(content: bytes) -> _Size:
    width, height, _, _, _ = struct.unpack_from("<HHBBB", content, 6)
    return width, height


def _webp_size(content: bytes) -> _Size:
    match content[12:16]:
        case b"VP8X":
            width, height = _bytes(content, 24, 3), _bytes(content, 27, 3)
            return 1 + int.from_bytes(width, "little"), 1 + int.from_bytes(height, "little")
        case b"VP8L":
            signature, bits = struct.unpack_from("<BI", content, 20)
            if signature != 0x2F:
                raise ValueError("no signature")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            start, across, down = struct.unpack_from("<3sHH", content, 23)
            if start != b"\x9d\x01\x2a":
                raise ValueError("no start code")
            return across & 0x3FFF, down & 0x3FFF
    raise ValueError("no image data")


def _bytes(content: bytes, start: int, count: int) -> bytes:
    part = content[start : start + count]
    if len(part) < count:
        raise ValueError("cut off")
    return part


_READERS = {"image/png": _png_size, "image/jpeg": _jpeg_size, "image/gif": _gif_size, "image/webp": _webp_size}
