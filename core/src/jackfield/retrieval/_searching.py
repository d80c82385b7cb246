"""Corpora of chunks, and the searchers that rank them."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from jackfield._frames import ForgetLocals
from jackfield.config import Configured
from jackfield.errors import BrokenPluginError

if TYPE_CHECKING:
    from jackfield.plugins import PluginHost


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


def make_searcher(name: str, cfg: Mapping[str, object] | None = None, *, host: PluginHost) -> Searcher:
    """A new searcher.

    Args:
        name: Its name, or `distribution/name`.
        cfg: Its settings.
        host: Where it is looked up, and where it looks up others.

    Raises:
        PluginError: It is not installed, cannot be loaded, or is not a searcher.
        ConfigError: A setting does not fit.
    """
    row = host.find("searcher", name)
    made_by = host.load_row(row)
    with ForgetLocals():  # a key may be among them
        made = made_by(dict(cfg or {}), **host.host_argument(row, made_by))
    if not isinstance(made, Searcher):
        raise BrokenPluginError(f"searcher {name!r} is not a subclass of jackfield.retrieval._searching.Searcher")
    return made
