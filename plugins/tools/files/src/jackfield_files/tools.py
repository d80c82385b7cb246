"""Tools that read, write, edit, list and search files in a run's workspace."""

from __future__ import annotations

import codecs
import stat
import time
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any, cast

from jackfield.errors import ToolArgumentError, ToolServiceError
from jackfield.plurals import format_count
from jackfield.sync import in_worker
from jackfield.tools import BaseTool, Editor, ToolContext, Workspace
from jackfield_files import folder, search
from jackfield_files.config import FilesConfig
from jackfield_files.diffs import unified_diff
from jackfield_files.edits import Edit, Replaced, apply_edits
from jackfield_files.globs import matcher
from jackfield_files.plugin import tools
from jackfield_files.reading import Bounds, Part, part_of
from jackfield_files.texts import HEAD_BYTES, check_whole, decode, encode, encoding_of

_SPECS = {spec.name: spec for spec in tools()}


class _FilesTool(BaseTool):
    """Base class of the file tools. Provides settings, editor integration and decoding."""

    config_class = FilesConfig
    config: FilesConfig

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        spec = _SPECS[cls.name]
        cls.description, cls.parameters = spec.description, spec.parameters
        cls.effects, cls.read_only = spec.effects, spec.read_only
        cls.needs_approval, cls.concurrent = spec.needs_approval, spec.concurrent
        cls.idempotent = spec.idempotent

    def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> str | Awaitable[str]:
        """Run the tool and return its report.

        The call blocks. If the run has an editor that handles the work, an awaitable of the report is returned instead.

        Raises:
            ToolArgumentError: A path or another argument is invalid, or the file does not exist.
            ToolServiceError: The file is currently unavailable.
        """
        arguments = self.parse_arguments(params)
        workspace = context.workspace if context else Workspace()
        editor = context.resources.editor if context else None
        work = None if editor is None else self._done_in_editor(arguments, workspace, editor)
        return self._done(arguments, workspace) if work is None else work

    def _done(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        raise NotImplementedError

    def _done_in_editor(
        self,
        arguments: dict[str, Any],  # noqa: ARG002 - for tools that use the editor
        workspace: Workspace,  # noqa: ARG002 - as above
        editor: Editor,  # noqa: ARG002 - as above
    ) -> Awaitable[str] | None:
        """Return an awaitable that does the work in the editor, or None if the tool does the work itself."""
        return None

    async def _text_in_editor(self, editor: Editor, path: Path) -> str | None:
        """Return a file's text from the editor, or None if the tool must read the file itself."""
        if not await in_worker(_fits, path, self.config.max_file_bytes):
            return None
        try:
            return await editor.read_text(path)
        except ToolServiceError:  # such as files that are not UTF-8 text
            return None

    def _current_text(self, workspace: Workspace, path: str) -> tuple[str, str]:
        """Return a file's text and encoding.

        Raises:
            ToolArgumentError: The file is not readable, too large, or binary.
        """
        with folder.reading(workspace, path) as (stream, _):
            return self._as_text(stream.read(self.config.max_file_bytes + 1), path)

    def _whole_text(self, target: folder.Target, path: str) -> tuple[str, str]:
        """Return the text and encoding of a file that is about to be changed."""
        return self._as_text(target.read(self.config.max_file_bytes + 1), path)

    def _as_text(self, data: bytes, path: str) -> tuple[str, str]:
        if len(data) > self.config.max_file_bytes:
            raise ToolArgumentError(f"{folder.shown(path)} is larger than {self.config.max_file_bytes:,} bytes")
        decoded = decode(data, self.config.encodings)
        if decoded is None:
            raise _binary(path, len(data))
        return decoded

    def _check_size(self, data: bytes) -> None:
        if len(data) > self.config.max_file_bytes:
            raise ToolArgumentError(
                f"the file would be {len(data):,} bytes; the limit is {self.config.max_file_bytes:,}"
            )


class ReadFile(_FilesTool):
    """Returns numbered lines of a text file, as many as the limits allow."""

    name = "read_file"

    def _done(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        with folder.reading(workspace, arguments["path"]) as (stream, size):
            head = stream.peek(HEAD_BYTES)
            encoding = encoding_of(head, self.config.encodings, is_whole=len(head) == size)
            if encoding is None:
                raise _binary(arguments["path"], size)
            return self._lines_of(stream, encoding, arguments)

    def _done_in_editor(self, arguments: dict[str, Any], workspace: Workspace, editor: Editor) -> Awaitable[str] | None:
        return self._read_in_editor(arguments, workspace, editor) if editor.reads else None

    async def _read_in_editor(self, arguments: dict[str, Any], workspace: Workspace, editor: Editor) -> str:
        text = await self._text_in_editor(editor, workspace.resolve(arguments["path"]))
        if text is None:
            return await in_worker(self._done, arguments, workspace)
        stream = BufferedReader(cast(Any, BytesIO(text.encode(errors="replace"))))
        return await in_worker(self._lines_of, stream, "utf-8", arguments)

    def _lines_of(self, stream: BufferedReader, encoding: str, arguments: dict[str, Any]) -> str:
        first, last = arguments.get("start_line", 1), arguments.get("end_line")
        if last is not None and last < first:
            raise ToolArgumentError(f"end_line {last} is before start_line {first}")
        bounds = Bounds(
            scan_chars=self.config.max_scan_bytes,
            lines=self.config.max_lines,
            chars=self.config.max_chars,
            line_chars=self.config.max_line_chars,
            until=time.monotonic() + self.config.time_limit_s,
        )
        return _number_lines(part_of(stream, encoding, first=first, last=last, bounds=bounds), arguments["path"], first)


def _number_lines(part: Part, path: str, first: int) -> str:
    shown = [f"{number}\t{line}" for number, line in enumerate(part.lines, start=first)]
    if part.is_given_up:
        shown.append(f"[reading of {folder.shown(path)} stopped at line {part.seen}, before the end of the file]")
    elif not part.seen:
        return f"[{folder.shown(path)} is empty]"
    elif not shown:
        raise ToolArgumentError(
            f"{folder.shown(path)} has {format_count(part.seen, 'line')}: start_line is past the end of the file"
        )
    elif not part.is_end:
        shown.append(
            f"[lines {first} to {part.seen} of {folder.shown(path)}; continue with start_line={part.seen + 1}]"
        )
    return "\n".join(shown)


class WriteFile(_FilesTool):
    """Writes a whole file in UTF-8."""

    name = "write_file"

    def _done(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        data = self._data_of(arguments)
        with folder.changing(workspace, arguments["path"], make_folders=True) as target:
            target.put(data)
            return _report_written(arguments, data, is_new=target.is_new)

    def _done_in_editor(self, arguments: dict[str, Any], workspace: Workspace, editor: Editor) -> Awaitable[str] | None:
        return self._write_in_editor(arguments, workspace, editor) if editor.writes else None

    async def _write_in_editor(self, arguments: dict[str, Any], workspace: Workspace, editor: Editor) -> str:
        data = self._data_of(arguments)
        check = partial(folder.check_changeable, workspace, arguments["path"], make_folders=True)
        path, is_new = await in_worker(check)
        await editor.write_text(path, arguments["content"])
        return _report_written(arguments, data, is_new=is_new)

    def _data_of(self, arguments: dict[str, Any]) -> bytes:
        content: str = arguments["content"]
        check_whole(content, "content")
        data = content.encode()
        self._check_size(data)
        return data

    def preview(self, arguments: Mapping[str, Any], *, workspace: Workspace) -> str:
        """Return the changes as a unified diff, or '' if the current file cannot be read as text."""
        path = arguments["path"]
        try:
            is_new = not workspace.resolve(path).exists()
            old = "" if is_new else self._current_text(workspace, path)[0]
        except (ToolServiceError, OSError):
            return ""
        return unified_diff(path, old, arguments["content"])


def _report_written(arguments: dict[str, Any], data: bytes, *, is_new: bool) -> str:
    content, verb = arguments["content"], "Made" if is_new else "Replaced"
    lines = content.count("\n") + (content[-1:] not in ("", "\n"))
    size = f"{format_count(lines, 'line')}, {format_count(len(data), 'byte')}"
    return f"{verb} {folder.shown(arguments['path'])}: {size}."


class EditFile(_FilesTool):
    """Replaces exact text in a file. The encoding, line breaks and all other bytes are preserved."""

    name = "edit_file"

    def _done(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        path, edits = arguments["path"], _edits_in(arguments)
        with folder.changing(workspace, path) as target:
            text, encoding = self._whole_text(target, path)
            changed, done = apply_edits(text, edits, most_chars=self.config.max_file_bytes)
            data = encode(changed, encoding)
            self._check_size(data)
            target.put(data)
        return _report_edited(path, done)

    def _done_in_editor(self, arguments: dict[str, Any], workspace: Workspace, editor: Editor) -> Awaitable[str] | None:
        return self._edit_in_editor(arguments, workspace, editor) if editor.reads and editor.writes else None

    async def _edit_in_editor(self, arguments: dict[str, Any], workspace: Workspace, editor: Editor) -> str:
        edits = _edits_in(arguments)
        path, is_new = await in_worker(folder.check_changeable, workspace, arguments["path"])
        # An editor may show a file that was never saved. Editing such a file needs `write_file` first.
        text = None if is_new else await self._text_in_editor(editor, path)
        if text is None:
            return await in_worker(self._done, arguments, workspace)
        changed, done = await in_worker(partial(apply_edits, text, edits, most_chars=self.config.max_file_bytes))
        self._check_size(changed.encode(errors="replace"))
        await editor.write_text(path, changed)
        return _report_edited(arguments["path"], done)

    def preview(self, arguments: Mapping[str, Any], *, workspace: Workspace) -> str:
        """Return the changes as a unified diff, or '' if the edits do not apply to the current file."""
        path = arguments["path"]
        try:
            old, _ = self._current_text(workspace, path)
            new, _ = apply_edits(old, _edits_in(arguments), most_chars=self.config.max_file_bytes)
        except (ToolServiceError, OSError):
            return ""
        return unified_diff(path, old, new)


def _report_edited(path: str, done: list[Replaced]) -> str:
    count = sum(one.count for one in done)
    lines = ", ".join(str(line) for one in done for line in one.lines)
    return f"Edited {folder.shown(path)}: {format_count(count, 'replacement')}, at line {lines}."


def _edits_in(arguments: Mapping[str, Any]) -> list[Edit]:
    """Parse the edits in a call.

    Raises:
        ToolArgumentError: A text contains a lone surrogate.
    """
    edits = [Edit(one["old_text"], one["new_text"], one.get("replace_all", False)) for one in arguments["edits"]]
    for edit in edits:
        check_whole(edit.old, "old_text")
        check_whole(edit.new, "new_text")
    return edits


class ListFiles(_FilesTool):
    """Lists the contents of a folder. Subfolders are marked with a trailing `/`."""

    name = "list_files"

    def _done(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        path, pattern = arguments["path"], arguments.get("pattern", "")
        if _is_missing(workspace, path):
            return "[the workspace is empty]"
        depth = arguments.get("depth") or _ALL_LEVELS
        nothing = f"[no file matches {pattern!r}]" if pattern else f"[{folder.shown(path)} is empty]"
        return "\n".join(self._lines(workspace, path, pattern, depth)) or nothing

    def _lines(self, workspace: Workspace, path: str, pattern: str, depth: int) -> list[str]:
        fits = matcher(pattern)
        until = time.monotonic() + self.config.time_limit_s
        lines: list[str] = []
        for entry in folder.entries(workspace, path, skipped=self.config.skip, deepest=depth):
            if time.monotonic() > until or len(lines) == self.config.max_entries:
                return [*lines, "[more entries omitted: list one of the folders, or pass a pattern]"]
            if fits(entry.path) and not (pattern and entry.is_folder):
                lines.append(_describe_entry(entry, path, self.config.skip))
        return lines


_ALL_LEVELS = 1000


def _describe_entry(entry: folder.Entry, path: str, skipped: list[str]) -> str:
    name = folder.shown(_joined(path, entry.path))
    if entry.is_folder:
        return f"{name}/ (not entered)" if entry.path.rpartition("/")[2] in skipped else f"{name}/"
    return f"{name} (a link)" if entry.is_link else f"{name} ({format_count(entry.size_bytes, 'byte')})"


class SearchFiles(_FilesTool):
    """Finds lines that contain a literal text or match a regular expression, in linear time."""

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
                if not stream_is_listed:  # the single file named in the call
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
        """Yield the paths to search, each with True if it comes from a folder listing."""
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
        """Return a file's text in UTF-8 with LF line breaks and no byte order mark.

        None if the file is binary or too large.
        """
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
        data = data.removeprefix(codecs.BOM_UTF8)
        return data.replace(b"\r\n", b"\n") if b"\r" in data else data


class _Matches:
    """Collects the matches of a search and enforces the limits."""

    def __init__(self, config: FilesConfig) -> None:
        self._config = config
        self._until = time.monotonic() + config.time_limit_s
        self._blocks: list[str] = []
        self._chars = 0
        self.matches = 0
        self.scanned = 0
        self.too_large = 0

    def is_over(self) -> bool:
        """Return True if the search has reached a limit."""
        return (
            self.matches >= self._config.max_matches
            or self._chars >= self._config.max_chars
            or self.scanned >= self._config.max_scan_bytes
            or time.monotonic() > self._until
        )

    def add(self, path: str, lines: list[search.Line]) -> None:
        """Add the lines found in a file."""
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
        """Format the result for the model."""
        notes = []
        if self.is_over():
            notes.append("[there may be more matches: search a single folder, or use a more specific query]")
        if self.too_large:
            notes.append(f"[skipped {format_count(self.too_large, 'file')} too large to search]")
        return "\n\n".join([*(self._blocks or ["Nothing was found."]), *notes])


def _fits(path: Path, most_bytes: int) -> bool:
    """Return True if an editor may read the file: it is regular and not too large, or not on disk yet."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= most_bytes


def _binary(path: str, size: int) -> ToolServiceError:
    return ToolArgumentError(f"{folder.shown(path)} is not a text file: it contains {size:,} bytes of binary data")


def _joined(path: str, name: str) -> str:
    start = path.removeprefix("./").strip("/")
    return name if start in ("", ".") else f"{start}/{name}"


def _is_missing(workspace: Workspace, path: str) -> bool:
    """Return True if the path is the workspace itself and does not exist yet."""
    return path in (".", "./") and not workspace.root.exists()
