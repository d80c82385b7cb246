"""Display messages in a notebook as Markdown, followed by their pictures."""

from __future__ import annotations

import base64
import binascii
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from jackfield.display._markdown import MessageLike

_PICTURE = re.compile(r"^data:(image/(?:png|jpeg|gif|webp));base64,")
_MAX_PICTURES = 20


def show(markdown: str, plain: str, messages: Iterable[MessageLike]) -> None:
    """Display Markdown in the current notebook, followed by the messages' pictures.

    Args:
        markdown: The Markdown.
        plain: Text for terminals, which do not render Markdown.
        messages: The messages whose pictures to show. At most 20 pictures are shown.
    """
    notebook: Any = sys.modules["IPython"]  # only needed in notebooks
    publish = notebook.get_ipython().display_pub.publish
    publish({"text/markdown": markdown, "text/plain": plain})
    for number, (media_type, picture) in enumerate(pictures_in(messages)):
        if number == _MAX_PICTURES:
            note = f"*Only the first {_MAX_PICTURES} images are shown; the rest are in the messages.*"
            publish({"text/markdown": note, "text/plain": note})
            return
        publish({media_type: base64.b64encode(picture).decode(), "text/plain": "<picture>"})


def pictures_in(messages: Iterable[MessageLike]) -> Iterator[tuple[str, bytes]]:
    """Yield the pictures embedded in messages, in order, as (media type, bytes).

    No URLs are fetched and no files are opened.
    """
    for message in messages:
        for item in message.items:
            if isinstance(item.image, str) and (start := _PICTURE.match(item.image)):
                try:
                    yield start[1], base64.b64decode(item.image[start.end() :], validate=True)
                except (binascii.Error, ValueError):
                    continue  # the Markdown names images that cannot be decoded
