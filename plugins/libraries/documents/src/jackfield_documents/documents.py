"""Read files and URLs with a suitable parser, and cache the documents."""

from __future__ import annotations

import asyncio
import hashlib
import json
import mimetypes
import os
import stat
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from jackfield.errors import DocParserError, PluginError
from jackfield.messages import PART_SEPARATOR, basename_of
from jackfield.plugins import ParserSpec, Plugins, Row, default_host, install_hint, parser_of_extension
from jackfield.retrieval import Document, PageImage, Parser, Part, shown_path
from jackfield.settings import normalise
from jackfield.sync import in_worker
from jackfield_documents.encodings import as_marked_utf8
from jackfield_documents.keep import Kept
from jackfield_documents.parsing import (
    ParseJob,
    ParserLimits,
    ParserUnavailableError,
    StopSignal,
    can_start_processes,
    draw_in_subprocess,
    parse_in_subprocess,
    processes_at_once,
)
from jackfield_documents.parts import MAX_DEPTH, NoParserError, PartBudget, part_names, with_parts
from jackfield_documents.urls import Page, Pages, is_url

MAX_BYTES = 100 * 2**20
_CACHE_CHARS = 50_000_000
_MAX_IN_PROCESS_BYTES = 2**20  # larger files get a process of their own, even if the plugin allows more
_SETTLED_S = 2.0  # the coarsest clock of a file system in use (FAT)
_MAX_NAME_CHARS = 200
_HEAD_BYTES = 4096  # sample for choosing a parser


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading several files: the documents in input order, and an error for each unreadable file."""

    documents: tuple[Document, ...] = ()
    errors: Mapping[str, DocParserError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Identifies a file's content and its parser. Equal fingerprints produce equal documents.

    Attributes:
        content_hash: The SHA-256 of the file's bytes, in hex.
        parser: The parser, its version and its settings.
        of_parts: The parsers for embedded files, if the file's parser extracts any. A document without embedded files
            (`metadata["parts"]`) does not depend on them.
    """

    content_hash: str
    parser: str
    of_parts: str = ""

    @property
    def without_parts(self) -> Fingerprint:
        """The fingerprint of a document without embedded files."""
        return replace(self, of_parts="")

    def of(self, document: Document) -> Fingerprint:
        """Return the fingerprint that a document of this file depends on."""
        return self if document.metadata.get("parts") else self.without_parts


@dataclass(frozen=True, slots=True)
class _Key:
    """A cache key: everything that affects how the bytes are parsed."""

    content_hash: str
    row: Row
    suffix: str
    codec: str = ""  # as named by the server


