"""Convert tool calls to the form of editors: a kind, a title, the files they touch, and their changes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acp.helpers import text_block, tool_content, tool_diff_content
from acp.schema import ContentToolCallContent, FileEditToolCallContent, ToolCallLocation, ToolKind

from jackfield.errors import ToolArgumentError
from jackfield.messages import FunctionCall
from jackfield.tools import Workspace

_KINDS: Mapping[ToolKind, frozenset[str]] = {
    "edit": frozenset({"edit", "write", "patch", "replace", "create", "save"}),
    "delete": frozenset({"delete", "remove"}),
    "move": frozenset({"move", "rename"}),
    "search": frozenset({"search", "grep", "find", "glob", "retrieval"}),
    "execute": frozenset({"shell", "bash", "run", "exec", "execute", "interpreter", "terminal"}),
    "fetch": frozenset({"fetch", "web", "url", "http", "download"}),
    "read": frozenset({"read", "list", "view", "open", "load", "parser"}),
    "think": frozenset({"think"}),
}
_MOST_BYTES = 1 << 20
_MOST_CHARS = 200
Content = ContentToolCallContent | FileEditToolCallContent


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCall:
    """A tool call as an editor shows it.

    Attributes:
        title, kind: A line for people, and the kind of the tool.
        arguments: The arguments; their text if they are not JSON.
        locations: The files that it touches.
        changes: The changes of files that it makes.
    """

    title: str
    kind: ToolKind
    arguments: Any
    locations: Sequence[ToolCallLocation]
    changes: Sequence[Content]


@dataclass(frozen=True, slots=True)
class TextBefore:
    """An editor's text of a file before a call; None if there is no such file."""

    text: str | None


def show_call(call: FunctionCall, workspace: str, *, agent: str = "", before: TextBefore | None = None) -> ShownCall:
    """Return a call as an editor shows it. Changes are read from its arguments, and from the file before the call.

    Args:
        call: The call.
        workspace: The folder below which the tools of the agent work.
        agent: The nested agent that makes the call; ''.
        before: The text of its file; None to read the file.
    """
    try:
        arguments: Any = json.loads(call.arguments)
    except (ValueError, RecursionError):
        arguments = call.arguments
    fields = arguments if isinstance(arguments, dict) else {}
    kind = kind_of(call.name)
    path = _resolve(fields.get("path"), workspace) if kind in ("read", "edit", "delete", "move", "search") else None
    line = fields.get("start_line")
    locations = [] if path is None else [ToolCallLocation(path=str(path), line=line if isinstance(line, int) else None)]
    title = f"{call.name} {_summary_of(fields)}".strip()
    return ShownCall(
        title=f"{agent}: {title}" if agent else title,
        kind=kind,
        arguments=arguments,
        locations=locations,
        changes=_changes_of(fields, path, before) if kind == "edit" and path is not None else [],
    )


def replaced_file(call: FunctionCall, workspace: str) -> Path | None:
    """Return the file that a call replaces as a whole; None for other calls."""
    shown = show_call(call, workspace, before=TextBefore(None))
    has_text = isinstance(shown.arguments, dict) and isinstance(shown.arguments.get("content"), str)
    return Path(shown.locations[0].path) if shown.changes and has_text else None


def kind_of(name: str) -> ToolKind:
    """Return the kind of a tool, by the first known word in its name."""
    for word in re.split(r"[^a-z]+", name.lower()):
        for kind, words in _KINDS.items():
            if word in words:
                return kind
    return "other"


def _summary_of(fields: Mapping[str, Any]) -> str:
    """Return the first argument that is a short line."""
    for value in fields.values():
        if isinstance(value, str) and value.strip():
            line = value.strip().partition("\n")[0]
            return line if len(line) <= _MOST_CHARS else f"{line[:_MOST_CHARS]}…"
    return ""


def _resolve(name: object, workspace: str) -> Path | None:
    if not isinstance(name, str) or not workspace:
        return None
    try:
        return Workspace(workspace).resolve(name)
    except ToolArgumentError:
        return None


def _changes_of(fields: Mapping[str, Any], path: Path, before: TextBefore | None) -> list[Content]:
    """Return the changes that the arguments of `write_file` and `edit_file`, or of tools like them, describe."""
    match fields:
        case {"content": str(content)}:
            old = _read_text(path) if before is None else before.text
            return [tool_diff_content(str(path), content, old)]
        case {"edits": list(edits)}:
            return [
                tool_diff_content(str(path), edit["new_text"], edit["old_text"])
                for edit in edits
                if isinstance(edit, dict)
                and isinstance(edit.get("old_text"), str)
                and isinstance(edit.get("new_text"), str)
            ]
    return []


def _read_text(path: Path) -> str | None:
    """Return the text of a file before a change; None if there is no file, or if it is not a text of moderate size."""
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def text_content(text: str) -> Content:
    """Return a text as content of a tool call."""
    return tool_content(text_block(text))
