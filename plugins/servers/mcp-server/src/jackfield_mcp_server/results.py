"""Convert agents' answers to tool results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from mcp_types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)

from jackfield.attachments import decode_uri
from jackfield.errors import UnsupportedInputError
from jackfield.events import RunFailed
from jackfield.messages import ContentItem
from jackfield.results import Source
from jackfield.servers import failure_of
from jackfield_mcp_server.resources import contents_of, replace_surrogates
from jackfield_serving import RunInfo

OUTPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "The answer."},
        "conversation": {
            "type": "string",
            "description": "The ID with which a later call can continue the conversation.",
        },
    },
    "required": ["text", "conversation"],
}
_NAMES = ("message", "conversation")


def refused_arguments(arguments: Mapping[str, Any]) -> list[ContentBlock]:
    """Validate a call's arguments; return the problem, written for the calling model, or [] if they are valid."""
    if unknown := arguments.keys() - set(_NAMES):
        return [_text(f"unknown argument {min(unknown)!r}: send `message`, and optionally `conversation`")]
    if not isinstance(arguments.get("message"), str) or not arguments["message"].strip():
        return [_text("the argument `message` must be a non-empty string")]
    if not isinstance(arguments.get("conversation", ""), str):
        return [_text("the argument `conversation` must be a string")]
    return []


def result_of(
    run: RunInfo, sources: Sequence[Source], notes: Sequence[str], passages: Sequence[ResourceLink] = ()
) -> CallToolResult:
    """Return the text, media and source links of a run that has ended, or its failure."""
    if run.error:
        failure = failure_of(RunFailed(run.error, run.error_kind))
        return CallToolResult(content=[_text(str(failure)), *map(_text, notes)], is_error=True)
    content: list[ContentBlock] = [_text(run.text)] if run.text else []
    content += _media_of(run)
    content += [*_links_of(sources), *passages]
    content += [_text(note) for note in notes]
    if run.stop_reason not in ("finished", "empty_reply"):
        return CallToolResult(content=[*content, _text(f"The run ended early: {run.stop_reason}.")], is_error=True)
    structured = {"text": replace_surrogates(run.text), "conversation": run.run_id}
    return CallToolResult(content=content or [_text("")], structured_content=structured)


def result_of_call(run: RunInfo, sources: Sequence[Source], notes: Sequence[str], *, is_failed: bool) -> CallToolResult:
    """Return the result of a run's only tool call, or the reason there is none."""
    results = [message for message in run.response if message.role == "function"]
    if run.error or not results:
        return result_of(run, sources, notes)
    content: list[ContentBlock] = []
    for item in results[-1].items:
        block = _text(item.text) if item.text is not None else _block_of(item)
        content += [] if block is None else [block]
    content += [*_links_of(sources), *map(_text, notes)]
    return CallToolResult(content=content or [_text("")], is_error=is_failed)


def _media_of(run: RunInfo) -> list[ContentBlock]:
    """Return the images, audio and files in the last message."""
    items = run.response[-1].items if run.response and run.response[-1].role == "assistant" else []
    return [block for block in map(_block_of, items) if block is not None]


def _block_of(item: ContentItem) -> ContentBlock | None:
    value = item.value
    if not isinstance(value, str) or not value.startswith("data:"):
        return None
    head, _, data = value[5:].partition(";base64,")
    media_type = head.partition(";")[0]
    match item.type:
        case "image":
            return ImageContent(data=data, mime_type=media_type)
        case "audio":
            return AudioContent(data=data, mime_type=media_type)
        case "file":
            with suppress(UnsupportedInputError):  # a tool may return anything
                file = decode_uri(value)
                uri = f"attachment:///{quote(file.name, safe='')}"
                media_type = media_type or "application/octet-stream"
                return EmbeddedResource(resource=contents_of(uri, media_type, file.content or b""))
    return None


def _links_of(sources: Sequence[Source]) -> list[ContentBlock]:
    """Return links to web sources; clients could not read the server's files."""
    links = {
        source.location: ResourceLink(uri=source.location, name=replace_surrogates(str(source)))
        for source in sources
        if source.location.startswith(("https://", "http://"))
    }
    return [*links.values()]


def _text(text: str) -> TextContent:
    return TextContent(text=replace_surrogates(text))
