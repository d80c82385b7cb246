"""Read local files with the parser that fits, and keep what was read."""

from __future__ import annotations

import asyncio
import hashlib
import json
import mimetypes
import os
import stat
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from jackfield.errors import DocParserError, PluginError
from jackfield.messages import basename_of
from jackfield.plugins import ParserSpec, Plugins, Row, default_host, install_hint, parser_of_extension
from jackfield.retrieval import Document, Parser, shown_path
from jackfield.settings import normalise
from jackfield.sync import in_worker
from jackfield_documents.encodings import as_marked_utf8
from jackfield_documents.keep import Kept
from jackfield_documents.parsing import (
    ParseJob,
    ParserLimits,
    ParserUnavailableError,
    can_start_processes,
    parse_apart,
    processes_at_once,
)
from jackfield_documents.urls import Page, Pages, is_url

MAX_BYTES = 100 * 2**20
_KEPT_CHARS = 50_000_000
_MOST_HERE = 2**20  # bytes that may be parsed in this process, whatever a plugin says of itself
_SETTLED_S = 2.0  # the coarsest clock of a file system in use (FAT)
_MOST_NAME = 200  # characters
_HEAD_BYTES = 4096  # which parsers are chosen by


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading several files: the documents, in the order given, and an error for each unreadable file."""

    documents: tuple[Document, ...] = ()
    errors: Mapping[str, DocParserError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a file is read as. Where both are the same, a reader gives the same document.

    Attributes:
        content_hash: The SHA-256 of its bytes, in hex.
        parser: Which version of which parser reads it, and with which settings.
    """

    content_hash: str
    parser: str


@dataclass(frozen=True, slots=True)
class _Key:
    """What decides how bytes are read."""

    content_hash: str
    row: Row
    suffix: str
    codec: str = ""  # the one that the server names


