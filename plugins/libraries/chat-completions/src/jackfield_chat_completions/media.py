"""Encode media for Chat Completions: URLs are sent unchanged, and local files are embedded in the request."""

from __future__ import annotations

from typing import Any

from jackfield.media import address_of, path_of, pdf_of, read_media, stated_name
from jackfield.messages import ContentItem, basename_of

_FORMATS = {"mpeg": "mp3", "mp4": "m4a", "x-wav": "wav", "wave": "wav"}


def media_part(item: ContentItem, *, sound_as_uri: bool = False) -> dict[str, object]:
    """Return the message part for an image, audio or video.

    Raises:
        UnsupportedInputError: A local file is missing, too large, or of another type.
    """
    kind, value = item.get_type_and_value()
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": address_of(value, "image")}}
    if kind == "audio":
        return {"type": "input_audio", "input_audio": _audio(value, sound_as_uri)}
    if isinstance(value, list):
        return {"type": "video", "video": [address_of(frame, "image") for frame in value]}
    return {"type": "video_url", "video_url": {"url": address_of(value, "video")}}


def file_part(address: str) -> dict[str, object] | None:
    """Return the message part for a PDF. None for any other file, and for a URL, which the protocol does not support.

    Raises:
        UnsupportedInputError: A local file is missing or too large.
    """
    pdf = pdf_of(address)
    if pdf is None:
        return None
    name = (stated_name(address) or "file.pdf") if address[:5].lower() == "data:" else basename_of(address)
    return {"type": "file", "file": {"filename": name, "file_data": pdf.data_uri}}


def _audio(value: str | dict[str, Any], as_uri: bool) -> dict[str, object]:
    if isinstance(value, dict):
        return value
    path = path_of(value)
    uri = read_media(path, "audio").data_uri if path is not None else address_of(value, "audio")
    head, comma, data = uri.partition(";base64,")
    if not comma:  # a URL, which some servers take
        return {"data": uri}
    subtype = head.partition("/")[2].partition(";")[0].lower()
    # Without a type, as in DashScope's documentation; the format states it.
    return {"data": f"data:;base64,{data}" if as_uri else data, "format": _FORMATS.get(subtype, subtype)}
