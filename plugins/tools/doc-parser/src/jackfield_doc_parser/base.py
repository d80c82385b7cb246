"""Base class and cache shared by the document tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from jackfield.plugins import default_host
from jackfield.tools import BaseTool
from jackfield_doc_parser.reading import Documents, Readings
from jackfield_doc_parser.settings import ReadingConfig
from jackfield_documents import Kept

T = TypeVar("T")

_KEPT = 4  # derived lists: after one part, a model soon reads the next


class Made(Generic[T]):
    """Caches lists derived from documents, so a request for the next part need not derive them again."""

    def __init__(self) -> None:
        self._lists: Kept[tuple[object, ...], Sequence[T]] = Kept(_KEPT)

    def of(self, readings: Readings, make: Callable[[], Sequence[T]], *, and_of: str = "") -> Sequence[T]:
        """Return the list derived from these documents, calling `make` on a cache miss. Blocks while `make` runs.

        Args:
            readings: The documents.
            make: Derives the list.
            and_of: Any other input of `make`, as part of the cache key.
        """
        # The blocks as well, because the same file may gain descriptions of its pictures.
        documents = (part for one in readings.documents for part in (one.source, one.content_hash, one.blocks))
        return self._lists.get((and_of, *documents), make)


class DocumentTool(BaseTool):
    """Base class of tools that read documents.

    A model can name only files of its conversation and of the workspace.
    """

    file_access = True
    config: ReadingConfig

    def __init__(self, cfg: ReadingConfig | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        self._made: Documents | None = None

    async def read(self, names: Iterable[str]) -> Readings:
        """Read documents from files, folders and glob patterns that the caller trusts.

        Raises:
            ConfigError: The names expand to too many files.
            DocParserError: None of the documents could be read.
        """
        return await self._documents.read(names)

    @property
    def _documents(self) -> Documents:
        if self._made is None:
            self._made = Documents(self.config, self.host or default_host())
        return self._made
