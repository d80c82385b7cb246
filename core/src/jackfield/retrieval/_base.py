"""Documents, chunks, hits: the values of retrieval, and the contracts of parsers and searchers."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

from jackfield.config import Configured
from jackfield.messages import Usage

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


def shown_path(path: str) -> str:
    """A path or URL that can be sent and shown: bytes that are not UTF-8, and invisible characters, are escaped."""
    text = path.encode("utf-8", "backslashreplace").decode()
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document. `source` is its path or URL, `content_hash` the SHA-256 of its bytes, in hex."""

    source: str
    blocks: tuple[Block, ...]
    content_hash: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document small enough to be found and shown by itself.

    Attributes:
        id: Unique in its corpus, and the same whenever the same bytes are cut in the same way.
        source: The document's path or URL.
        text: What is shown to a model.
        index: Its place in the document, from 0.
        tokens: The length of `text`.
        page: The page it begins on, from 1, or None.
        headings: The headings it stands under, outermost first.
        title: The document's title.
        overlap: How many characters of `text`, after its page line, repeat what the chunk before it has.
        joint: What stands between the text of the chunk before it and the text after `overlap`, where the document is
            shown unbroken; None if that is not known.
        is_cut: Its end is missing.
    """

    id: str
    source: str
    text: str
    index: int
    tokens: int
    page: int | None = None
    headings: tuple[str, ...] = ()
    title: str = ""
    overlap: int = 0
    joint: str | None = None
    is_cut: bool = False


@dataclass(frozen=True)
class Corpus:
    """Chunks that are searched together, in document order."""

    chunks: tuple[Chunk, ...]

    @cached_property
    def content_hash(self) -> str:
        """Changes whenever a chunk does; what searchers keep their indexes by."""
        digest = hashlib.sha256()
        for chunk in self.chunks:
            digest.update(chunk.id.encode("utf-8", "surrogatepass"))
            digest.update(b"\0")
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that was found. `ranks` says at which place (from 1) which searcher had it."""

    chunk: Chunk
    score: float
    ranks: Mapping[str, int] = field(default_factory=dict)


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


class Searcher(Configured, ABC):
    """Ranks the chunks of a corpus against a query. It indexes a corpus once and keeps the index by content hash.

    Its settings are those of its `config_class`; see `Configured`.
    """

    @abstractmethod
    async def search(self, query: str, corpus: Corpus, *, limit: int) -> list[Hit]:
        """The best chunks, best first, at most `limit`, equal scores in document order; [] when nothing matches."""

    async def prepare(self, corpus: Corpus, *, on_progress: Callable[[int, int], None] | None = None) -> None:
        """Make what searches of this corpus need, so that none of them has to.

        What was made is kept when this fails or is cancelled, and the next call goes on from there. A searcher that
        does not override this is asked a question, because the first search makes the same.

        Args:
            corpus: What will be searched.
            on_progress: Is called with how many of the chunks are ready, and how many there are; from any thread.
        """
        await self.search(".", corpus, limit=1)
        if on_progress:
            on_progress(len(corpus.chunks), len(corpus.chunks))

    async def aclose(self) -> None:
        """Close what searches opened; the searcher may be used again, and reopens it."""


Vector = tuple[float, ...]
Purpose = Literal["document", "query"]


@dataclass(frozen=True, slots=True)
class Embedded:
    """Texts as vectors.

    Attributes:
        vectors: One for each text, in order, all of one length.
        usage: What it cost; `prompt_tokens` counts the texts.
    """

    vectors: tuple[Vector, ...]
    usage: Usage = field(default_factory=Usage)


class Embedder(Configured, ABC):
    """Turns texts into vectors, near each other where the texts mean something alike.

    Its settings are those of its `config_class`; see `Configured`. It makes no connection before the first call, and is
    used by many tasks, threads and event loops at once. Any number of texts may be given: how many go into one request
    is its own business.

    Attributes:
        space: Which vectors may be compared with each other: the model and what else decides them (the dimension). An
            index that was made in one space must not be asked in another.
        dimension: The length of a vector; None if it is not known before the first call.
    """

    backend: ClassVar[str]

    @property
    @abstractmethod
    def space(self) -> str:
        """See above."""

    @property
    def dimension(self) -> int | None:
        """See above."""
        return None

    @abstractmethod
    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        """The vectors of texts; of none, none.

        Args:
            texts: None of them empty.
            purpose: Whether the texts are to be found, or to be searched with; some models tell the two apart.

        Raises:
            ValueError: A text is empty; the message says which.
            ModelServiceError: The server failed or refused.
        """

    async def aclose(self) -> None:
        """Close what calls opened; the embedder may be used again, and reopens it."""
