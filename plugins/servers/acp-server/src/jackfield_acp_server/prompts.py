"""Prompts of an editor as messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from acp.schema import (
    AudioContentBlock,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from jackfield.messages import ContentItem, Message
from jackfield.servers import RequestRefusedError

Block: TypeAlias = (
    TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
)


def read_prompt(blocks: Sequence[Block]) -> Message:
    """Return a prompt as a message. A link is its name and address, an embedded file is its address and text.

    Raises:
        RequestRefusedError: It is empty, or embeds a file that is not text.
    """
    items: list[ContentItem] = []
    for block in blocks:
        match block:
            case TextContentBlock():
                items.append(ContentItem(text=block.text))
            case ImageContentBlock():
                items.append(ContentItem(image=f"data:{block.mime_type};base64,{block.data}"))
            case AudioContentBlock():
                items.append(ContentItem(audio=f"data:{block.mime_type};base64,{block.data}"))
            case ResourceContentBlock():
                items.append(ContentItem(text=f"[{block.name}]({block.uri})"))
            case EmbeddedResourceContentBlock(resource=TextResourceContents() as resource):
                items.append(ContentItem(text=f"\n<file address={resource.uri!r}>\n{resource.text}\n</file>\n"))
            case _:
                raise RequestRefusedError(
                    "only text can be embedded: send images and audio as content, others as links"
                )
    texts = [item.text for item in items if item.text is not None]
    if len(texts) < len(items):
        return Message("user", items)
    text = "".join(texts)
    if not text.strip():
        raise RequestRefusedError("the prompt is empty: write a text")
    return Message("user", text)