class DocumentReader:
    """Reads files and URLs, parses them in processes with limits, and keeps what it read by content and parser.

    A parser is chosen by the file's extension, else by its first bytes, else by its media type; only the chosen one is
    imported. Where two fit, `[prefer] "parser.<extension>" = "<distribution>"` in the user's `config.toml` decides.

    Args:
        host: The host whose parsers are used; the default host if None.
        max_bytes: The largest file that is read.
        parser_cfg: The settings of parsers, by name or by `distribution/name`.
        parser_for: The names of parsers by the extensions, without the dot, that they are to read whatever else does.
        kept_chars: How much text is kept for the next reading of the same bytes; 50 million characters if None.
        limits: What parsing one file may take.
        fetch_cfg: The settings of `jackfield_fetch.FetchConfig`, by which URLs are fetched.
        check_url: Awaited with each URL before its server is asked, those of redirects included. It raises a
            `ToolServiceError` if the URL may not be read.
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
        self._documents: Kept[_Key, Document] = Kept(_KEPT_CHARS if kept_chars is None else kept_chars, size_of=_chars)
        self._parsers: Kept[Row, Parser] = Kept(100)
        self._seen: dict[str, tuple[tuple[int, ...], _Key]] = {}
        self._pages = Pages(fetch_cfg, max_bytes, check_url)

    async def read(self, path: str | os.PathLike[str]) -> Document:
        """Read a file or what a URL names; `source` of the document is the path or the URL as given.

        Raises:
            DocParserError: It cannot be read; the message names only the last part of the path, as a model may read it.
        """
        name = os.fsdecode(path)
        if is_url(name):
            return await in_worker(self._read_page, name, await self._pages.get(name))
        return await in_worker(self._read, name)

    async def read_all(self, paths: Iterable[str | os.PathLike[str]], *, at_once: int | None = None) -> Reading:
        """Read several files in parallel, each once; one that cannot be read does not stop the others.

        Args:
            paths: The files.
            at_once: How many are read side by side; as many as keep every core busy if None.
        """
        names = list(dict.fromkeys(os.fsdecode(path) for path in paths))
        # While some are parsed, the bytes of the next ones are read.
        turn = asyncio.Semaphore(processes_at_once() + 2 if at_once is None else at_once)

        async def attempt(name: str) -> Document | DocParserError:
            async with turn:
                try:
                    return await self.read(name)
                except DocParserError as error:
                    return error

        results = await asyncio.gather(*map(attempt, names))
        return Reading(
            tuple(result for result in results if isinstance(result, Document)),
            {name: result for name, result in zip(names, results, strict=True) if isinstance(result, DocParserError)},
        )

    async def fingerprint(self, path: str | os.PathLike[str]) -> Fingerprint:
        """What a file would be read as; it is read, and not parsed.

        Raises:
            DocParserError: It cannot be opened, or nothing reads it.
        """
        name = os.fsdecode(path)
        if is_url(name):
            key = await in_worker(self._key_of_page, await self._pages.get(name))
        else:
            key, _ = await in_worker(self._identified, name)
        # It is kept in files, and a password may be among the settings.
        settings = hashlib.sha256(json.dumps(self._cfg_of(key.row), default=_plain).encode()).hexdigest()
        how = (key.row.address, key.row.version, key.suffix, settings, *filter(None, [key.codec]))
        return Fingerprint(key.content_hash, json.dumps(how))

    def parsers(self) -> str:
        """Changes whenever another parser may read some file, or the same one differently."""
        rows = sorted((row.address, row.version) for row, _ in self._plugins.specs("parser", ParserSpec))
        prefer = sorted(self._plugins.settings.prefer.items())
        text = json.dumps((rows, prefer, self._parser_cfg, self._parser_for), sort_keys=True, default=_plain)
        return hashlib.sha256(text.encode()).hexdigest()

    def _read(self, path: str) -> Document:
        key, data = self._identified(path)
        document = self._documents.get(key, lambda: self._parse(path, key, data))
        return replace(document, source=path)

    def _read_page(self, url: str, page: Page) -> Document:
        key = self._key_of_page(page)
        document = self._documents.get(key, lambda: self._parse(page.name, key, page.data))
        return replace(document, source=url)

    def _key_of_page(self, page: Page) -> _Key:
        head = page.data[:_HEAD_BYTES]
        row = self._row_for(page.name, as_marked_utf8(head, page.codec) if page.codec else head)
        return _Key(hashlib.sha256(page.data).hexdigest(), row, _suffix(page.name), page.codec)

    def _identified(self, path: str) -> tuple[_Key, bytes | None]:
        """What decides how a file is read, and its bytes if it took them to find out."""
        signature = file_signature(path)
        seen = self._seen.get(path)
        data: bytes | None = None
        if seen and seen[0] == signature:
            key = seen[1]
        else:
            data = _bytes_of(path, self._max_bytes)
            key = _Key(hashlib.sha256(data).hexdigest(), self._row_for(path, data), _suffix(path))
            if is_settled(signature):
                self._seen[path] = (signature, key)
        return key, data

    def _parse(self, path: str, key: _Key, data: bytes | None) -> Document:
        name = _name(path)
        if data is None:
            data = _bytes_of(path, self._max_bytes)
            if hashlib.sha256(data).hexdigest() != key.content_hash:
                raise DocParserError(f"{name} changed while it was being read: try again")
        spec = self._plugins.spec_of(key.row, ParserSpec)
        try:
            if len(data) <= min(spec.in_process_bytes, _MOST_HERE) or not can_start_processes():
                document = self._parsed_here(key, data, name)
            else:
                document = self._parsed_apart(key, spec, data, name)
        except PluginError as error:
            raise DocParserError(f"{name} cannot be read: {error}") from error
        return replace(document, content_hash=key.content_hash)

    def _parsed_here(self, key: _Key, data: bytes, name: str) -> Document:
        row = key.row
        if key.codec:
            data = as_marked_utf8(data, key.codec)
        parser = self._parsers.get(row, lambda: self._parser(row))
        try:
            return parser.parse(data, source=name)
        except DocParserError:
            raise
        except Exception as error:
            # A library inside a parser may raise anything at a damaged file; whoever asked for ten files gets nine.
            raise DocParserError(
                f"{name} cannot be read: the parser {_described(row)} failed ({type(error).__name__})"
            ) from error

    def _parsed_apart(self, key: _Key, spec: ParserSpec, data: bytes, name: str) -> Document:
        row = key.row
        job = ParseJob(_described(row), spec.target, self._cfg_of(row), spec.secrets, name, key.codec)
        try:
            return parse_apart(job, data, self._limits)
        except ParserUnavailableError as error:
            self._parser(row)  # which says what is wrong with it
            raise DocParserError(
                f"{name} cannot be read: the parser {_described(row)} works in this process, and not in one of its own "
                f"({error}): its settings must be JSON, and its module must be found on sys.path"
            ) from error

    def _parser(self, row: Row) -> Parser:
        made = self._plugins.load_row(row)(self._cfg_of(row))
        if not isinstance(made, Parser):
            raise PluginError(
                f"{row.distribution}: parser {row.name!r} is not a subclass of jackfield.retrieval.Parser"
            )
        return made

    def _cfg_of(self, row: Row) -> Mapping[str, Any] | None:
        """The settings of a parser; None if there are none."""
        return self._parser_cfg.get(row.address, self._parser_cfg.get(row.name))

    @property
    def _plugins(self) -> Plugins:
        return default_host() if self._host is None else self._host

    # --- which parser ---

    def _row_for(self, path: str, data: bytes) -> Row:
        specs = self._plugins.specs("parser", ParserSpec)
        suffix = _suffix(path)
        if suffix in self._parser_for:
            return self._plugins.find("parser", self._parser_for[suffix])
        fitting = _by_extension(specs, suffix) or _by_magic(specs, data) or _by_media_type(specs, path, data)
        preferred = self._preferred(fitting, suffix)
        if not preferred:
            raise DocParserError(self._absence(path, specs))
        if len(preferred) > 1:
            raise _ambiguity(path, fitting, suffix)
        return preferred[0]

    def _preferred(self, fitting: list[Row], suffix: str) -> list[Row]:
        """Of several, the one that is preferred, if that is said."""
        if len(fitting) < 2:
            return fitting
        preferred = normalise(self._plugins.settings.prefer.get(f"parser.{suffix}", ""))
        return [row for row in fitting if row.distribution == preferred] or fitting

    def _absence(self, path: str, specs: list[tuple[Row, ParserSpec]]) -> str:
        suffix = _suffix(path)
        readable = ", ".join(sorted({extension for _, spec in specs for extension in spec.extensions})) or "nothing"
        install = install_hint("parser", parser_of_extension(suffix) or "")
        kind = f"'.{suffix}' files" if suffix else "files of its kind"
        return (
            f"{_name(path)} cannot be read: no parser for {kind} is installed; "
            f"installed parsers read: {readable}{self._broken_beside(specs)}{install}"
        )

    def _broken_beside(self, specs: list[tuple[Row, ParserSpec]]) -> str:
        policy = self._plugins.policy
        described, left_out = {row for row, _ in specs}, policy.left_out("parser")
        broken = [row.address for row in policy.rows("parser") if row not in described and row not in left_out]
        text = f"; {', '.join(broken)} cannot be loaded (see: jackfield plugins doctor)" if broken else ""
        return text + "".join(f"; {row.address} {reason}" for row, reason in left_out.items())


def _ambiguity(path: str, fitting: Sequence[Row], suffix: str) -> DocParserError:
    return DocParserError(
        f"{_name(path)} can be read by {' and by '.join(repr(row.address) for row in fitting)}: choose, "
        f'in your config.toml: [prefer] "parser.{suffix}" = "{fitting[0].distribution}"'
    )


def _plain(value: object) -> str:
    """A setting that JSON does not have, as a text that differs where it does; a secret's is its hash."""
    if isinstance(value, SecretStr):
        return hashlib.sha256(value.get_secret_value().encode()).hexdigest()
    return repr(value)


