"""The common part of this package's tools."""

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
    """A cache of derived parts of documents, so that the next part is ready."""

    def __init__(self) -> None:
        self._lists: Kept[tuple[str, ...], Sequence[T]] = Kept(_KEPT)

    def of(self, readings: Readings, make: Callable[[], Sequence[T]], *, and_of: str = "") -> Sequence[T]:
        """Return the derived list of these documents; `and_of` names its other inputs. It blocks."""
        documents = (part for one in readings.documents for part in (one.source, one.content_hash))
        return self._lists.get((and_of, *documents), make)


class DocumentTool(BaseTool):
    """Reads documents. A model may name the files of its conversation and of the workspace, and cannot reach others."""

    file_access = True
    config: ReadingConfig

    def __init__(self, cfg: ReadingConfig | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        self._made: Documents | None = None

    async def read(self, names: Iterable[str]) -> Readings:
        """Read the documents of files, folders and patterns that the caller trusts.

        Raises:
            ConfigError: There are too many.
            DocParserError: None of the documents could be read.
        """
        return await self._documents.read(names)

    @property
    def _documents(self) -> Documents:
        if self._made is None:
            self._made = Documents(self.config, self.host or default_host())
        return self._made
