"""The `retrieval` tool: decides which files a model may search, and formats the result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from jackfield.errors import ConfigError, DocParserError, ToolArgumentError
from jackfield.events import PreparationProgress
from jackfield.messages import basename_of, name_in_file
from jackfield.plugins import default_host
from jackfield.retrieval import Where, shown_path
from jackfield.runs import ReportProgress
from jackfield.tools import BaseTool, ToolContext, ToolResult, says_if_not_awaited
from jackfield_documents import RAGConfig, file_meant
from jackfield_retrieval.plugin import tools
from jackfield_retrieval.retriever import RetrievalResult, Retriever, ignore_progress

_MOST_NAMED = 5  # documents
_MANY = 20  # parts of a step; with fewer, progress is not worth reporting


class RetrievalTool(BaseTool):
    """Searches documents for relevant passages. `cfg` accepts the settings of `RAGConfig`.

    The files of a conversation may include folders, glob patterns and on-disk indexes (`index:NAME`). A model can name
    only files of its conversation, by path or file name, and files in the workspace.
    """

    name = "retrieval"
    description = tools()[0].description
    parameters = tools()[0].parameters
    effects = tools()[0].effects
    read_only = True
    file_access = True

    config_class = RAGConfig
    config: RAGConfig

    def __init__(self, cfg: RAGConfig | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        if self.config.rag_keygen_strategy != "none":
            raise ConfigError(
                "the retrieval tool has no model for generating keywords: set rag_keygen_strategy in the agent's "
                "rag_cfg"
            )
        if self.config.question_rewriting == "model":
            raise ConfigError(
                "the retrieval tool has no model for rewriting questions: set question_rewriting in the agent's rag_cfg"
            )
        self._made: Retriever | None = None

    @says_if_not_awaited
    async def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> ToolResult:
        """Find passages that answer the query.

        Returns:
            A JSON list of `{"url", "text": […]}`, followed by a line for each problem.

        Raises:
            ToolArgumentError: A file is neither in the conversation nor in the workspace, or a filter does not fit the
                documents.
            DocParserError: No file could be read.
        """
        arguments = self.parse_arguments(params)
        scope = context or ToolContext()
        wanted = arguments.get("files")
        files = scope.files if wanted is None else await self._meant(wanted, scope)
        where = arguments.get("where")
        try:
            Where.parse(where or {})
            found = await self.retrieve(arguments["query"], files, where=where, report=_tenths(scope.report))
        except ConfigError as error:
            if where and str(error).startswith("where"):
                raise ToolArgumentError(str(error)) from error
            raise
        problems = (*map(str, found.errors), *found.skipped)
        if problems and not found.documents:
            raise DocParserError("none of the documents could be read: " + "; ".join(problems))
        parts = [_passages_in(found), *_extent_of(found), *_problems_in(found)]
        return ToolResult("\n\n".join(parts), found.metadata())

    async def _meant(self, wanted: Iterable[str], scope: ToolContext) -> list[str]:
        """Resolve the names given by a model to files that it may search."""
        expanded = await self._retriever.expand(scope.files)
        given = (*expanded.files, *expanded.missing)
        return [
            name
            if name in scope.files
            else file_meant(name, given, scope.workspace, if_several="omit 'files' to search all")
            for name in wanted
        ]

    async def retrieve(
        self,
        query: str,
        files: Iterable[str],
        *,
        where: Mapping[str, object] | None = None,
        report: ReportProgress = ignore_progress,
    ) -> RetrievalResult:
        """Find passages in files, folders, glob patterns and indexes (`index:NAME`) that the caller trusts."""
        return await self._retriever.retrieve(query, files, where=where, report=report)

    @property
    def _retriever(self) -> Retriever:
        if self._made is None:
            self._made = Retriever(self.config, self.host or default_host())
        return self._made


def _tenths(report: Callable[[str], None]) -> ReportProgress:
    """Return a progress callback that reports every 10 % of a long step."""
    reported: dict[str, int] = {}

    def report_tenth(progress: PreparationProgress) -> None:
        tenth = 10 * progress.done // progress.total if progress.total >= _MANY else 0
        if tenth > reported.get(progress.step, 0):
            reported[progress.step] = tenth
            report(progress.text)

    return report_tenth


def _problems_in(found: RetrievalResult) -> Iterator[str]:
    """Yield a line for each file that could not be read and each searcher that failed."""
    for error in found.errors:
        yield f"could not be read: {error}"
    for failure in found.failures:
        yield f"the search is incomplete: {failure}"


def _extent_of(found: RetrievalResult) -> Iterator[str]:
    """Yield notes if nothing matches, or if only part of the documents is shown."""
    if not found.matched:
        yield "nothing in the documents matches the query; the passages are just the beginnings of the documents"
    shown = [f"{one.count} of {one.total} {one.unit} of {shown_path(basename_of(one.source))}" for one in found.shown]
    if shown:
        more = f" and parts of {len(shown) - _MOST_NAMED} more" if len(shown) > _MOST_NAMED else ""
        yield f"the documents are only shown in part: {', '.join(shown[:_MOST_NAMED])}{more}"


def _passages_in(found: RetrievalResult) -> str:
    # Passages are grouped by source. Backslashes in their `url` come from escaping and do not separate folders.
    places = dict.fromkeys((chunk.source, chunk.part) for chunk in found.chunks)
    outlines = {entry["url"]: entry["text"] for entry in found.outlines}
    shown = [
        {
            "url": name_in_file(shown_path(basename_of(source)), part),
            "text": [*outlines.pop(source, ()), *passage["text"]],
        }
        for (source, part), passage in zip(places, found.passages, strict=True)
    ]
    return json.dumps(shown, ensure_ascii=False, indent=4)