def _described(row: Row) -> str:
    return f"{row.name!r} of {row.distribution}"


def _by_extension(specs: Iterable[tuple[Row, ParserSpec]], suffix: str) -> list[Row]:
    return [row for row, spec in specs if suffix and suffix in spec.extensions]


def _by_magic(specs: Iterable[tuple[Row, ParserSpec]], data: bytes) -> list[Row]:
    """Those whose files begin as this one does, with the longest beginning."""
    by_length: defaultdict[int, dict[Row, None]] = defaultdict(dict)
    for row, spec in specs:
        for magic in filter(data.startswith, filter(None, spec.magic)):
            by_length[len(magic)][row] = None
    return list(by_length[max(by_length, default=0)])


def _by_media_type(specs: Iterable[tuple[Row, ParserSpec]], path: str, data: bytes) -> list[Row]:
    guessed = mimetypes.guess_type(path)[0] or ""
    # README, Makefile, a script in some language: what is text can be read as text.
    may_be_text = not guessed or guessed.startswith("text/")
    exact = _of_media_type(specs, guessed)
    return exact or (_of_media_type(specs, "text/plain") if may_be_text and _is_text(data[:_HEAD_BYTES]) else [])


def _of_media_type(specs: Iterable[tuple[Row, ParserSpec]], media_type: str) -> list[Row]:
    return [row for row, spec in specs if media_type in spec.media_types]


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
    """What changes whenever a file does, its contents unread; see `is_settled`.

    Raises:
        DocParserError: It does not exist, or is not a regular file.
    """
    name = _name(path)
    try:
        found = os.stat(path)  # noqa: PTH116 - a name with NUL is a ValueError here, and a path object hides it
    except FileNotFoundError:
        raise DocParserError(f"{name} does not exist: check its name") from None
    except (OSError, ValueError) as error:
        raise DocParserError(f"{name} cannot be opened: {_reason(error)}") from error
    _check_kind(found, name)
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev)


