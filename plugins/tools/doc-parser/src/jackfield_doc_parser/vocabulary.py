"""The `extract_doc_vocabulary` tool: the characteristic words of documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from jackfield.sync import in_worker
from jackfield.tools import ToolContext, ToolResult, says_if_not_awaited
from jackfield_counting.estimating import estimate_tokens
from jackfield_doc_parser.base import DocumentTool, Made
from jackfield_doc_parser.plugin import tools
from jackfield_doc_parser.reading import Readings
from jackfield_doc_parser.settings import VocabularyConfig


class ExtractDocVocabulary(DocumentTool):
    """Extracts the words that are characteristic of documents."""

    name = "extract_doc_vocabulary"
    description = tools()[2].description
    parameters = tools()[2].parameters
    effects = tools()[2].effects

    config_class = VocabularyConfig
    config: VocabularyConfig

    @says_if_not_awaited
    async def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> ToolResult:
        """Return the words as a comma-separated list, followed by a line for each document that could not be read.

        Raises:
            ToolArgumentError: A name matches no document that the model may read.
            DocParserError: No document could be read.
        """
        arguments = self.parse_arguments(params)
        readings = await self._documents.of_call(arguments["files"], context or ToolContext())
        words = await in_worker(self._words, readings, arguments.get("query", ""))
        content = "\n\n".join([", ".join(words), *readings.problems])
        return ToolResult(content, {**readings.metadata(), "words": len(words)})

    @cached_property
    def _lists(self) -> Made[str]:
        return Made()

    def _words(self, readings: Readings, query: str) -> Sequence[str]:
        from jackfield_doc_parser.words import vocabulary  # loads a Chinese dictionary

        def make() -> list[str]:
            texts = [block.text for document in readings.documents for block in document.blocks if block.text.strip()]
            return self._within(vocabulary(texts, most=self.config.max_words, query=query))

        return self._lists.of(readings, make, and_of=query)

    def _within(self, words: list[str]) -> list[str]:
        """Return the leading words that fit into a result."""
        used = 0
        for index, word in enumerate(words):
            used += estimate_tokens(word) + 1  # plus a comma
            if used > self.config.max_ref_token:
                return words[:index]
        return words
