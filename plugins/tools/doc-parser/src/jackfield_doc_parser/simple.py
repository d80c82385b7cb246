"""The `simple_doc_parser` tool: documents as plain text or as pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from jackfield.messages import name_in_file
from jackfield.retrieval import Chunk, Document
from jackfield.sync import in_worker
from jackfield.tools import ToolContext, ToolResult, says_if_not_awaited
from jackfield_counting.estimating import estimate_tokens
from jackfield_doc_parser.base import DocumentTool, Made
from jackfield_doc_parser.parts import Part, part_of
from jackfield_doc_parser.plugin import tools
from jackfield_doc_parser.reading import Readings, shown_name
from jackfield_doc_parser.settings import SimpleDocParserConfig
from jackfield_documents import corpus_of, passages, places_of
from jackfield_documents.cutting import cut_and_count

_BETWEEN = 2  # tokens of the empty line between two texts


class SimpleDocParser(DocumentTool):
    """Returns documents as text in parts, or as pages with `structured_doc`."""

    name = "simple_doc_parser"
    description = tools()[1].description
    parameters = tools()[1].parameters
    effects = tools()[1].effects

    config_class = SimpleDocParserConfig
    config: SimpleDocParserConfig

    @says_if_not_awaited
    async def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> ToolResult:
        """Read a document, or every document in a folder or matching a glob pattern.

        Returns:
            Text by default. With `structured_doc`, a list of pages, `{"page_num", "title", "content": [{"text" or
            "table", "token"}]}`, or for several documents a list of `{"url", "pages"}`.

        Raises:
            ToolArgumentError: The name matches no document that the model may read, or the part number is out of range.
            DocParserError: No document could be read.
        """
        arguments = self.parse_arguments(params)
        readings = await self._documents.of_call([arguments["url"]], context or ToolContext())
        give = self._pages if self.config.structured_doc else self._text
        return await in_worker(give, readings, arguments.get("part", 1))

    @cached_property
    def _chunks(self) -> Made[Chunk]:
        return Made()

    @cached_property
    def _items(self) -> Made[_Item]:
        return Made()

    def _text(self, readings: Readings, number: int) -> ToolResult:
        most = self.config.max_ref_token
        chunks = self._chunks.of(
            readings, lambda: corpus_of(readings.documents, size_tokens=most, overlap_chars=0).chunks
        )
        part = part_of(chunks, number, max_tokens=most, tokens_of=lambda chunk: chunk.tokens + _BETWEEN)
        texts = _texts(part.items, named=len(readings.documents) > 1)
        return ToolResult("\n\n".join([*texts, *_notes(readings, part)]), _metadata(readings, part))

    def _pages(self, readings: Readings, number: int) -> ToolResult:
        most = self.config.max_ref_token
        items = self._items.of(
            readings, lambda: [item for document in readings.documents for item in _items_of(document, most)]
        )
        part = part_of(items, number, max_tokens=most, tokens_of=lambda item: item.tokens)
        content = _by_document(part.items, named=len(readings.documents) != 1)
        content += [{"note": note} for note in _notes(readings, part)]
        return ToolResult(content, _metadata(readings, part))


def _by_document(items: Iterable[_Item], *, named: bool) -> list[object]:
    """Return the pages of all items. If `named`, pages are grouped by document."""
    content: list[object] = []
    for document, of_one in groupby(items, lambda item: item.document):
        pages = _as_pages(list(of_one))
        content += [{"url": shown_name(document.source), "pages": pages}] if named else pages
    return content


@dataclass(frozen=True, slots=True)
class _Item:
    """A block of a document, or a section of a long block."""

    document: Document
    part: str
    page: int
    text: str
    is_table: bool
    tokens: int


def _texts(chunks: Sequence[Chunk], *, named: bool) -> list[str]:
    places = dict.fromkeys((chunk.source, chunk.part) for chunk in chunks)
    names = (f"[document: {name_in_file(shown_name(source), part)}]" for source, part in places)
    return [
        "\n".join([name, *entry["text"]] if named else entry["text"])
        for name, entry in zip(names, passages(chunks), strict=True)
    ]


def _items_of(document: Document, most: int) -> Iterator[_Item]:
    for place in places_of(document):
        is_table = place.block.kind == "table"
        for text, tokens in cut_and_count(place.block.text, most, estimate_tokens, by_line=is_table):
            yield _Item(document, place.block.part, place.page or 1, text, is_table, tokens)


def _as_pages(items: Sequence[_Item]) -> list[dict[str, object]]:
    """Group the items of a document into pages. The first page carries the document's title."""
    pages: list[dict[str, object]] = []
    for (part, number), of_page in groupby(items, lambda item: (item.part, item.page)):
        content = [{"table" if item.is_table else "text": item.text, "token": item.tokens} for item in of_page]
        title = items[0].document.title
        first = {"title": title} if title and not pages else {}
        pages.append({**({"file": part} if part else {}), "page_num": number, **first, "content": content})
    return pages


def _notes(readings: Readings, part: Part[Any]) -> list[str]:
    return [*readings.problems, *([part.note] if part.note else [])]


def _metadata(readings: Readings, part: Part[Any]) -> dict[str, object]:
    return {**readings.metadata(), "part": part.number, "parts": part.count}
