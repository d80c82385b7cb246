"""Convert the images, audio and files in requests to content items."""

from __future__ import annotations

import base64
import binascii
import mimetypes

from jackfield.media import split_data_uri, write_data_uri
from jackfield.messages import ContentItem
from jackfield_openai_server.errors import ParameterError, refuse_parameter
from jackfield_serving import is_public_url

_AUDIO_TYPES = {"wav": "audio/wav", "mp3": "audio/mpeg"}


def text_item(text: str) -> ContentItem:
    """Convert a text to a content item."""
    return ContentItem(text=text)


def image_item(url: str, detail: str | None, param: str) -> ContentItem:
    """Convert an image to a content item.

    Raises:
        ParameterError: The image is given neither as a web URL nor inline.
    """
    if detail not in (None, "auto"):
        refuse_parameter(f"{param}.detail", "only 'auto' is supported, because the agent's model chooses the detail")
    return ContentItem(image=_check_url(url, param))


def audio_item(data: str, form: str, param: str) -> ContentItem:
    """Convert audio to a content item.

    Raises:
        ParameterError: The format is unknown, or the data is not base64.
    """
    if form not in _AUDIO_TYPES:
        raise ParameterError(f"{param}.format must be one of {', '.join(_AUDIO_TYPES)}.", param=f"{param}.format")
    return ContentItem(audio=f"data:{_AUDIO_TYPES[form]};base64,{_check_base64(data, param)}")


def file_item(
    param: str, *, data: str | None, name: str | None, file_id: str | None = None, url: str | None = None
) -> ContentItem:
    """Convert a file to a content item.

    Raises:
        ParameterError: The file is given neither as a web URL nor inline.
    """
    if file_id is not None:
        refuse_parameter(f"{param}.file_id", "file uploads are not supported: send file_data")
    if url is not None:
        return ContentItem(file=_check_url(url, f"{param}.file_url"))
    if not data:
        raise ParameterError(f"Missing required parameter: '{param}.file_data'.", param=f"{param}.file_data")
    if data[:5].lower() == "data:":
        content = split_data_uri(data)
        return ContentItem(file=write_data_uri(content[0], content[1], name) if content and name else data)
    kind = mimetypes.guess_type(name or "")[0] or "application/octet-stream"
    return ContentItem(file=write_data_uri(kind, _check_base64(data, param), name or ""))


def _check_url(url: str, param: str) -> str:
    """Refuse everything except web URLs and data: URIs, since a path would name a file on the server."""
    if not is_public_url(url):
        raise ParameterError(f"{param} must be an https:, http: or data: URL.", param=param)
    return url


def _check_base64(data: str, param: str) -> str:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise ParameterError(f"{param} must be valid base64.", param=param) from None
    return data
