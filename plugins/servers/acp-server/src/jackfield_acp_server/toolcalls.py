"""Describe tool calls to editors: their kind, title, files and changes."""

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
    """A tool call as displayed by an editor.

    Attributes:
        title: A one-line description.
        kind: The kind of tool.
        arguments: The parsed arguments, or the original text if it is not JSON.
        locations: The files that the call touches.
        changes: The file changes that the call makes.
    """

    title: str
    kind: ToolKind
    arguments: Any
    locations: Sequence[ToolCallLocation]
    changes: Sequence[Content]


@dataclass(frozen=True, slots=True)
class TextBefore:
    """A file's text before a call, according to the editor; None if the file does not exist."""

    text: str | None


def show_call(call: FunctionCall, workspace: str, *, agent: str = "", before: TextBefore | None = None) -> ShownCall:
    """Describe a call to the editor, including the changes derived from its arguments and the current file.

    Args:
        call: The tool call.
        workspace: The directory in which the agent's tools work.
        agent: The nested agent that makes the call, or ''.
        before: The file's current text. If None, the file is read from disk.
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
    """Return the file that a call overwrites completely, or None if there is none."""
    shown = show_call(call, workspace, before=TextBefore(None))
    has_text = isinstance(shown.arguments, dict) and isinstance(shown.arguments.get("content"), str)
    return Path(shown.locations[0].path) if shown.changes and has_text else None


def kind_of(name: str) -> ToolKind:
    """Return a tool's kind, based on the first known word in its name."""
    for word in re.split(r"[^a-z]+", name.lower()):
        for kind, words in _KINDS.items():
            if word in words:
                return kind
    return "other"


def _summary_of(fields: Mapping[str, Any]) -> str:
    """Return the first line of the first text argument, shortened if necessary."""
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
    """Return the changes described by the arguments of `write_file`, `edit_file` or a similar tool."""
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
    """Read a file before a change; None if it does not exist, is too large, or is not UTF-8 text."""
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def text_content(text: str) -> Content:
    """Wrap a text as tool call content."""
    return tool_content(text_block(text))
