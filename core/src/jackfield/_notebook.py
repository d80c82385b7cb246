"""What a notebook shows of messages and results: the answer as Markdown, calls folded, images as images.

A model's text may hold anything. Here it loads nothing from elsewhere (an image in it becomes a link, for its address
may carry what was said out of the house) and writes no HTML.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^`\n]*)\n(.*?)(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_OPENS = re.compile(r"<(?=[A-Za-z/!?])|!(?=\[)")
_JOINER = "\u2060"  # it is not seen, and what stands before it is no beginning of a tag or an image any more
_PICTURE = re.compile(r"^data:(image/(?:png|jpeg|gif|webp));base64,")
_MOST_RESULT_CHARS = 4000  # of a tool's result: what stands there is for reading
_MOST_PICTURES = 20
_SHORT = 100  # in characters; less says more than its size


class _Item(Protocol):
    """See `ContentItem`."""

    text: str | None
    image: str | None

    @property
    def type(self) -> str: ...

    @property
    def value(self) -> Any: ...


class _Call(Protocol):
    """See `FunctionCall`."""

    name: str
    arguments: str


class _Message(Protocol):
    """See `Message`, which stands on this module."""

    @property
    def role(self) -> str: ...

    @property
    def name(self) -> str | None: ...

    @property
    def reasoning_content(self) -> Any: ...

    @property
    def function_call(self) -> _Call | None: ...

    @property
    def function_id(self) -> str | None: ...

    @property
    def items(self) -> Sequence[_Item]: ...


def markdown_of(messages: Sequence[_Message]) -> str:
    """Messages as Markdown, without their pictures; a call and its result are folded into one line."""
    return "\n\n".join(part for part in _parts(messages) if part)


def pictures_in(messages: Iterable[_Message]) -> Iterator[tuple[str, bytes]]:
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


def show(markdown: str, messages: Sequence[_Message], *, plain: str) -> None:
    """Show Markdown in a notebook, and the pictures of the messages below it.

    Args:
        markdown: See `markdown_of`.
        messages: Whose pictures.
        plain: What is shown in its place where nothing can draw Markdown, as in a terminal.
    """
    notebook: Any = sys.modules["IPython"]  # whoever calls this is one
    publish = notebook.get_ipython().display_pub.publish
    publish({"text/markdown": markdown, "text/plain": plain})
    for number, (media_type, picture) in enumerate(pictures_in(messages)):
        if number == _MOST_PICTURES:
            note = f"*More than {_MOST_PICTURES} pictures: the rest are in the messages.*"
            publish({"text/markdown": note, "text/plain": note})
            return
        publish({media_type: base64.b64encode(picture).decode(), "text/plain": "<picture>"})


def shortened(value: Any) -> Any:
    """A value for people: data URIs, and the data of media, by their size."""
    match value:
        case str() if value.startswith("data:"):
            return _by_size(value, value.partition(",")[0])
        case dict():
            return {
                key: _by_size(entry, "") if key == "data" and isinstance(entry, str) else shortened(entry)
                for key, entry in value.items()
            }
        case list():
            return [shortened(entry) for entry in value]
    return value


def _by_size(data: str, name: str) -> str:
    return data if len(data) <= _SHORT else f"{name[:60]}… ({_size(len(data))})"


def _parts(messages: Sequence[_Message]) -> Iterator[str]:
    results = {
        message.function_id: message for message in messages if message.role == "function" and message.function_id
    }
    called = {message.function_id for message in messages if message.function_call}
    for message in messages:
        if message.role != "function":
            yield from _said(message)
        elif message.function_id not in called:
            yield _folded(f"Result of {code(message.name or '')}", _fenced(_text(message.items)))
        if message.function_call:
            yield _called(message.function_call, results.get(message.function_id or ""))


def _said(message: _Message) -> Iterator[str]:
    if message.reasoning_content:
        said = message.reasoning_content
        yield _folded("Reasoning", _safe(said if isinstance(said, str) else _text(said)))
    text = _safe(_text(message.items))
    # Code begins a line: it would not be code behind a name.
    between = "\n\n" if "\n" in text else " "
    yield f"**{message.role}:**{between}{text}" if text and message.role != "assistant" else text


def _called(call: _Call, result: _Message | None) -> str:
    inside = [_fenced(_arguments(call.arguments), "json")]
    inside += [_fenced(_text(result.items))] if result else ["*no result*"]
    return _folded(f"Called {code(call.name)}", "\n\n".join(inside))


def _text(items: Sequence[_Item]) -> str:
    """The texts of items, with a note in the place of everything else."""
    return "\n\n".join(item.text if item.text is not None else f"[{item.type}{_named(item)}]" for item in items)


def _named(item: _Item) -> str:
    value = item.value
    if not isinstance(value, str):
        return ""
    return f", {_size(len(value))}" if value.startswith("data:") else f": {value.rpartition('/')[2][:80]}"


def _arguments(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _folded(summary: str, inside: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{inside}\n\n</details>"


def _fenced(text: str, language: str = "text", *, most: int = _MOST_RESULT_CHARS) -> str:
    if len(text) > most:
        text = f"{text[:most]}\n… ({_size(len(text))} in all)"
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def code(name: str) -> str:
    """A name as code, in HTML: the line of a fold takes no Markdown."""
    return f"<code>{escaped(name)}</code>"


def _safe(text: str) -> str:
    """Markdown in which nothing is HTML and no image is loaded; fenced code stands as it is."""
    parts, done = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_inert(text[done : fence.start()]), _fenced(fence[3].rstrip("\n"), fence[2].strip(), most=len(text))]
        done = fence.end()
    return "\n\n".join(part for part in (*parts, _inert(text[done:])) if part)


def _inert(text: str) -> str:
    # No line may open a fence for a reader that sees fences where we see none: all behind it would stand as it is.
    lines = [re.sub("`{3,}|~{3,}", lambda run: "\\" + "\\".join(run[0]), line) for line in text.strip("\n").split("\n")]
    return _OPENS.sub(lambda match: match[0] + _JOINER, "\n".join(lines))


def escaped(text: str) -> str:
    """A text of one line in which nothing is HTML, and no image."""
    line = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return _OPENS.sub(lambda match: match[0] + _JOINER, line)


def _size(chars: int) -> str:
    return f"{chars} characters" if chars < 10_000 else f"{chars / 1000:.0f} thousand characters"
