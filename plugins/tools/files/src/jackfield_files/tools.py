"""The tools: read, write, edit, list and search files of a run's workspace."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from jackfield.errors import ToolArgumentError, ToolServiceError
from jackfield.tools import BaseTool, ToolContext, Workspace
from jackfield_files import folder, search
from jackfield_files.config import FilesConfig
from jackfield_files.diffs import unified_diff
from jackfield_files.edits import Edit, apply_edits
from jackfield_files.globs import matcher
from jackfield_files.plugin import tools
from jackfield_files.reading import Bounds, Part, part_of
from jackfield_files.texts import HEAD_BYTES, check_whole, decode, encode, encoding_of

_SPECS = {spec.name: spec for spec in tools()}


class _FilesTool(BaseTool):
    """The common part of the tools: their settings, and the workspace."""

    config_class = FilesConfig
    config: FilesConfig

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        spec = _SPECS[cls.name]
        cls.description, cls.parameters = spec.description, spec.parameters
        cls.effects, cls.read_only = spec.effects, spec.read_only
        cls.needs_approval, cls.concurrent = spec.needs_approval, spec.concurrent
        cls.idempotent = spec.idempotent

    def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> str:
        """Do the work and report it. It blocks.

        Raises:
            ToolArgumentError: A path or another argument does not fit, or there is no such file.
            ToolServiceError: It cannot be done now.
        """
        return self._done(self.parse_arguments(params), context.workspace if context else Workspace())

    def _done(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        raise NotImplementedError

    def _current_text(self, workspace: Workspace, path: str) -> tuple[str, str]:
        """Return the text of a file, and its encoding.

        Raises:
            ToolArgumentError: It cannot be read, is too large, or is not a text.
        """
        with folder.reading(workspace, path) as (stream, _):
            return self._as_text(stream.read(self.config.max_file_bytes + 1), path)

    def _whole_text(self, target: folder.Target, path: str) -> tuple[str, str]:
        """Return the text of a file that will be changed, and its encoding."""
        return self._as_text(target.read(self.config.max_file_bytes + 1), path)

    def _as_text(self, data: bytes, path: str) -> tuple[str, str]:
        if len(data) > self.config.max_file_bytes:
            raise ToolArgumentError(f"{folder.shown(path)} has more than {self.config.max_file_bytes:,} bytes")
        decoded = decode(data, self.config.encodings)
        if decoded is None:
            raise _binary(path, len(data))
        return decoded

    def _check_size(self, data: bytes) -> None:
        if len(data) > self.config.max_file_bytes:
            raise ToolArgumentError(
                f"a file has at most {self.config.max_file_bytes:,} bytes, and this one would have {len(data):,}"
            )


class ReadFile(_FilesTool):
    """Gives numbered lines of a text file, as many as fit."""

    name = "read_file"

    def _done(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        path, first, last = arguments["path"], arguments.get("start_line", 1), arguments.get("end_line")
        if last is not None and last < first:
            raise ToolArgumentError(f"end_line {last} is before start_line {first}")
        bounds = Bounds(
            scan_chars=self.config.max_scan_bytes,
            lines=self.config.max_lines,
            chars=self.config.max_chars,
            line_chars=self.config.max_line_chars,
            until=time.monotonic() + self.config.time_limit_s,
        )
        with folder.reading(workspace, path) as (stream, size):
            head = stream.peek(HEAD_BYTES)
            encoding = encoding_of(head, self.config.encodings, is_whole=len(head) == size)
            if encoding is None:
                raise _binary(path, size)
            part = part_of(stream, encoding, first=first, last=last, bounds=bounds)
        return _number_lines(part, path, first)


def _number_lines(part: Part, path: str, first: int) -> str:
    shown = [f"{number}\t{line}" for number, line in enumerate(part.lines, start=first)]
    if part.is_given_up:
        shown.append(f"[{folder.shown(path)} is not read any further; its line {part.seen} is somewhere in the middle]")
    elif not part.seen:
        return f"[{folder.shown(path)} is empty]"
    elif not shown:
        raise ToolArgumentError(f"{folder.shown(path)} has {part.seen} lines: start_line is beyond its end")
    elif not part.is_end:
        shown.append(
            f"[lines {first} to {part.seen} of {folder.shown(path)}; it continues at start_line={part.seen + 1}]"
        )
    return "\n".join(shown)


class WriteFile(_FilesTool):
    """Writes a whole text, in UTF-8."""

    name = "write_file"

    def _done(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        path, content = arguments["path"], arguments["content"]
        check_whole(content, "content")
        data = content.encode()
        self._check_size(data)
        with folder.changing(workspace, path, make_folders=True) as target:
            target.put(data)
            verb = "Made" if target.is_new else "Replaced"
        lines = content.count("\n") + (content[-1:] not in ("", "\n"))
        return f"{verb} {folder.shown(path)}: {lines} line{'' if lines == 1 else 's'}, {len(data):,} bytes."

    def preview(self, arguments: Mapping[str, Any], *, workspace: Workspace) -> str:
        """Return the changes as a unified diff; '' if the file cannot be written, or is not a text."""
        path = arguments["path"]
        try:
            is_new = not workspace.resolve(path).exists()
            old = "" if is_new else self._current_text(workspace, path)[0]
        except (ToolServiceError, OSError):
            return ""
        return unified_diff(path, old, arguments["content"])


class EditFile(_FilesTool):
    """Replaces exact texts; the encoding, the line breaks and all other bytes of the file stay as they are."""

    name = "edit_file"

    def _done(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        path, edits = arguments["path"], _edits_in(arguments)
        with folder.changing(workspace, path) as target:
            text, encoding = self._whole_text(target, path)
            changed, done = apply_edits(text, edits, most_chars=self.config.max_file_bytes)
            data = encode(changed, encoding)
            self._check_size(data)
            target.put(data)
        count = sum(one.count for one in done)
        lines = ", ".join(str(line) for one in done for line in one.lines)
        return f"Edited {folder.shown(path)}: {count} replacement{'' if count == 1 else 's'}, at line {lines}."

    def preview(self, arguments: Mapping[str, Any], *, workspace: Workspace) -> str:
        """Return the changes as a unified diff; '' if the edits do not fit the file as it is now."""
        path = arguments["path"]
        try:
            old, _ = self._current_text(workspace, path)
            new, _ = apply_edits(old, _edits_in(arguments), most_chars=self.config.max_file_bytes)
        except (ToolServiceError, OSError):
            return ""
        return unified_diff(path, old, new)


def _edits_in(arguments: Mapping[str, Any]) -> list[Edit]:
    """Return the edits of a call.

    Raises:
        ToolArgumentError: A text has half a character.
    """
    edits = [Edit(one["old_text"], one["new_text"], one.get("replace_all", False)) for one in arguments["edits"]]
    for edit in edits:
        check_whole(edit.old, "old_text")
        check_whole(edit.new, "new_text")
    return edits


class ListFiles(_FilesTool):
    """Lists the contents of a folder, folders with a `/` at the end."""

    name = "list_files"

    def _done(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        path, pattern = arguments["path"], arguments.get("pattern", "")
        if _is_missing(workspace, path):
            return "[the workspace is empty]"
        depth = arguments.get("depth") or _ALL_LEVELS
        nothing = f"[no file fits {pattern!r}]" if pattern else f"[{folder.shown(path)} is empty]"
        return "\n".join(self._lines(workspace, path, pattern, depth)) or nothing

    def _lines(self, workspace: Workspace, path: str, pattern: str, depth: int) -> list[str]:
        fits = matcher(pattern)
        until = time.monotonic() + self.config.time_limit_s
        lines: list[str] = []
        for entry in folder.entries(workspace, path, skipped=self.config.skip, deepest=depth):
            if time.monotonic() > until or len(lines) == self.config.max_entries:
                return [*lines, "[and more: list one of the folders, or give a pattern]"]
            if fits(entry.path) and not (pattern and entry.is_folder):
                lines.append(_describe_entry(entry, path, self.config.skip))
        return lines


_ALL_LEVELS = 1000


def _describe_entry(entry: folder.Entry, path: str, skipped: list[str]) -> str:
    name = folder.shown(_joined(path, entry.path))
    if entry.is_folder:
        return f"{name}/ (not entered)" if entry.path.rpartition("/")[2] in skipped else f"{name}/"
    return f"{name} (a link)" if entry.is_link else f"{name} ({entry.size_bytes:,} bytes)"


class SearchFiles(_FilesTool):
    """Finds lines by a literal text, or by an expression that takes linear time."""

    name = "search_files"

    def _done(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        expression = search.compile_expression(
            arguments["query"],
            is_regex=arguments.get("regex", False),
            ignores_case=arguments.get("ignore_case", False),
        )
        matches = _Matches(self.config)
        for path, stream_is_listed in self._paths(arguments, workspace):
            if matches.is_over():
                break
            data = None
            try:
                data = self._data(workspace, path, matches)
            except ToolArgumentError:
                if not stream_is_listed:  # the one file that was asked for
                    raise
            if data is not None:
                lines = search.lines_with(
                    expression,
                    data,
                    context=arguments.get("context", 0),
                    most=self.config.max_matches - matches.matches,
                )
                matches.add(path, lines)
        return matches.text()

    def _paths(self, arguments: dict[str, Any], workspace: Workspace) -> Iterator[tuple[str, bool]]:
        """Yield the files to search, and True for those from a folder."""
        path, fits = arguments.get("path", "."), matcher(arguments.get("pattern", ""))
        if _is_missing(workspace, path):
            return
        with suppress(FileNotFoundError):
            if workspace.resolve(path).is_file():
                yield path, False
                return
        for entry in folder.entries(workspace, path, skipped=self.config.skip):
            if not entry.is_folder and not entry.is_link and fits(entry.path):
                yield _joined(path, entry.path), True

    def _data(self, workspace: Workspace, path: str, matches: _Matches) -> bytes | None:
        """Return the text of a file in UTF-8 with `\n` line ends; None if it is no text, or too large."""
        with folder.reading(workspace, path) as (stream, size):
            if size > self.config.max_file_bytes:
                matches.too_large += 1
                return None
            data = stream.read(self.config.max_file_bytes)
        matches.scanned += len(data)
        head = data[:HEAD_BYTES]
        encoding = encoding_of(head, self.config.encodings, is_whole=len(head) == len(data))
        if encoding is None:
            return None
        if encoding != "utf-8":
            data = data.decode(encoding, "replace").encode(errors="replace")
        return data.replace(b"\r\n", b"\n") if b"\r" in data else data


class _Matches:
    """The matches of a search, and how many more it may find."""

    def __init__(self, config: FilesConfig) -> None:
        self._config = config
        self._until = time.monotonic() + config.time_limit_s
        self._blocks: list[str] = []
        self._chars = 0
        self.matches = 0
        self.scanned = 0
        self.too_large = 0

    def is_over(self) -> bool:
        """True if the search has ended."""
        return (
            self.matches >= self._config.max_matches
            or self._chars >= self._config.max_chars
            or self.scanned >= self._config.max_scan_bytes
            or time.monotonic() > self._until
        )

    def add(self, path: str, lines: list[search.Line]) -> None:
        """Take the lines of a file."""
        if not lines:
            return
        shown = [folder.shown(path)]
        last, has_context = lines[0].number, not all(line.matches for line in lines)
        for line in lines:
            if self._chars > self._config.max_chars:
                break
            if has_context and line.number > last + 1:
                shown.append("--")
            last = line.number
            shown.append(f"{line.number}{':' if line.matches else '-'} {line.text}")
            self._chars += len(shown[-1])
        self._blocks.append("\n".join(shown))
        self.matches += sum(line.matches for line in lines)

    def text(self) -> str:
        """Return the result for the model."""
        notes = []
        if self.is_over():
            notes.append("[and maybe more: search in one folder, or for something longer]")
        if self.too_large:
            notes.append(f"[{self.too_large} files are too large to be searched]")
        return "\n\n".join([*(self._blocks or ["Nothing was found."]), *notes])


def _binary(path: str, size: int) -> ToolServiceError:
    return ToolArgumentError(f"{folder.shown(path)} is not a text: it has {size:,} bytes of binary data")


def _joined(path: str, name: str) -> str:
    start = path.removeprefix("./").strip("/")
    return name if start in ("", ".") else f"{start}/{name}"


def _is_missing(workspace: Workspace, path: str) -> bool:
    """Return True if the search is for the whole of a workspace that does not exist yet."""
    return path in (".", "./") and not workspace.root.exists()
