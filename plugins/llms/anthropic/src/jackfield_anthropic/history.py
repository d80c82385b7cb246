"""Convert histories to the Messages protocol. The only side effect is reading local images."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jackfield.config import Lang
from jackfield.errors import UnsupportedInputError
from jackfield.media import address_of, media_type_of, notes_of, path_of, pdf_of, stated_name
from jackfield.messages import ASSISTANT, SYSTEM, USER, ContentItem, Message, basename_of
from jackfield_backends.history import Answer, Call, parts_of, text_of
from jackfield_http import Wire

MAX_IMAGE_BYTES = 3_750_000  # in base64, Anthropic's limit of five million
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
THOUGHTS = frozenset({"thinking", "redacted_thinking"})

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ID = re.compile(r"[a-zA-Z0-9_-]{1,200}")
_NOTHING_YET: Mapping[Lang, str] = {"en": "(The user has written nothing yet.)", "zh": "（用户尚未发言。）"}
_CONTINUE: Mapping[Lang, str] = {
    "en": "Continue your answer exactly where it ends, and repeat nothing of it.",
    "zh": "请从你的回答中断处继续，不要重复已有的内容。",
}


def wire_messages(
    messages: Sequence[Message], *, server: str = "", send_reasoning: bool = True, lang: Lang = "en"
) -> list[Wire]:
    """Convert a history to messages with alternating roles that start with the user and contain no empty text.

    Args:
        messages: The history. System messages are omitted.
        server: The server's address. Signed reasoning is sent only to the server that issued it.
        send_reasoning: True to send the signed reasoning of earlier answers.
        lang: The language of any text that is added.
    """
    turns: list[tuple[str, list[Wire]]] = []
    for part in parts_of([message for message in messages if message.role != SYSTEM]):
        if isinstance(part, Message):
            turns.append((USER, blocks_of(part)))
        else:
            turns.append((ASSISTANT, _answer(part, server, send_reasoning=send_reasoning)))
            turns.append((USER, _results(part)))
    wire = _join_turns(turns)
    if not wire or wire[0]["role"] == ASSISTANT:
        wire.insert(0, {"role": USER, "content": _text(_NOTHING_YET[lang])})
    if wire[-1]["role"] == ASSISTANT:  # an answer to continue; servers refuse trailing white space
        block = wire[-1]["content"][-1]
        if block["type"] == "text":
            wire[-1]["content"][-1] = {**block, "text": block["text"].rstrip()}
    return wire


def ask_to_continue(messages: list[Wire], lang: Lang) -> None:
    """Ask the model to continue an answer at the end of the history, for models that do not do so on their own."""
    if messages[-1]["role"] == ASSISTANT:
        messages.append({"role": USER, "content": _text(_CONTINUE[lang])})


def lacks_reasoning(messages: Sequence[Wire]) -> bool:
    """Return True if the last answer called tools without reasoning first.

    Such a history was edited or comes from another model, and servers refuse it while thinking is enabled.
    """
    if len(messages) < 2 or messages[-1]["content"][0]["type"] != "tool_result":
        return False
    return messages[-2]["content"][0]["type"] not in THOUGHTS


def blocks_of(message: Message) -> list[Wire]:
    """Convert a user or system message to content blocks."""
    if isinstance(message.content, str):
        return _text(message.content)
    return [block for item in message.content for block in _item(item)]


def fit_name(name: str) -> str:
    """Replace characters in a tool's name that the protocol forbids, without making two names the same."""
    if _NAME.fullmatch(name):
        return name
    readable = re.sub(r"[^a-zA-Z0-9_-]+", "_", name)[:100].strip("_")
    return f"{readable or 'tool'}_{_digest(name)}"


def _fit_id(call_id: str) -> str:
    return call_id if _ID.fullmatch(call_id) else f"call_{_digest(call_id)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _join_turns(turns: Sequence[tuple[str, list[Wire]]]) -> list[Wire]:
    """Merge consecutive turns of the same role, and omit empty ones."""
    wire: list[Wire] = []
    for role, blocks in turns:
        if wire and wire[-1]["role"] == role:
            wire[-1]["content"] += blocks
        elif blocks:
            wire.append({"role": role, "content": blocks})
    return wire


# --- blocks -----------------------------------------------------------------------------------------------------------


def _item(item: ContentItem) -> list[Wire]:
    if item.text is not None:
        return _text(item.text)
    if item.image:
        return [_image(item.image)]
    document = _document(item.file) if item.file else None
    return [document] if document else _text(notes_of([item])[0])


