"""Render messages as Markdown: the full answer, collapsed calls, and the names of all other content.

A model's text may contain anything. The Markdown does not load external resources and contains no HTML from the model.
Images become links, because an image address could leak the conversation to a server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^`\n]*)\n(.*?)(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_OPENS = re.compile(r"<(?=[A-Za-z/!?])|!(?=\[)")
_JOINER = "\u2060"  # invisible; stops the next character from starting a tag or an image
_MAX_RESULT_CHARS = 4000  # of a tool's result


class ItemLike(Protocol):
    """The fields of `jackfield.ContentItem` that are displayed."""

    @property
    def type(self) -> str: ...
    @property
    def text(self) -> str | None: ...
    @property
    def image(self) -> str | None: ...
    @property
    def value(self) -> Any: ...


class CallLike(Protocol):
    """The fields of `jackfield.FunctionCall` that are displayed."""

    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> str: ...


class MessageLike(Protocol):
    """The fields of `jackfield.Message` that are displayed."""

    @property
    def role(self) -> str: ...
    @property
    def items(self) -> Sequence[ItemLike]: ...
    @property
    def reasoning_content(self) -> str | Sequence[ItemLike] | None: ...
    @property
    def name(self) -> str | None: ...
    @property
    def function_call(self) -> CallLike | None: ...
    @property
    def function_id(self) -> str | None: ...


def markdown_of(
    messages: Sequence[MessageLike],
    *,
    sources: Iterable[str] = (),
    citations: Iterable[str] = (),
    warnings: Iterable[str] = (),
    waiting: Iterable[str] = (),
    stop_reason: str = "finished",
) -> str:
    """Render messages as Markdown without pictures. Each call and its result are collapsed into one line.

    Args:
        messages: The messages, oldest first.
        sources: Sources to list below the messages, unless there are citations.
        citations: Citations to list below the messages.
        warnings: Unread files, wrong citation marks and other problems to list below the messages.
        waiting: Names of tools whose calls await approval.
        stop_reason: The reason why the run ended, shown unless it is `finished` or calls await approval.
    """
    parts = list(_parts(messages))
    if listed := "\n".join(f"- {_escape(citation)}" for citation in citations):
        parts.append(f"Citations:\n\n{listed}")
    elif listed := "; ".join(_escape(source) for source in sources):
        parts.append(f"Sources: {listed}")
    if listed := "\n".join(f"- {_escape(warning)}" for warning in warnings):
        parts.append(f"Warnings:\n\n{listed}")
    if listed := ", ".join(_code(name) for name in waiting):
        parts.append(f"Waiting for approval: {listed}")
    elif stop_reason != "finished":
        parts.append(f"*The run ended early: {stop_reason.replace('_', ' ')}.*")
    return "\n\n".join(part for part in parts if part)


def _parts(messages: Sequence[MessageLike]) -> Iterator[str]:
    results = {one.function_id: one for one in messages if one.role == "function" and one.function_id}
    call_ids = {message.function_id for message in messages if message.function_call}
    for message in messages:
        if message.role != "function":
            yield from _spoken(message)
            if message.function_call:
                result = results.get(message.function_id) if message.function_id else None
                yield _call_with_result(message.function_call, result)
        elif message.function_id not in call_ids:
            yield _fold(f"Result of {_code(message.name or '')}", _fence(_text(message.items)))


def _spoken(message: MessageLike) -> Iterator[str]:
    """Yield a message's reasoning and text."""
    reasoning = message.reasoning_content
    if reasoning:
        yield _fold("Reasoning", _make_safe(reasoning if isinstance(reasoning, str) else _text(reasoning)))
    text = _make_safe(_text(message.items))
    # A code block must start on its own line; after a name, it would not be code.
    between = "\n\n" if "\n" in text else " "
    yield f"**{message.role}:**{between}{text}" if text and message.role != "assistant" else text


def _call_with_result(call: CallLike, result: MessageLike | None) -> str:
    arguments = _fence(_indented(call.arguments), "json")
    shown_result = _fence(_text(result.items)) if result else "*no result*"
    return _fold(f"Called {_code(call.name)}", f"{arguments}\n\n{shown_result}")


def _text(items: Sequence[ItemLike]) -> str:
    """Return the items' text, with notes in place of all other content."""
    return "\n\n".join(item.text if item.text is not None else _note(item) for item in items)


def _note(item: ItemLike) -> str:
    value = item.value
    if not isinstance(value, str):
        return f"[{item.type}]"
    if value.startswith("data:"):
        return f"[{item.type}, {_size(len(value))}]"
    return f"[{item.type}: {value.rpartition('/')[2][:80]}]"


def _indented(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _fold(summary: str, inside: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{inside}\n\n</details>"


def _fence(text: str, language: str = "text", *, max_chars: int = _MAX_RESULT_CHARS) -> str:
    if len(text) > max_chars:
        text = f"{text[:max_chars]}\n… ({_size(len(text))} in total)"
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _code(name: str) -> str:
    """Format a name as HTML code, because collapsed lines do not support Markdown."""
    return f"<code>{_escape(name)}</code>"


def _make_safe(text: str) -> str:
    """Remove HTML and images from Markdown. Fenced code is left unchanged."""
    parts, done = [], 0
    for fence in _FENCE.finditer(text):
        parts += [
            _make_inert(text[done : fence.start()]),
            _fence(fence[3].rstrip("\n"), fence[2].strip(), max_chars=len(text)),
        ]
        done = fence.end()
    return "\n\n".join(part for part in (*parts, _make_inert(text[done:])) if part)


def _make_inert(text: str) -> str:
    # No line may open a fence that only other renderers see, because everything after it would be live.
    lines = [re.sub("`{3,}|~{3,}", lambda run: "\\" + "\\".join(run[0]), line) for line in text.strip("\n").split("\n")]
    return _OPENS.sub(lambda match: match[0] + _JOINER, "\n".join(lines))


def _escape(text: str) -> str:
    """Return text as one line without HTML or images."""
    line = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return _OPENS.sub(lambda match: match[0] + _JOINER, line)


def _size(chars: int) -> str:
    return f"{chars} characters" if chars < 10_000 else f"{chars / 1000:.0f} thousand characters"
