"""Messages and results as Markdown: the answer as it is, calls folded, everything else named.

A model's text may hold anything. Here it loads nothing from elsewhere (an image in it becomes a link, for its address
may carry what was said out of the house) and writes no HTML.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from jackfield.messages import ContentItem, FunctionCall, Message, MessageLike, as_messages
from jackfield.results import RunResult

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^`\n]*)\n(.*?)(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_OPENS = re.compile(r"<(?=[A-Za-z/!?])|!(?=\[)")
_JOINER = "\u2060"  # it is not seen, and what stands before it is no beginning of a tag or an image any more
_MOST_RESULT_CHARS = 4000  # of a tool's result: what stands there is for reading


def markdown_of(shown: RunResult[object] | MessageLike | Sequence[MessageLike]) -> str:
    """A result, a message or several as Markdown, without their pictures; a call and its result are folded into a line.

    Of a result, the sources too, and why it ended if it did not finish.
    """
    parts = list(_parts(messages_of(shown)))
    if isinstance(shown, RunResult):
        parts += _around(shown)
    return "\n\n".join(part for part in parts if part)


def messages_of(shown: RunResult[object] | MessageLike | Sequence[MessageLike]) -> tuple[Message, ...]:
    """The messages that are shown."""
    return shown.messages if isinstance(shown, RunResult) else as_messages(shown)


def _around(result: RunResult[object]) -> Iterator[str]:
    if result.sources:
        yield "Sources: " + "; ".join(_escaped(str(source)) for source in result.sources)
    if result.waiting:
        yield "Waiting for approval: " + ", ".join(_code(call.name) for call in result.waiting.values())
    elif result.stop_reason != "finished":
        yield f"*The run ended early: {result.stop_reason.replace('_', ' ')}.*"


def _parts(messages: Sequence[Message]) -> Iterator[str]:
    results = _results_in(messages)
    called = {message.function_id for message in messages if message.function_call}
    for message in messages:
        if message.role != "function":
            yield from _of_speaker(message, results)
        elif message.function_id not in called:
            yield _folded(f"Result of {_code(message.name or '')}", _fenced(_text(message.items)))


def _results_in(messages: Sequence[Message]) -> dict[str, Message]:
    """Results by the ids of their calls, of those that have one."""
    results = {message.function_id or "": message for message in messages if message.role == "function"}
    results.pop("", None)
    return results


def _of_speaker(message: Message, results: Mapping[str, Message]) -> Iterator[str]:
    """What somebody said, and the call that goes with it, with its result."""
    yield from _said(message)
    if message.function_call:
        yield _called(message.function_call, results.get(message.function_id or ""))


def _said(message: Message) -> Iterator[str]:
    if message.reasoning_content:
        said = message.reasoning_content
        yield _folded("Reasoning", _safe(said if isinstance(said, str) else _text(said)))
    text = _safe(_text(message.items))
    # Code begins a line: it would not be code behind a name.
    between = "\n\n" if "\n" in text else " "
    yield f"**{message.role}:**{between}{text}" if text and message.role != "assistant" else text


def _called(call: FunctionCall, result: Message | None) -> str:
    inside = [_fenced(_arguments(call.arguments), "json")]
    inside += [_fenced(_text(result.items))] if result else ["*no result*"]
    return _folded(f"Called {_code(call.name)}", "\n\n".join(inside))


def _text(items: Sequence[ContentItem]) -> str:
    """The texts of items, with a note in the place of everything else."""
    return "\n\n".join(item.text if item.text is not None else f"[{item.type}{_named(item)}]" for item in items)


def _named(item: ContentItem) -> str:
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


def _code(name: str) -> str:
    """A name as code, in HTML: the line of a fold takes no Markdown."""
    return f"<code>{_escaped(name)}</code>"


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


def _escaped(text: str) -> str:
    """A text of one line in which nothing is HTML, and no image."""
    line = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return _OPENS.sub(lambda match: match[0] + _JOINER, line)


def _size(chars: int) -> str:
    return f"{chars} characters" if chars < 10_000 else f"{chars / 1000:.0f} thousand characters"
