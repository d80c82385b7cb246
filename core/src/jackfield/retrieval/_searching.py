"""Searchers, which rank the chunks of a corpus."""

from __future__ import annotations

import hashlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from jackfield._frames import ForgetLocals
from jackfield.config import Configured
from jackfield.errors import BrokenPluginError
from jackfield.plugins._loading import host_argument
from jackfield.plugins._protocol import Plugins
from jackfield.retrieval._filtering import MetadataValue, Where, document_values, kinds_in, position_values


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document that is small enough to be found and shown on its own.

    Attributes:
        id: An id that is unique within the corpus and stable as long as the same bytes are split in the same way.
        source: The document's path or URL.
        text: The text that the model reads.
        index: The chunk's position in the document, starting at 0.
        tokens: The number of tokens in `text`.
        page: The page on which the chunk starts, counted from 1, or None.
        headings: The headings above the chunk, outermost first. Inside a part, the first heading is the part's name.
        part: The file inside the document that contains the chunk, such as 'scans.zip › a.pdf', or '' for the document
            itself. `page` then refers to this file.
        title: The document's title.
        overlap: The number of characters in `text` (after the page line) that repeat the previous chunk.
        joint: The text between the previous chunk and the text after `overlap`, used to reassemble the document, or
            None if unknown.
        is_cut: True if the chunk's end is missing.
        metadata: Values for filtering in addition to the other attributes, such as `{"year": 2024}`.
    """

    id: str
    source: str
    text: str
    index: int
    tokens: int
    page: int | None = None
    headings: tuple[str, ...] = ()
    part: str = ""
    title: str = ""
    overlap: int = 0
    joint: str | None = None
    is_cut: bool = False
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict, hash=False)


def chunk_values(chunk: Chunk) -> dict[str, MetadataValue]:
    """Return a chunk's filter values."""
    values = document_values(chunk.source, chunk.title, chunk.metadata)
    return {**values, **position_values(chunk.page, chunk.headings, chunk.part)}


_KEPT_SELECTIONS = 8


class Selection:
    """The positions of the chunks that a filter selects in a corpus.

    Attributes:
        numbers: The positions of the selected chunks, in ascending order.
        total: The number of chunks in the corpus.
    """

    def __init__(self, numbers: Sequence[int], total: int) -> None:
        self.numbers = numbers
        self.total = total

    def __len__(self) -> int:
        return len(self.numbers)

    def __contains__(self, number: object) -> bool:
        return number in self._set

    @cached_property
    def _set(self) -> frozenset[int]:
        return frozenset(self.numbers)


@dataclass(frozen=True)
class Corpus:
    """Chunks that are searched together, in document order."""

    chunks: tuple[Chunk, ...]

    def select(self, where: Where) -> Selection:
        """Return the chunks that a filter selects. Recent selections are cached.

        Raises:
            ConfigError: No chunk has a key that the filter uses, or the key's values are of another kind.
        """
        if not where.is_checked:
            where = where.check(self.metadata_kinds)
        kept = self._selections
        selection = kept.pop(where, None) or Selection(self.numbers_of(where), len(self.chunks))
        kept[where] = selection
        for old in list(kept)[:-_KEPT_SELECTIONS]:
            kept.pop(old, None)
        return selection

    @cached_property
    def metadata_kinds(self) -> Mapping[str, frozenset[str]]:
        """The keys that filters can use, each with the kinds of its values."""
        return kinds_in(chunk.metadata for chunk in self.chunks)

    def number_of(self, chunk: Chunk) -> int | None:
        """Return a chunk's position in `chunks`, or None if the chunk belongs to another corpus."""
        return self._numbers.get(chunk.id)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {chunk.id: number for number, chunk in enumerate(self.chunks)}

    def numbers_of(self, where: Where) -> list[int]:
        """Return the positions of the chunks that a checked filter selects, in ascending order.

        The result is not cached.
        """
        return [number for number, chunk in enumerate(self.chunks) if where.matches(chunk_values(chunk))]

    @cached_property
    def _selections(self) -> dict[Where, Selection]:
        return {}

    @cached_property
    def content_hash(self) -> str:
        """A hash of all chunks. Searchers store their indexes under this hash."""
        digest = hashlib.sha256()
        for chunk in self.chunks:
            digest.update(chunk.id.encode("utf-8", "surrogatepass"))
            digest.update(b"\0")
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that matches a query. `ranks` contains the chunk's rank (counted from 1) in each searcher's list."""

    chunk: Chunk
    score: float
    ranks: Mapping[str, int] = field(default_factory=dict)


class Searcher(Configured, ABC):
    """Ranks the chunks of a corpus for a query. Each corpus is indexed once. The index is stored by content hash.

    `config_class` defines the settings; see `Configured`.
    """

    @abstractmethod
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        """Return at most `limit` hits, best first, or [] if nothing matches. Ties are in document order.

        Args:
            query: The query.
            corpus: The corpus to search.
            limit: The maximum number of hits.
            where: A filter. Only chunks in `corpus.select(where)` may be hits. Up to `limit` of the selected chunks
                that match the query must be found.

        Raises:
            ConfigError: The filter uses keys or kinds that the corpus does not have.
        """

    async def prepare(self, corpus: Corpus, *, on_progress: Callable[[int, int], None] | None = None) -> None:
        """Index a corpus before the first search.

        If indexing fails or is cancelled, the work done so far is kept, and the next call continues from there. The
        default implementation builds the index by running one search.

        Args:
            corpus: The corpus to index.
            on_progress: A function that receives the number of indexed chunks and the total number. The function may be
                called from any thread.
        """
        await self.search(".", corpus, limit=1)
        if on_progress:
            on_progress(len(corpus.chunks), len(corpus.chunks))

    async def aclose(self) -> None:
        """Close connections and files that searches opened. A later search reopens them."""


def make_searcher(name: str, cfg: Mapping[str, object] | None = None, *, host: Plugins) -> Searcher:
    """Create a searcher.

    Args:
        name: The searcher's name, or `distribution/name`.
        cfg: The searcher's settings.
        host: The plugin host that resolves the name and any names in the settings.

    Raises:
        PluginError: The searcher is not installed, cannot be loaded, or is not a searcher.
        ConfigError: A setting is not valid.
    """
    row = host.find("searcher", name)
    searcher_class = host.load_row(row)
    with ForgetLocals():  # arguments may include an API key
        searcher = searcher_class(dict(cfg or {}), **host_argument(host, row, searcher_class))
    if not isinstance(searcher, Searcher):
        raise BrokenPluginError(f"searcher {name!r} is not a subclass of jackfield.retrieval.Searcher")
    if "where" not in inspect.signature(searcher.search).parameters:
        raise BrokenPluginError(
            f"searcher {name!r} would ignore filters: its `search` method needs a parameter `where`; update the plugin"
        )
    return searcher
