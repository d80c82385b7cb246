"""The `doc_parser` tool: documents split into chunks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import groupby
from typing import Any

from jackfield.messages import name_in_file
from jackfield.retrieval import Chunk, Document
from jackfield.sync import in_worker
from jackfield.tools import ToolContext, ToolResult, says_if_not_awaited
from jackfield_doc_parser.base import DocumentTool, Made
from jackfield_doc_parser.parts import part_of
from jackfield_doc_parser.plugin import tools
from jackfield_doc_parser.reading import Readings, shown_name
from jackfield_doc_parser.settings import DocParserConfig
from jackfield_documents import chunk_document


class DocParser(DocumentTool):
    """Splits documents into chunks. A document that fits into one result stays whole."""

    name = "doc_parser"
    description = tools()[0].description
    parameters = tools()[0].parameters
    effects = tools()[0].effects

    config_class = DocParserConfig
    config: DocParserConfig

    @says_if_not_awaited
    async def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> ToolResult:
        """Split a document, or every document in a folder or matching a glob pattern.

        Returns:
            A record `{"url", "title", "raw": [{"content", "metadata": {"source", "title", "chunk_id"}, "token"}]}`,
                with a `note` if there are more parts. For several documents or if problems occurred, a list of records,
                in which `{"error"}` entries describe the problems and a `{"note"}` entry points to further parts.

        Raises:
            ToolArgumentError: The name matches no document that the model may read, or the part number is out of range.
            DocParserError: No document could be read.
        """
        arguments = self.parse_arguments(params)
        readings = await self._documents.of_call([arguments["url"]], context or ToolContext())
        return await in_worker(self._records, readings, arguments.get("part", 1))

    @cached_property
    def _pairs(self) -> Made[tuple[Document, Chunk]]:
        return Made()

    def _records(self, readings: Readings, number: int) -> ToolResult:
        pairs = self._pairs.of(
            readings, lambda: [(document, chunk) for document in readings.documents for chunk in self._cut(document)]
        )
        part = part_of(pairs, number, max_tokens=self.config.max_ref_token, tokens_of=lambda pair: pair[1].tokens)
        records = [_record(document, of_one) for document, of_one in groupby(part.items, lambda pair: pair[0])]
        metadata = {**readings.metadata(), "part": part.number, "parts": part.count}
        note = {"note": part.note} if part.note else {}
        if len(records) == len(readings.documents) == 1 and not readings.problems:
            return ToolResult({**records[0], **note}, metadata)
        problems = [{"error": problem} for problem in readings.problems]
        return ToolResult(list(filter(None, [*records, *problems, note])), metadata)

    def _cut(self, document: Document) -> list[Chunk]:
        most = self.config.max_ref_token
        whole = chunk_document(document, size_tokens=most, overlap_chars=0)
        if len(whole) <= 1:
            return whole
        size = min(self.config.parser_page_size, most)
        return chunk_document(document, size_tokens=size, overlap_chars=self.config.chunk_overlap)


def _record(document: Document, pairs: Iterable[tuple[Document, Chunk]]) -> dict[str, object]:
    name = shown_name(document.source)
    raw = [
        {
            "content": chunk.text,
            "metadata": {"source": name_in_file(name, chunk.part), "title": document.title, "chunk_id": chunk.index},
            "token": chunk.tokens,
        }
        for _, chunk in pairs
    ]
    return {"url": name, "title": document.title, "raw": raw}
