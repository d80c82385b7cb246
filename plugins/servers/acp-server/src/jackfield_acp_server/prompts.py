"""Convert an editor's prompts to messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias
from urllib.parse import unquote

from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from jackfield.media import write_data_uri
from jackfield.messages import ContentItem, Message, basename_of
from jackfield.servers import RequestRefusedError

Block: TypeAlias = (
    TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
)


def read_prompt(blocks: Sequence[Block]) -> Message:
    """Convert a prompt to a message. A link becomes its name and URI, and embedded text is tagged with its URI.

    Raises:
        RequestRefusedError: The prompt is empty.
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
            case EmbeddedResourceContentBlock(resource=BlobResourceContents() as resource):
                name, kind = basename_of(unquote(resource.uri)), resource.mime_type or "application/octet-stream"
                items.append(ContentItem(file=write_data_uri(kind, resource.blob, name)))
    texts = [item.text for item in items if item.text is not None]
    if len(texts) < len(items):
        return Message("user", items)
    text = "".join(texts)
    if not text.strip():
        raise RequestRefusedError("the prompt is empty: enter some text")
    return Message("user", text)
