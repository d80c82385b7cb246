"""Parser for CSV and TSV files."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import ClassVar

from pydantic import Field

from jackfield.config import Config
from jackfield.errors import DocParserError
from jackfield.retrieval import Block, Document, Parser
from jackfield_documents import decode, pipe_table

_DELIMITERS = (",", "\t", ";", "|")
_SAMPLE_LINES = 50


class CsvConfig(Config):
    """Settings for the delimiter and the number of columns."""

    delimiter: str = Field(default="", max_length=1, description="Separator between values; detected if empty")
    max_columns: int = Field(default=16_384, ge=1, description="Files with more columns are rejected")


class CsvParser(Parser):
    """Parses delimiter-separated values into a single table. The first row is the header."""

    name: ClassVar[str] = "csv"
    config_class = CsvConfig
    config: CsvConfig

    def parse(self, data: bytes, *, source: str) -> Document:
        """Parse a CSV or TSV file into a table.

        Raises:
            DocParserError: The file is empty, binary, in an unknown encoding, or has too many columns.
        """
        decoded = decode(data, source=source)
        delimiter = self.config.delimiter or _delimiter(decoded.text)
        table = pipe_table(self._rows(decoded.text, delimiter, source))
        if not table:
            raise DocParserError(f"{source} is empty: none of its cells contains text")
        return Document(
            source,
            (Block(table, kind="table"),),
            content_hash="",
            metadata={"encoding": decoded.encoding, "delimiter": delimiter},
        )

    def _rows(self, text: str, delimiter: str, source: str) -> Iterator[Sequence[str]]:
        for row in _read(text, delimiter):
            if len(row) > self.config.max_columns:
                wide = f"a row has {len(row)} columns"
                raise DocParserError(
                    f"{source} cannot be read: {wide}. Split it, or increase max_columns of the parser"
                )
            yield row


def _read(text: str, delimiter: str) -> list[list[str]]:
    lines = text.split("\n")
    try:
        return list(csv.reader((f"{line}\n" for line in lines), delimiter=delimiter))
    except csv.Error:
        # A quotation mark that is never closed would turn the rest of the file into one value, so quotes are text
        # there.
        return [line.split(delimiter) for line in lines]


def _delimiter(text: str) -> str:
    """Detect the delimiter: the one that splits the first lines most consistently, then into the most values."""
    lines = [line for line in islice(text.split("\n", 4 * _SAMPLE_LINES), _SAMPLE_LINES) if line.strip()]

    def fitness(delimiter: str) -> tuple[float, int]:
        counts = Counter(len(row) for row in csv.reader(lines, delimiter=delimiter))
        width, times = counts.most_common(1)[0]
        return (times / sum(counts.values()) if width > 1 else 0.0, width)

    try:
        return max(_DELIMITERS, key=fitness)
    except csv.Error:
        return max(_DELIMITERS, key=lambda delimiter: sum(line.count(delimiter) for line in lines))