def _text(text: str) -> list[Wire]:
    return [{"type": "text", "text": text}] if text and not text.isspace() else []


def _image(value: str) -> Wire:
    address = address_of(value, "image", max_bytes=MAX_IMAGE_BYTES)
    if address[:5].lower() != "data:":
        return {"type": "image", "source": {"type": "url", "url": address}}
    head, _, data = address[5:].partition(",")
    # Servers refuse images with a wrong media type, and programs often state a wrong one.
    media_type = _type_of_data(data) or head.partition(";")[0].lower()
    if media_type not in IMAGE_TYPES:
        raise UnsupportedInputError(
            f"Anthropic accepts PNG, JPEG, GIF and WebP images, got {media_type}: convert the image, or remove it"
        )
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def _document(address: str) -> Wire | None:
    """Return a document block for a URL or a PDF, or None for any other file."""
    if path_of(address) is None and address[:5].lower() != "data:":
        return {"type": "document", "source": {"type": "url", "url": address}}
    pdf = pdf_of(address)
    if pdf is None:
        return None
    source = {"type": "base64", "media_type": pdf.media_type, "data": pdf.base64}
    name = stated_name(address) if address[:5].lower() == "data:" else basename_of(address)
    return {"type": "document", "source": source, **({"title": name} if name else {})}


def _type_of_data(data: str) -> str:
    try:
        return media_type_of(base64.b64decode(data[:24]))
    except binascii.Error:
        return ""


def _results(answer: Answer) -> list[Wire]:
    """Return the results of an answer's calls, which must come first, followed by results without a call."""
    results = [_result(call) for call in answer.calls]
    for stray in answer.strays:
        results += [*_text(f"{stray.label}\n{stray.text}"), *_media(stray.media)]
    return results


def _result(call: Call) -> Wire:
    text, images = call.result.text, _media(call.result.media)
    content = [*_text(text), *images] if images else text
    return {"type": "tool_result", "tool_use_id": _fit_id(call.id), "content": content}


def _media(items: Sequence[ContentItem]) -> list[Wire]:
    """Return the media in a tool's result. A note replaces unsupported images, since users do not control them."""
    blocks: list[Wire] = []
    for item in items:
        try:
            blocks += _item(item)
        except UnsupportedInputError as error:
            blocks += _text(f"({item.type} left out: {error})")
    return blocks


# --- answers ----------------------------------------------------------------------------------------------------------


def _answer(answer: Answer, server: str, *, send_reasoning: bool) -> list[Wire]:
    blocks: list[Wire] = []
    for messages, calls in answer.by_origin():
        kept = kept_blocks(messages, calls, server)
        if kept is None:
            blocks += _rendered(messages, calls)
        else:
            blocks += [block for block in kept if _is_sendable(block, send_reasoning=send_reasoning)]
    return blocks


def _is_sendable(block: Wire, *, send_reasoning: bool) -> bool:
    if block["type"] == "text":
        return not block["text"].isspace()
    return send_reasoning or block["type"] not in THOUGHTS


def _rendered(messages: Sequence[Message], calls: Sequence[Call]) -> Iterator[Wire]:
    for message in messages:
        yield from _text(text_of(message.content))
    for call in calls:
        yield _call(call)


def _call(call: Call) -> Wire:
    arguments = json.loads(call.function.arguments)
    return {"type": "tool_use", "id": _fit_id(call.id), "name": fit_name(call.function.name), "input": arguments}


def kept_blocks(messages: Sequence[Message], calls: Sequence[Call], server: str) -> list[Wire] | None:
    """Return an answer's original blocks, or None if it was edited or came from another server.

    Args:
        messages: All remaining messages of the answer, which share one `origin`.
        calls: The answer's calls, as they are sent.
        server: The server's address.
    """
    origin = messages[0].origin
    data = origin.data if origin is not None else None
    if not data or data.get("server") != server:
        return None
    try:
        blocks = [dict(block) for block in data["content"]]
        kept = _visible_part(blocks)
    except (KeyError, TypeError, ValueError):
        return None  # a history edited by hand: send what it shows
    names = [fit_name(call.function.name) for call in calls]
    if kept != ("".join(text_of(message.content) for message in messages), names):
        return None
    own = iter(calls)
    # With ids that are unique in this request, and the arguments now in the history.
    return [_call(next(own)) if block["type"] == "tool_use" else block for block in blocks]


def _visible_part(blocks: Sequence[Mapping[str, Any]]) -> tuple[str, list[str]]:
    """Return what a history shows of these blocks: the text and the names of the calls."""
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    return text, [block["name"] for block in blocks if block["type"] == "tool_use"]