def _check_kind(found: os.stat_result, name: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise DocParserError(f"{name} is a folder: name the files in it")
    if not stat.S_ISREG(found.st_mode):
        raise DocParserError(f"{name} is not a regular file: copy its content into one")


def is_settled(signature: tuple[int, ...]) -> bool:
    """Whether a change from now on would show in the times; right after one, a second may fall into the same tick."""
    return time.time_ns() - max(signature[:2]) > _SETTLED_S * 1e9


def _bytes_of(path: str, max_bytes: int) -> bytes:
    name = _name(path)
    try:
        with open(path, "rb", opener=_open_without_waiting) as file:
            found = os.fstat(file.fileno())
            _check_kind(found, name)  # it may be another one by now
            # A file that is known to be too large is not read. Some do not know, as in /proc, and there None stands for
            # nothing to read yet.
            data = b"" if found.st_size > max_bytes else file.read(max_bytes + 1) or b""
    except (OSError, ValueError) as error:
        raise DocParserError(f"{name} cannot be opened: {_reason(error)}") from error
    if max(found.st_size, len(data)) > max_bytes:
        raise DocParserError(f"{name} is larger than {max_bytes / 2**20:g} MiB: split it, or raise max_bytes")
    if not data:
        raise DocParserError(f"{name} is empty")
    return data


def _open_without_waiting(path: str, flags: int) -> int:
    """Open a file; a pipe that nobody writes to would keep its reader waiting."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _name(path: str) -> str:
    """The last part of a path, as it can be shown and sent: file names may hold any bytes."""
    return shown_path(basename_of(path))[:_MOST_NAME] or "''"


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__


def _suffix(path: str) -> str:
    return Path(path).suffix.lower().removeprefix(".")


def _chars(document: Document) -> int:
    return sum(len(block.text) for block in document.blocks) + 1
