"""Parser for JSON and JSON Lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain, groupby, islice, starmap
from operator import itemgetter
from typing import Any, ClassVar

from pydantic import Field

from jackfield.config import Config
from jackfield.errors import DocParserError
from jackfield.retrieval import Block, Document, Parser
from jackfield_documents import decode

_MOST_PATH = 200  # characters
_OUT_PER_BYTE = 8  # of text for each byte of a file, at the most
_OUT_AT_LEAST = 256 * 1024
_END = object()
_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*$")


class JsonConfig(Config):
    """Settings for the size of JSON files."""

    max_bytes: int = Field(
        default=32 * 2**20, ge=1, description="Larger files are rejected; parsing needs about 5 times this much memory"
    )
    max_values: int = Field(default=200_000, ge=1, description="Further values are omitted, with a note at the end")


class JsonParser(Parser):
    """Parses JSON into text such as `users[0].name: Ada`, with a line per value and a block per record.

    Numbers are kept as written, however long. Duplicate keys are kept as well.
    """

    name: ClassVar[str] = "json"
    config_class = JsonConfig
    config: JsonConfig

    def parse(self, data: bytes, *, source: str) -> Document:
        """Parse a JSON or JSON Lines file into blocks.

        Raises:
            DocParserError: The file is not valid JSON, too large, or nested too deeply. The message names the line.
        """
        if len(data) > self.config.max_bytes:
            limit = self.config.max_bytes / 2**20
            raise DocParserError(f"{source} is larger than {limit:g} MiB: split it, or increase the parser's max_bytes")
        decoded = decode(data, source=source)
        value = _value_of(decoded.text, source)
        lines = _records(value)
        within = _Within(lines, self.config.max_values, _OUT_AT_LEAST + _OUT_PER_BYTE * len(data))
        blocks = list(_blocks(iter(within)))
        left_out = next(lines, None) is not None
        if left_out:
            blocks.append(Block(f"(the rest of {source} after {within.taken} values is omitted)"))
        return Document(
            source,
            tuple(blocks),
            content_hash="",
            title=_title(value),
            metadata={"encoding": decoded.encoding, "truncated": left_out},
        )


class _Object(list[tuple[str, Any]]):
    """The key-value pairs of an object, because a dict would drop duplicate keys."""

    __slots__ = ()


class _Within:
    """The first lines of an iterable, limited in number and total length. `taken` is the number of lines so far."""

    def __init__(self, lines: Iterator[tuple[int, str]], most: int, chars: int) -> None:
        self._lines = lines
        self._most = most
        self._chars = chars
        self.taken = 0

    def __iter__(self) -> Iterator[tuple[int, str]]:
        for number, line in islice(self._lines, self._most):
            self.taken += 1
            self._chars -= len(line)
            yield number, line
            if self._chars < 0:
                return


def _value_of(text: str, source: str) -> object:
    try:
        return _load(text)
    except RecursionError:
        raise DocParserError(f"{source} cannot be read: its JSON is nested too deeply") from None
    except ValueError as error:
        values = _json_lines(text)
        if values is None:
            raise DocParserError(f"{source} is not valid JSON: {error}") from error
        return values


def _json_lines(text: str) -> list[Any] | None:
    """Return the values of JSON Lines, or None for any other text."""
    lines = [line for line in text.split("\n") if line.strip()]
    try:
        return [_load(line) for line in lines] if len(lines) > 1 else None
    except (ValueError, RecursionError):
        return None


_load = json.JSONDecoder(
    strict=False, object_pairs_hook=_Object, parse_int=str, parse_float=str, parse_constant=str
).decode


def _records(value: Any) -> Iterator[tuple[int, str]]:
    """Yield the lines of a value, each with its record number."""
    entries = _children("", value) if isinstance(value, list) else iter([("", value)])
    for number, record in enumerate(chain.from_iterable(starmap(_in_records, entries))):
        for line in _lines(*record):
            yield number, line


def _in_records(path: str, entry: Any) -> Iterable[tuple[str, Any]]:
    """Yield the records in an entry.

    The entry is itself a record, unless it is a list of records below a key, as in {"users": [{…}, {…}]}.
    """
    is_listed = isinstance(entry, list) and not isinstance(entry, _Object) and any(isinstance(e, list) for e in entry)
    return _children(path, entry) if is_listed else [(path, entry)]


def _lines(path: str, value: object) -> Iterator[str]:
    """Yield a line for each value in order.

    Uses an explicit stack, because files may be nested deeper than Python's recursion limit.
    """
    stack: list[Iterator[tuple[str, Any]]] = [iter([(path, value)])]
    while stack:
        path, value = next(stack[-1], ("", _END))
        if value is _END:
            stack.pop()
        elif isinstance(value, list) and value:
            stack.append(_children(path, value))
        else:
            shown = _shown(value)
            yield f"{path}: {shown}" if path else shown


def _children(path: str, value: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the entries of an object or list with their paths."""
    if isinstance(value, _Object):
        return ((_key(path, key), entry) for key, entry in value)
    return ((_short(f"{path}[{place}]"), entry) for place, entry in enumerate(value))


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, _Object):
        return "{}"
    return json.dumps(value)


def _key(path: str, key: str) -> str:
    key = _short(key)
    if not _PLAIN_KEY.match(key):
        return _short(f"{path}[{json.dumps(key, ensure_ascii=False)}]")
    return _short(f"{path}.{key}") if path else key


def _short(path: str) -> str:
    """Return the end of a long path, because the path is repeated for each value below it."""
    return path if len(path) <= _MOST_PATH else f"…{path[-_MOST_PATH + 1 :]}"


def _blocks(lines: Iterable[tuple[int, str]]) -> Iterator[Block]:
    for _, record in groupby(lines, key=itemgetter(0)):
        yield Block("\n".join(line for _, line in record))


def _title(value: object) -> str:
    if isinstance(value, _Object):
        return next((entry for key, entry in value if key in ("title", "name") and isinstance(entry, str)), "")
    return ""
