"""Convert images, audio and video for DashScope: URLs stay unchanged, and local files become `data:` URIs.

The SDK would upload local files to the provider's storage. Inline files reach only the configured server.
"""

from __future__ import annotations

from typing import Any

from jackfield.errors import UnsupportedInputError
from jackfield.media import address_of
from jackfield.messages import ContentItem

MAX_FILE_BYTES = 7_500_000  # in base64, DashScope's limit of ten million
REMOTE = ("http", "https", "oss")


def media_part(item: ContentItem) -> dict[str, Any]:
    """Convert an image, audio or video item to a message part.

    Raises:
        UnsupportedInputError: A local file is missing, too large, or of the wrong type.
    """
    kind, value = item.get_type_and_value()
    if isinstance(value, dict):
        return {kind: _inline_audio(value)}
    if isinstance(value, list):
        return {kind: [_address(frame, "image") for frame in value]}
    return {kind: _address(value, kind)}


def _address(value: str, kind: str) -> str:
    return address_of(value, kind, max_bytes=MAX_FILE_BYTES, remote=REMOTE)


def _inline_audio(value: dict[str, Any]) -> str:
    """Return the URI for audio in OpenAI's format, `{"data": …, "format": …}`, where the data may itself be a URI."""
    data = value.get("data") or value.get("url")
    if not isinstance(data, str):
        raise UnsupportedInputError("audio passed as a dict needs 'data' (base64) and 'format', or 'url'")
    if data.startswith(tuple(f"{scheme}:" for scheme in (*REMOTE, "data"))):
        return data
    return f"data:audio/{value.get('format') or 'wav'};base64,{data}"
