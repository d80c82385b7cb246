"""Documents, and the parsers that read them. Parsers run in processes of their own, so this module loads little."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from jackfield.config import Configured

BlockKind = Literal["heading", "paragraph", "list", "table", "code"]


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a document that belongs together, in reading order.

    Attributes:
        text: The text; a table is a Markdown pipe table.
        kind: What it is.
        page: The page it begins on, from 1; None for formats without pages.
        level: Of a heading, from 1; 0 for the rest.
    """

    text: str
    kind: BlockKind = "paragraph"
    page: int | None = None
    level: int = 0


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document. `source` is its path or URL, `content_hash` the SHA-256 of its bytes, in hex."""

    source: str
    blocks: tuple[Block, ...]
    content_hash: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Parser(Configured, ABC):
    """Reads one kind of file. It is called in a process of its own, or by many threads at once, one instance in each.

    Its settings are those of its `config_class`; see `Configured`.
    """

    @abstractmethod
    def parse(self, data: bytes, *, source: str) -> Document:
        """Turn bytes into blocks.

        Raises:
            DocParserError: The file is empty, encrypted, damaged or not what its name says; the text names `source`.
        """


def shown_path(path: str) -> str:
    """A path or URL that can be sent and shown: bytes that are not UTF-8, and invisible characters, are escaped."""
    text = path.encode("utf-8", "backslashreplace").decode()
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
