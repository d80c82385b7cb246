"""Show messages and results in a notebook: Markdown, and their pictures below it."""

from __future__ import annotations

import base64
import binascii
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jackfield.display._markdown import markdown_of, messages_of
from jackfield.messages import Message, MessageLike
from jackfield.results import RunResult, text_of_answer

_PICTURE = re.compile(r"^data:(image/(?:png|jpeg|gif|webp));base64,")
_MOST_PICTURES = 20


def show(shown: RunResult[object] | MessageLike | Sequence[MessageLike]) -> None:
    """Show a result, a message or several; a terminal, which draws no Markdown, shows the text of the answer."""
    messages = messages_of(shown)
    plain = messages[0].get_text_content() if isinstance(shown, Message) else text_of_answer(messages)
    notebook: Any = sys.modules["IPython"]  # whoever calls this is one
    publish = notebook.get_ipython().display_pub.publish
    publish({"text/markdown": markdown_of(shown), "text/plain": plain})
    for number, (media_type, picture) in enumerate(pictures_in(messages)):
        if number == _MOST_PICTURES:
            note = f"*More than {_MOST_PICTURES} pictures: the rest are in the messages.*"
            publish({"text/markdown": note, "text/plain": note})
            return
        publish({media_type: base64.b64encode(picture).decode(), "text/plain": "<picture>"})


def pictures_in(messages: Iterable[Message]) -> Iterator[tuple[str, bytes]]:
    """The pictures that the messages hold themselves, in order, with their media types.

    Nothing is fetched, and no file is opened.
    """
    for message in messages:
        for item in message.items:
            if isinstance(item.image, str) and (start := _PICTURE.match(item.image)):
                try:
                    yield start[1], base64.b64decode(item.image[start.end() :], validate=True)
                except (binascii.Error, ValueError):
                    continue  # what is not a picture is named in the text