class DocumentReader:
    """Reads files and URLs, parses them in subprocesses with limits, and caches the documents.

    A parser is chosen by the file's extension, else by its first bytes, else by its media type, and only that parser is
    imported. If several parsers match, `[prefer] "parser.<extension>" = "<distribution>"` in the user's `config.toml`
    decides.

    Args:
        host: The plugin host that provides the parsers. Defaults to the default host.
        max_bytes: The maximum file size.
        parser_cfg: Parser settings by name or `distribution/name`. They override those in the user's `config.toml`
            (`[settings."parser.NAME"]`).
        parser_for: Parser names by file extension, without the dot. Overrides the automatic choice.
        kept_chars: The cache size, in characters of text. Defaults to 50 million.
        limits: The limits for parsing one file.
        fetch_cfg: Settings of `jackfield_fetch.FetchConfig` for fetching URLs.
        check_url: Awaited with each URL before the request, including redirects. Raises a `ToolServiceError` to reject
            the URL.
    """

    def __init__(
        self,
        host: Plugins | None = None,
        *,
        max_bytes: int = MAX_BYTES,
        parser_cfg: Mapping[str, Mapping[str, Any]] | None = None,
        parser_for: Mapping[str, str] | None = None,
        kept_chars: int | None = None,
        limits: ParserLimits | None = None,
        fetch_cfg: Mapping[str, Any] | None = None,
        check_url: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._host = host
        self._max_bytes = max_bytes
        self._limits = limits or ParserLimits()
        self._parser_cfg = dict(parser_cfg or {})
        self._parser_for = dict(parser_for or {})
        self._documents: Kept[_Key, Document] = Kept(_CACHE_CHARS if kept_chars is None else kept_chars, size_of=_chars)
        self._parsers: Kept[Row, Parser] = Kept(100)
        self._seen: dict[str, tuple[tuple[int, ...], _Key]] = {}
        self._pages = Pages(fetch_cfg, max_bytes, check_url)

    async def read(self, path: str | os.PathLike[str]) -> Document:
        """Read a file or URL. The document's `source` is the path or URL as given.

        Raises:
            DocParserError: The file cannot be read. The message may reach a model, so only the path's last component is
                named.
        """
        name = os.fsdecode(path)
        page = await self._pages.get(name) if is_url(name) else None
        stop = StopSignal()
        try:
            if page is not None:
                return await in_worker(self._read_page, name, page, stop)
            return await in_worker(self._read, name, stop)
        except asyncio.CancelledError:
            stop.set()
            raise

    async def read_bytes(self, data: bytes, *, name: str) -> Document:
        """Read an in-memory file. The document's `source` is the given name, which also helps to choose the parser.

        Raises:
            DocParserError: The file cannot be read.
        """
        stop = StopSignal()
        try:
            return await in_worker(self._read_bytes, data, name, stop)
        except asyncio.CancelledError:
            stop.set()
            raise

    async def draw_page(
        self, path: str | os.PathLike[str], *, page: int, passage: str = "", part: str = ""
    ) -> PageImage:
        """Render the page that shows a passage, in a subprocess with limits.

        Args:
            path: The file; URLs are not supported.
            page: The page on which the passage begins, from 1.
            passage: The text to find on this page or the following ones.
            part: The embedded file that has the page, named as in `Chunk.part`: `scans.zip › a.pdf`.

        Raises:
            DocParserError: The file cannot be read, has no such page or part, or its parser cannot render pages.
        """
        stop = StopSignal()
        try:
            return await in_worker(self._draw_page, os.fsdecode(path), part, (page, passage), stop)
        except asyncio.CancelledError:
            stop.set()
            raise

    async def pictures(self, path: str | os.PathLike[str], *, most: int) -> tuple[Part, ...]:
        """Return a file's pictures in order, with their pages if the format has pages.

        Raises:
            DocParserError: The file cannot be read.
        """
        name = os.fsdecode(path)
        page = await self._pages.get(name) if is_url(name) else None
        stop = StopSignal()
        try:
            return await in_worker(self._read_pictures, name, page, most, stop)
        except asyncio.CancelledError:
            stop.set()
            raise

    async def read_all(
        self,
        paths: Iterable[str | os.PathLike[str]],
        *,
        at_once: int | None = None,
        on_progress: Callable[[int, int, str], object] | None = None,
    ) -> Reading:
        """Read several files in parallel, each once. An unreadable file does not stop the others.

        After cancellation, no further file is started, and the parsing subprocesses are ended.

        Args:
            paths: The files.
            at_once: The number of files to read in parallel. Defaults to enough to keep every core busy.
            on_progress: Called in this task with the number of finished files, the total number of files, and the name
                of the file that begins or has ended.
        """
        names = list(dict.fromkeys(os.fsdecode(path) for path in paths))
        # Two more than the number of processes, so that the next files are already in memory.
        slots = asyncio.Semaphore(processes_at_once() + 2 if at_once is None else at_once)

        finished = 0

        def report(name: str) -> None:
            if on_progress is not None:
                on_progress(finished, len(names), _name(name))

        async def attempt(name: str) -> Document | DocParserError:
            nonlocal finished
            async with slots:
                report(name)
                try:
                    return await self.read(name)
                except DocParserError as error:
                    return error
                finally:
                    finished += 1
                    report(name)

        results = await asyncio.gather(*(attempt(name) for name in names))
        return Reading(
            tuple(result for result in results if isinstance(result, Document)),
            {name: result for name, result in zip(names, results, strict=True) if isinstance(result, DocParserError)},
        )

    async def fingerprint(self, path: str | os.PathLike[str]) -> Fingerprint:
        """Return a file's fingerprint. The file is read but not parsed.

        Raises:
            DocParserError: The file cannot be opened, or no parser supports it.
        """
        name = os.fsdecode(path)
        if is_url(name):
            key = await in_worker(self._key_of_page, await self._pages.get(name))
        else:
            key, _ = await in_worker(self._identify, name)
        # Fingerprints are stored in files, and settings may contain a password.
        settings = hashlib.sha256(json.dumps(self._cfg_of(key.row), default=_encode_setting).encode()).hexdigest()
        spec = self._plugins.spec_of(key.row, ParserSpec)
        parser = [key.row.address, key.row.version, self._environment_of(key.row, spec), key.suffix, settings]
        if key.codec:
            parser.append(key.codec)
        of_parts = self._parsers_of(spec.part_extensions) if spec.part_extensions else self.parsers()
        return Fingerprint(key.content_hash, json.dumps(parser), of_parts if spec.has_parts else "")

    def parsers(self) -> str:
        """Return a hash of the installed parsers, their dependencies, preferences and settings.

        With equal hashes, files are parsed in the same way.
        """
        specs = self._plugins.specs("parser", ParserSpec)
        rows = sorted((row.address, row.version, self._environment_of(row, spec)) for row, spec in specs)
        cfgs = {row.address: self._cfg_of(row) for row, _ in specs}
        prefer = sorted(self._plugins.settings.prefer.items())
        text = json.dumps((rows, prefer, cfgs, self._parser_for), sort_keys=True, default=_encode_setting)
        return hashlib.sha256(text.encode()).hexdigest()

    def _parsers_of(self, extensions: tuple[str, ...]) -> str:
        """Return a hash of the parsers for these extensions and their settings, or '' if there are none."""
        specs = self._plugins.specs("parser", ParserSpec)
        parsers = [
            (row.address, row.version, self._environment_of(row, spec), self._cfg_of(row))
            for row, spec in specs
            if not set(extensions).isdisjoint(spec.extensions)
        ]
        text = json.dumps(parsers, default=_encode_setting)
        return hashlib.sha256(text.encode()).hexdigest() if parsers else ""

    def _environment_of(self, row: Row, spec: ParserSpec) -> str:
        if not spec.environment:
            return ""
        return str(self._plugins.load_target(row, spec.environment)(self._cfg_of(row) or {}))

    def _read(self, path: str, stop: StopSignal) -> Document:
        key, data = self._identify(path)
        document = self._documents.get(key, lambda: self._parse(path, key, data, stop))
        return replace(document, source=path)

    def _read_bytes(self, data: bytes, name: str, stop: StopSignal) -> Document:
        row = self._row_for(name, data)
        key = _Key(hashlib.sha256(data).hexdigest(), row, self._kind(row, name))
        document = self._documents.get(key, lambda: self._parse(name, key, data, stop))
        return replace(document, source=name)

    def _draw_page(self, path: str, part: str, draw: tuple[int, str], stop: StopSignal) -> PageImage:
        path, data = self._open_part(path, part, stop)
        name, row = _name(path), self._row_for(path, data)
        spec = self._plugins.spec_of(row, ParserSpec)
        if not spec.draws_pages or not can_start_processes():
            raise DocParserError(f"{name} has no pages that can be rendered")
        job = ParseJob(_describe(row), spec.target, self._cfg_of(row), spec.secrets, name, draw=draw)
        try:
            return draw_in_subprocess(job, data, self._limits, stop)
        except ParserUnavailableError as error:
            raise DocParserError(f"{name} cannot be rendered: parser {_describe(row)} failed ({error})") from error

    def _open_part(self, path: str, part: str, stop: StopSignal) -> tuple[str, bytes]:
        """Return the name and bytes of an embedded file, or of the file itself if `part` is ''."""
        data = _read_bytes(path, self._max_bytes)
        names = part.split(PART_SEPARATOR) if part else []
        for depth, name in enumerate(names):
            inside = self._files_in(path, data, stop) if depth < MAX_DEPTH else {}
            if name not in inside:
                raise DocParserError(f"{_name(path)} contains no file {shown_path(name)}")
            path, data = inside[name].name, inside[name].data
        return path, data

    def _files_in(self, path: str, data: bytes, stop: StopSignal) -> dict[str, Part]:
        row = self._row_for(path, data)
        key = _Key(hashlib.sha256(data).hexdigest(), row, self._kind(row, path))
        document = self._parse_one(key, self._plugins.spec_of(row, ParserSpec), data, _name(path), stop)
        files = [one for one in _named_parts(document, _name(path)) if one.page is None]
        return dict(zip(part_names(files), files, strict=True))

    def _read_page(self, url: str, page: Page, stop: StopSignal) -> Document:
        key = self._key_of_page(page)
        document = self._documents.get(key, lambda: self._parse(page.name, key, page.data, stop))
        return replace(document, source=url)

    def _read_pictures(self, path: str, page: Page | None, most: int, stop: StopSignal) -> tuple[Part, ...]:
        name, data = (_name(path), _read_bytes(path, self._max_bytes)) if page is None else (page.name, page.data)
        row = self._row_for(name, data)
        target = self._plugins.spec_of(row, ParserSpec).pictures
        if not target or not can_start_processes():
            return ()
        settings = {**(self._cfg_of(row) or {}), "max_pictures": most}
        try:
            job = ParseJob(_describe(row), target, settings, (), name)
            return parse_in_subprocess(job, data, self._limits, stop).parts[:most]
        except ParserUnavailableError as error:
            raise DocParserError(f"{name} cannot be read: its images cannot be loaded ({error})") from error

    def _key_of_page(self, page: Page) -> _Key:
        head = page.data[:_HEAD_BYTES]
        row = self._row_for(page.name, as_marked_utf8(head, page.codec) if page.codec else head)
        return _Key(hashlib.sha256(page.data).hexdigest(), row, self._kind(row, page.name), page.codec)

    def _identify(self, path: str) -> tuple[_Key, bytes | None]:
        """Return a file's cache key, and its bytes if they had to be read."""
        signature = file_signature(path)
        seen = self._seen.get(path)
        data: bytes | None = None
        if seen and seen[0] == signature:
            key = seen[1]
        else:
            data = _read_bytes(path, self._max_bytes)
            row = self._row_for(path, data)
            key = _Key(hashlib.sha256(data).hexdigest(), row, self._kind(row, path))
            if is_settled(signature):
                self._seen[path] = (signature, key)
        return key, data

    def _parse(self, path: str, key: _Key, data: bytes | None, stop: StopSignal) -> Document:
        name = _name(path)
        if data is None:
            data = _read_bytes(path, self._max_bytes)
            if hashlib.sha256(data).hexdigest() != key.content_hash:
                raise DocParserError(f"{name} changed while it was being read: try again")
        return self._parse_with_parts(key, data, name, stop, None)

    def _parse_with_parts(
        self, key: _Key, data: bytes, name: str, stop: StopSignal, budget: PartBudget | None
    ) -> Document:
        """Parse a file and its embedded files, with one shared budget and no cache: a file may contain itself."""
        spec = self._plugins.spec_of(key.row, ParserSpec)
        document = self._parse_one(key, spec, data, name, stop)
        if not spec.has_parts or not document.parts:
            return replace(document, content_hash=key.content_hash, parts=())
        parts = _named_parts(document, name)
        metadata = {**document.metadata, "parts": len(parts)}
        inner = budget.deeper() if budget else PartBudget(wall_s=self._limits.for_file(len(data)).wall_s)

        def read(part: Part) -> Document:
            is_page = part.page is not None
            if is_page and not self._has_parser_of(_suffix(part.name)):  # its first bytes lead back to this parser
                raise NoParserError(self._explain_missing_parser(part.name, self._plugins.specs("parser", ParserSpec)))
            row = self._row_for(part.name, part.data)
            key = _Key(hashlib.sha256(part.data).hexdigest(), row, self._kind(row, part.name))
            inner_name = name if is_page else _name(part.name)  # errors name the file that has the page
            return self._parse_with_parts(key, part.data, inner_name, stop, inner)

        complete = with_parts(replace(document, parts=parts, metadata=metadata), read, inner)
        return replace(complete, content_hash=key.content_hash)

    def _parse_one(self, key: _Key, spec: ParserSpec, data: bytes, name: str, stop: StopSignal) -> Document:
        try:
            if len(data) <= min(spec.in_process_bytes, _MAX_IN_PROCESS_BYTES) or not can_start_processes():
                return self._parse_here(key, data, name)
            return self._parse_in_subprocess(key, spec, data, name, stop)
        except PluginError as error:
            raise DocParserError(f"{name} cannot be read: {error}") from error

    def _parse_here(self, key: _Key, data: bytes, name: str) -> Document:
        row = key.row
        if key.codec:
            data = as_marked_utf8(data, key.codec)
        parser = self._parsers.get(row, lambda: self._parser(row))
        try:
            return parser.parse(data, source=name)
        except DocParserError:
            raise
        except Exception as error:
            # A third-party library may raise anything on a damaged file; the other files must still be read.
            raise DocParserError(
                f"{name} cannot be read: parser {_describe(row)} failed ({type(error).__name__})"
            ) from error

    def _parse_in_subprocess(self, key: _Key, spec: ParserSpec, data: bytes, name: str, stop: StopSignal) -> Document:
        row = key.row
        job = ParseJob(_describe(row), spec.target, self._cfg_of(row), spec.secrets, name, key.codec)
        try:
            return parse_in_subprocess(job, data, self._limits, stop)
        except ParserUnavailableError as error:
            self._parser(row)  # raises the actual error, unless the parser only fails in a subprocess
            raise DocParserError(
                f"{name} cannot be read: parser {_describe(row)} loads in this process but not in a subprocess "
                f"({error}). Its settings must be JSON-serializable, and its module importable from sys.path"
            ) from error

    def _parser(self, row: Row) -> Parser:
        parser = self._plugins.load_row(row)(self._cfg_of(row))
        if not isinstance(parser, Parser):
            raise PluginError(
                f"{row.distribution}: parser {row.name!r} is not a subclass of jackfield.retrieval.Parser"
            )
        return parser

    def _cfg_of(self, row: Row) -> Mapping[str, Any] | None:
        """Return a parser's settings: the user's `config.toml`, overridden by this reader's own."""
        own = self._parser_cfg.get(row.address, self._parser_cfg.get(row.name)) or {}
        return {**self._plugins.settings.options_of("parser", row.address), **own} or None

    @property
    def _plugins(self) -> Plugins:
        return default_host() if self._host is None else self._host

    def _kind(self, row: Row, path: str) -> str:
        """Return a file's kind, judged by name: its extension, or the whole name for a compressed file."""
        spec = self._plugins.spec_of(row, ParserSpec)
        return _name(path) if spec.has_parts and not spec.part_extensions else _suffix(path)

    # --- choosing a parser ---

    def _has_parser_of(self, suffix: str) -> bool:
        specs = self._plugins.specs("parser", ParserSpec)
        return suffix in self._parser_for or any(suffix in spec.extensions for _, spec in specs)

    def _row_for(self, path: str, data: bytes) -> Row:
        specs = self._plugins.specs("parser", ParserSpec)
        suffix = _suffix(path)
        if suffix in self._parser_for:
            return self._plugins.find("parser", self._parser_for[suffix])
        by_extension = [row for row, spec in specs if suffix and suffix in spec.extensions]
        candidates = by_extension or _by_magic(specs, data) or _by_media_type(specs, path, data)
        if not candidates:
            raise NoParserError(self._explain_missing_parser(path, specs))
        if len(candidates) > 1:
            preferred = normalise(self._plugins.settings.prefer.get(f"parser.{suffix}", ""))
            candidates = [row for row in candidates if row.distribution == preferred] or candidates
        if len(candidates) > 1:
            raise DocParserError(
                f"{_name(path)} can be read by {' and by '.join(repr(row.address) for row in candidates)}: choose "
                f'one in your config.toml, for example [prefer] "parser.{suffix}" = "{candidates[0].distribution}"'
            )
        return candidates[0]

    def _explain_missing_parser(self, path: str, specs: list[tuple[Row, ParserSpec]]) -> str:
        suffix = _suffix(path)
        readable = ", ".join(sorted({extension for _, spec in specs for extension in spec.extensions})) or "nothing"
        install = install_hint("parser", parser_of_extension(suffix) or "")
        kind = f"'.{suffix}' files" if suffix else "files of this type"
        return (
            f"{_name(path)} cannot be read: no parser for {kind} is installed; "
            f"installed parsers read: {readable}{self._list_unavailable(specs)}{install}"
        )

    def _list_unavailable(self, specs: list[tuple[Row, ParserSpec]]) -> str:
        """Describe the installed parsers that are broken or disabled, with reasons."""
        policy = self._plugins.policy
        described, left_out = {row for row, _ in specs}, policy.left_out("parser")
        broken = [row.address for row in policy.rows("parser") if row not in described and row not in left_out]
        text = f"; {', '.join(broken)} cannot be loaded (see: jackfield plugins doctor)" if broken else ""
        return text + "".join(f"; {row.address} {reason}" for row, reason in left_out.items())


def _named_parts(document: Document, name: str) -> tuple[Part, ...]:
    """Return a document's parts. A part without a name, as in `a.txt.gz`, is named after its container: `a.txt`."""
    return tuple(part if part.name else replace(part, name=Path(name).stem) for part in document.parts)


def _encode_setting(value: object) -> str:
    """Encode a setting that JSON cannot represent. Secrets are replaced by their hash."""
    if isinstance(value, SecretStr):
        return hashlib.sha256(value.get_secret_value().encode()).hexdigest()
    return repr(value)


def _describe(row: Row) -> str:
    return f"{row.name!r} of {row.distribution}"


def _by_magic(specs: Iterable[tuple[Row, ParserSpec]], data: bytes) -> list[Row]:
    """Return the parsers with the longest magic number that matches the file."""
    by_length: defaultdict[int, dict[Row, None]] = defaultdict(dict)
    for row, spec in specs:
        for magic in spec.magic:
            if magic and data.startswith(magic):
                by_length[len(magic)][row] = None
    return list(by_length[max(by_length, default=0)])


def _by_media_type(specs: Iterable[tuple[Row, ParserSpec]], path: str, data: bytes) -> list[Row]:
    guess = mimetypes.guess_type(path)[0] or ""
    exact = [row for row, spec in specs if guess in spec.media_types]
    # README, Makefile, a script in some language: parsers of plain text read any text.
    may_be_text = not guess or guess.startswith("text/")
    if exact or not (may_be_text and _is_text(data[:_HEAD_BYTES])):
        return exact
    return [row for row, spec in specs if "text/plain" in spec.media_types]


def _is_text(head: bytes) -> bool:
    if b"\0" in head:
        return False
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(head) - 3  # a character cut in two by the end of the sample
    return True


# --- files ---


def file_signature(path: str) -> tuple[int, ...]:
    """Return a file's times, size and inode, which change whenever its content does; see `is_settled`.

    Raises:
        DocParserError: The path does not exist, or is not a regular file.
    """
    name = _name(path)
    try:
        status = os.stat(path)  # noqa: PTH116 - a name with NUL is a ValueError here, and a path object hides it
    except FileNotFoundError:
        raise DocParserError(f"{name} does not exist: check the name") from None
    except (OSError, ValueError) as error:
        raise DocParserError(f"{name} cannot be opened: {_reason(error)}") from error
    _check_regular_file(status, name)
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev)


