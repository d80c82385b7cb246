"""JSON and JSON Lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from pydantic import Field

from jackfield.config import Config
from jackfield.errors import DocParserError
from jackfield.retrieval import Block, Document, Parser
from jackfield_text.decoding import decode

_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*$")


class JsonConfig(Config):
    """How much of a file is read."""

    max_bytes: int = Field(default=32 * 2**20, ge=1, description="Larger files are refused; parsing takes 5 times that")
    max_values: int = Field(default=200_000, ge=1, description="Values after these are left out, and a block says so")


class JsonParser(Parser):
    """Reads JSON as text: `users[0].name: Ada`, one line for each value, one block for each record.

    Numbers stand as they are written, however long; a key that occurs twice is there twice.
    """

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        self._config = JsonConfig.parse(cfg, what="parser json")

    def parse(self, data: bytes, *, source: str) -> Document:
        """Turn a JSON or JSON Lines file into blocks.

        Raises:
            DocParserError: It is no JSON, too large or too deep; the text names the line.
        """
        if len(data) > self._config.max_bytes:
            limit = self._config.max_bytes / 2**20
            raise DocParserError(f"{source} is larger than {limit:g} MiB: split it, or raise max_bytes of the parser")
        decoded = decode(data, source=source)
        value = _value_of(decoded.text, source)
        lines = _records(value)
        blocks = list(_blocks(islice(lines, self._config.max_values)))
        left_out = next(lines, None) is not None
        if left_out:
            blocks.append(Block(f"(after {self._config.max_values} values, the rest of {source} is left out)"))
        return Document(
            source,
            tuple(blocks),
            content_hash="",
            title=_title(value),
            metadata={"encoding": decoded.encoding, "truncated": left_out},
        )


class _Object(list[tuple[str, Any]]):
    """The pairs of an object: a dict would drop keys that occur twice."""


def _value_of(text: str, source: str) -> Any:
    try:
        return _load(text)
    except RecursionError:
        raise DocParserError(f"{source} cannot be read: its JSON is nested too deeply") from None
    except ValueError as error:
        values = _json_lines(text)
        if values is None:
            raise DocParserError(f"{source} is no JSON: {error}") from error
        return values


def _json_lines(text: str) -> list[Any] | None:
    """The values of JSON Lines, or None if that is not what it is."""
    lines = [line for line in text.split("\n") if line.strip()]
    try:
        return [_load(line) for line in lines] if len(lines) > 1 else None
    except (ValueError, RecursionError):
        return None


def _load(text: str) -> Any:
    return json.loads(text, strict=False, object_pairs_hook=_Object, parse_int=str, parse_float=str, parse_constant=str)


def _records(value: Any) -> Iterator[tuple[int, str]]:
    """The lines of a value, each with the number of the record it belongs to."""
    if isinstance(value, _Object):
        entries: list[tuple[str, Any]] = [(_key("", key), entry) for key, entry in value]
    elif isinstance(value, list):
        entries = [(f"[{place}]", entry) for place, entry in enumerate(value)]
    else:
        entries = [("", value)]
    number = 0
    for path, entry in entries:
        # The entries of a list below a key are records, too: {"users": [{…}, {…}]} is the usual shape of a file.
        listed = isinstance(entry, list) and not isinstance(entry, _Object) and any(isinstance(e, list) for e in entry)
        nested = [(f"{path}[{place}]", inner) for place, inner in enumerate(entry)] if listed else [(path, entry)]
        for inner_path, inner in nested:
            for line in _lines(inner_path, inner):
                yield number, line
            number += 1


def _lines(path: str, value: Any) -> Iterator[str]:
    """One line for each value, in order; a stack, because files are nested deeper than Python's calls may be."""
    stack: list[tuple[str, Any]] = [(path, value)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, _Object) and value:
            stack += [(_key(path, key), entry) for key, entry in reversed(value)]
        elif isinstance(value, list) and value:
            stack += [(f"{path}[{place}]", entry) for place, entry in reversed(list(enumerate(value)))]
        else:
            shown = _shown(value)
            yield f"{path}: {shown}" if path else shown


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, _Object):
        return "{}"
    return json.dumps(value)


def _key(path: str, key: str) -> str:
    if not _PLAIN_KEY.match(key):
        return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key


def _blocks(lines: Iterator[tuple[int, str]]) -> Iterator[Block]:
    record = 0
    texts: list[str] = []
    for number, line in lines:
        if number != record and texts:
            yield Block("\n".join(texts))
            texts = []
        record = number
        texts.append(line)
    if texts:
        yield Block("\n".join(texts))


def _title(value: Any) -> str:
    if isinstance(value, _Object):
        return next((entry for key, entry in value if key in ("title", "name") and isinstance(entry, str)), "")
    return ""