def _check_regular_file(status: os.stat_result, name: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise DocParserError(f"{name} is a folder: specify the files in it")
    if not stat.S_ISREG(status.st_mode):
        raise DocParserError(f"{name} is not a regular file: copy its content into a regular file")


def is_settled(signature: tuple[int, ...]) -> bool:
    """Return True if the last change is old enough for another change to alter the file's times.

    Two changes within one tick of the file system's clock leave the same times.
    """
    return time.time_ns() - max(signature[:2]) > _SETTLED_S * 1e9


def _read_bytes(path: str, max_bytes: int) -> bytes:
    name = _name(path)
    try:
        with open(path, "rb", opener=_open_without_blocking) as file:
            status = os.fstat(file.fileno())
            _check_regular_file(status, name)  # the file may have been replaced since `file_signature`
            # The size is wrong for some files, as in /proc, where a read also returns None if there is no data yet.
            data = b"" if status.st_size > max_bytes else file.read(max_bytes + 1) or b""
    except (OSError, ValueError) as error:
        raise DocParserError(f"{name} cannot be opened: {_reason(error)}") from error
    if max(status.st_size, len(data)) > max_bytes:
        raise DocParserError(f"{name} is larger than {max_bytes / 2**20:g} MiB: split it, or raise max_bytes")
    if not data:
        raise DocParserError(f"{name} is empty")
    return data


def _open_without_blocking(path: str, flags: int) -> int:
    """Open a file without waiting: opening a pipe that has no writer would block."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _name(path: str) -> str:
    """Return a path's last component as valid, printable text, because file names may contain any bytes."""
    return shown_path(basename_of(path))[:_MAX_NAME_CHARS] or "''"


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__


def _suffix(path: str) -> str:
    return Path(path).suffix.lower().removeprefix(".")


def _chars(document: Document) -> int:
    return sum(len(block.text) for block in document.blocks) + 1
