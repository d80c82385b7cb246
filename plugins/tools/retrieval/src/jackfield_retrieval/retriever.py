"""Find passages for a query: read and split the files, search them, fuse the rankings and choose the passages."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from jackfield.errors import (
    BrokenPluginError,
    ConfigError,
    DocParserError,
    JackfieldError,
    ModelServiceError,
    ToolServiceError,
)
from jackfield.events import PreparationProgress
from jackfield.messages import basename_of
from jackfield.plugins import Plugins
from jackfield.results import WARNINGS
from jackfield.retrieval import Chunk, Corpus, Document, Hit, Searcher, Where, make_searcher, unread_parts
from jackfield.runs import ReportProgress
from jackfield.sync import in_worker
from jackfield.work import part_of_run
from jackfield_counting.estimating import estimate_tokens
from jackfield_documents import (
    Expanded,
    Kept,
    Passage,
    RAGConfig,
    ask_all,
    asks_for_whole,
    best_within,
    choose,
    corpus_of,
    expand,
    failures_noted,
    fits_whole,
    front_part,
    fuse,
    headings_in_part,
    outline_of,
    overview,
    passages,
    score_as_json,
    scripts_of,
    why_nothing_reads,
    with_surroundings,
)
from jackfield_knowledge import PREFIX, ChangedIndexError, KeptCorpus, KnowledgeIndex

_KEPT_CORPORA = 8
_MAX_PREPARED = 32  # pairs of searcher and corpus; preparing one again is cheap
_TRIES = 5
_MAX_OVERVIEWED = 20_000  # chunks; a larger corpus gets no overview
_OUTLINE_SHARE = 4  # headings take at most a quarter of the tokens
_SAMPLED = 20  # chunks to sample for scripts
_SAMPLED_CHARS = 500


def ignore_progress(_: PreparationProgress) -> None:
    """Ignore progress reports."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The share of a document that the passages show.

    Attributes:
        source: The document's path or URL.
        count: The number of pages or parts with a passage.
        total: The total number of pages or parts.
        unit: The unit of both numbers. `parts` are chunks, used for documents without pages and for indexed documents.
    """

    source: str
    count: int
    total: int
    unit: Literal["pages", "parts"]


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """The result of a retrieval.

    Attributes:
        passages: The passages, grouped by source, in document order.
        hits: The hits, best first. Empty if the documents fit as a whole and no search was needed.
        errors: An error for each file or index that could not be read.
        chunks: The chunks that make up the passages.
        documents: The number of documents read or searched.
        skipped: A line for each reason why files in folders were skipped.
        unread: A line for each unread part, skipped file, error and outdated index.
        failures: A line for each searcher whose service failed. The remaining searchers were used.
        shown: How much of each document is shown. Empty if all documents are shown in full.
        matched: False if nothing matches the query and the passages are just the beginnings of the documents.
        outlines: The documents' headings, if the query asks about documents as a whole.
        scripts: The writing systems found in a sample of the documents.
    """

    passages: list[Passage]
    hits: tuple[Hit, ...] = ()
    errors: tuple[DocParserError, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    documents: int = 0
    skipped: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    shown: tuple[Shown, ...] = ()
    matched: bool = True
    outlines: tuple[Passage, ...] = ()
    scripts: frozenset[str] = frozenset()

    def metadata(self) -> dict[str, object]:
        """Return metadata for programs: the sources, the hits with their rank per searcher, and any problems.

        If nothing matches, `sources` omits documents that are represented only by their beginnings.
        """
        shown = {chunk.id for chunk in self.chunks}
        hits = [hit for hit in self.hits if hit.chunk.id in shown]
        places = [_place(hit.chunk) for hit in hits]
        names = [_source(entry) for entry in self.passages]
        return {
            "sources": places or (names if self.matched else []),
            "passages": sum(len(entry["text"]) for entry in self.passages),
            "hits": [
                {**position, "score": score_as_json(hit.score), "ranks": dict(hit.ranks)}
                for position, hit in zip(places, hits, strict=True)
            ],
            "documents": self.documents,
            "errors": list(map(str, self.errors)),
            "skipped": list(self.skipped),
            WARNINGS: list(self.unread),
            "failures": list(self.failures),
            "matched": self.matched,
            "shown": [
                {"location": basename_of(one.source), "count": one.count, "total": one.total, "unit": one.unit}
                for one in self.shown
            ],
        }


@dataclass(frozen=True, slots=True)
class _Knowledge:
    """The sources of a search: chunks from files, and on-disk indexes."""

    files: Corpus
    indexes: tuple[KeptCorpus, ...]
    documents: int
    errors: tuple[DocParserError, ...]
    skipped: tuple[str, ...]
    unread: tuple[str, ...]


class Retriever:
    """Retrieves passages from files, folders, glob patterns and indexes. Documents and indexes are cached by content.

    Args:
        config: Sizes, parsers, searchers and limits.
        host: The plugin host that provides the parsers and searchers.

    Raises:
        ConfigError: A configured parser is not installed, or its settings are invalid.
    """

    def __init__(self, config: RAGConfig, host: Plugins) -> None:
        self._config = config.with_included_model(host)
        self._host = host
        self._reader = config.reader(host)
        self._corpora: Kept[tuple[str, ...], Corpus] = Kept(_KEPT_CORPORA)
        self._searchers: dict[str, Searcher] = {}
        self._prepared: deque[tuple[str, str]] = deque(maxlen=_MAX_PREPARED)
        self._indexes: dict[str, KnowledgeIndex] = {}
        self._scripts: Kept[str, str] = Kept(_KEPT_CORPORA)

    async def expand(self, files: Iterable[str]) -> Expanded:
        """Expand folders and glob patterns to files. Index names are returned unchanged.

        Raises:
            ConfigError: The names expand to too many files.
        """
        try:
            why_not = why_nothing_reads(self._host, also=self._config.parser_for)
            return await in_worker(expand, list(files), why_not=why_not)
        except ConfigError as error:
            raise ConfigError(f"{error}. To build an index instead, run: jackfield index build NAME FILES") from error

    async def retrieve(
        self,
        query: str,
        files: Iterable[str],
        *,
        where: Mapping[str, object] | None = None,
        report: ReportProgress = ignore_progress,
    ) -> RetrievalResult:
        """Find passages that answer a query.

        Args:
            query: A question or keywords.
            files: Paths of files and folders, glob patterns, and `index:NAME` for an on-disk index.
            where: A filter, combined with the filter in the settings; see `Where.parse`.
            report: Receives progress while files are read and indexed.

        Raises:
            PluginError: A searcher is not installed or failed to load.
            ConfigError: There are too many files, or a filter does not fit the documents.
        """
        names = list(files)
        wanted = Where(
            tuple(one for filters in (self._config.where, where) if filters for one in Where.parse(filters).conditions)
        )
        with part_of_run("retrieval", "retrieval", query=query) as work:
            for _ in range(_TRIES):
                try:
                    with failures_noted() as failures:
                        found = await self._retrieve(query, names, wanted, report)
                except ChangedIndexError:  # it was built twice since it was opened
                    continue
                work.facts.update(passages=len(found.chunks), documents=found.documents)
                return replace(found, failures=tuple(failures))
        raise ConfigError("the index is being rebuilt faster than it can be searched: rebuild it less often")

    async def _retrieve(
        self, query: str, names: Sequence[str], wanted: Where, report: ReportProgress
    ) -> RetrievalResult:
        known = await self._known(names, report)
        corpora = [corpus for corpus in (known.files, *known.indexes) if corpus.chunks]
        where = await in_worker(_fitting, wanted, corpora) if wanted.conditions and corpora else None
        searched, everything = corpora, known
        if where is not None:
            known = replace(known, files=await in_worker(_selected, known.files, where))
            corpora = [corpus for corpus in (known.files, *known.indexes) if corpus.chunks]
        selective = self._config.top_k is not None or self._config.score_threshold is not None
        fits = len(corpora) == 1 and self._fits(corpora[0])
        scripts = await in_worker(self._scripts_of, corpora)
        if not fits and not selective and asks_for_whole(query, names=names):
            chunks = await in_worker(_all_chunks, corpora, where)
            if chunks:
                return await in_worker(self._overview, everything, chunks, scripts)
        is_searched = bool(query.strip()) and (selective or not fits)
        hits = await self._hits(query, searched, where, report) if is_searched else []
        shown_hits = await in_worker(self._with_surroundings, hits, searched, where)
        chosen = [] if selective and not hits else self._chosen(known, shown_hits, selective=selective)
        shown = () if fits and not selective and where is None else await in_worker(_shown, everything, chosen)
        return RetrievalResult(
            passages(chosen),
            tuple(hits),
            known.errors,
            tuple(chosen),
            known.documents,
            known.skipped,
            known.unread,
            shown=shown,
            matched=bool(hits) or not is_searched,
            scripts=scripts,
        )

    def _overview(self, known: _Knowledge, chunks: Sequence[Chunk], scripts: frozenset[str]) -> RetrievalResult:
        """Answer a question about whole documents with their beginnings, headings and selected parts."""
        by_source: defaultdict[str, list[Chunk]] = defaultdict(list)
        for chunk in chunks:
            by_source[chunk.source].append(chunk)
        most = self._config.max_ref_token // _OUTLINE_SHARE
        outlines = {
            source: outline_of(of_one, max_tokens=most // len(by_source)) for source, of_one in by_source.items()
        }
        texts: list[Passage] = [{"url": source, "text": [text]} for source, text in outlines.items() if text]
        used = sum(estimate_tokens(text) for text in outlines.values())
        chosen = overview(chunks, max_tokens=self._config.max_ref_token - used)
        return RetrievalResult(
            passages(chosen),
            (),
            known.errors,
            tuple(chosen),
            known.documents,
            known.skipped,
            known.unread,
            shown=_shown(known, chosen),
            outlines=tuple(texts),
            scripts=scripts,
        )

    def _scripts_of(self, corpora: Sequence[Corpus]) -> frozenset[str]:
        return scripts_of("\n".join(self._scripts.get(one.content_hash, partial(_sample, one)) for one in corpora))

    # --- sources ---

    async def _known(self, names: Sequence[str], report: ReportProgress) -> _Knowledge:
        expanded = await self.expand(names)
        files = [name for name in expanded.files if not name.startswith(PREFIX)]
        reading = await self._reader.read_all(
            (*files, *expanded.missing),
            on_progress=lambda done, total, name: report(PreparationProgress("reading files", done, total, name)),
        )
        indexes, unopened, outdated = await self._opened([one for one in expanded.files if one.startswith(PREFIX)])
        documents = len(reading.documents) + sum(one.facts.documents for one in indexes)
        if reading.documents:
            report(PreparationProgress("splitting texts into chunks"))
        plain, indexes = await self._joined(await in_worker(self._corpus, reading.documents), indexes)
        errors = (*reading.errors.values(), *unopened)
        parts = [line for document in reading.documents for line in unread_parts(document)]
        unread = [*map(str, errors), *parts, *map(str, expanded.skipped), *outdated]
        return _Knowledge(plain, indexes, documents, errors, tuple(expanded.lines()), tuple(unread))

    async def _opened(self, names: Sequence[str]) -> tuple[tuple[KeptCorpus, ...], list[DocParserError], list[str]]:
        """Open indexes. Return them with an error for each unusable one and a line for each outdated one."""
        opened, errors, outdated = list[KeptCorpus](), list[DocParserError](), list[str]()
        for name in names:
            try:
                if name not in self._indexes:
                    self._indexes[name] = KnowledgeIndex(name.removeprefix(PREFIX))
                opened.append(await in_worker(self._indexes[name].corpus))
                outdated.append(await in_worker(self._indexes[name].why_outdated, self._host))
            except ConfigError as error:
                errors.append(DocParserError(f"{name} cannot be read: {error}"))
        return tuple(opened), errors, list(filter(None, outdated))

    async def _joined(self, plain: Corpus, indexes: tuple[KeptCorpus, ...]) -> tuple[Corpus, tuple[KeptCorpus, ...]]:
        """Merge files and indexes into one corpus if it can be returned whole. Otherwise, keep them separate."""
        # The sum includes overlaps between chunks, which are removed later and make up at most half of the text.
        if not indexes or sum(one.facts.tokens for one in indexes) > 2 * self._config.max_ref_token:
            return plain, indexes
        whole = await in_worker(self._together, plain, indexes)
        return (whole, ()) if self._fits(whole) else (plain, indexes)

    def _corpus(self, documents: Sequence[Document]) -> Corpus:
        key = tuple(part for document in documents for part in (document.source, document.content_hash))

        def cut() -> Corpus:
            size, overlap = self._config.parser_page_size, self._config.chunk_overlap
            rules = self._config.metadata_rules
            return corpus_of(documents, size_tokens=size, overlap_chars=overlap, rules=rules)

        return self._corpora.get(key, cut)

    def _together(self, plain: Corpus, indexes: Sequence[KeptCorpus]) -> Corpus:
        """Merge files and small indexes into one corpus, without duplicates."""
        key = ("together", plain.content_hash, *(one.content_hash for one in indexes))

        def join() -> Corpus:
            chunks = {chunk.id: chunk for corpus in (plain, *indexes) for chunk in corpus.chunks}
            return Corpus(tuple(chunks.values()))

        return self._corpora.get(key, join)

    def _fits(self, corpus: Corpus) -> bool:
        """Return True if a corpus is small enough to be returned whole. Never reads the chunks of an index."""
        if isinstance(corpus, KeptCorpus):
            return False
        return fits_whole(corpus, max_tokens=self._config.max_ref_token)

    # --- searching ---

    async def _hits(
        self, query: str, corpora: Sequence[Corpus], where: Where | None, report: ReportProgress
    ) -> list[Hit]:
        if not corpora:
            return []
        limit = self._config.top_k or max(50, self._config.max_ref_token // 50)
        searches = {
            name: partial(self._ranking, name, settings, query, corpora, limit=limit, where=where, report=report)
            for name, settings in self._config.searchers.items()
        }
        rankings = await ask_all(searches)
        if len(rankings) == 1:
            hits = next(iter(rankings.values()))
        else:
            config = self._config
            hits = fuse(rankings, weights=config.weights, k=config.fusion_k, by=config.fusion)
        threshold = self._config.score_threshold
        return [hit for hit in hits[:limit] if threshold is None or hit.score >= threshold]

    async def _ranking(
        self,
        name: str,
        settings: Mapping[str, object],
        query: str,
        corpora: Sequence[Corpus],
        *,
        limit: int,
        where: Where | None,
        report: ReportProgress,
    ) -> list[Hit]:
        if name not in self._searchers:
            self._searchers[name] = make_searcher(name, settings, host=self._host)
        searcher = self._searchers[name]
        for corpus in corpora:
            await self._prepare(name, searcher, corpus, report)
        searches = [_search(name, searcher, query, corpus, limit=limit, where=where) for corpus in corpora]
        return _merged(name, await asyncio.gather(*searches))

    async def _prepare(self, name: str, searcher: Searcher, corpus: Corpus, report: ReportProgress) -> None:
        """Let a searcher index a corpus before the first search, and report the progress.

        Searchers without their own `prepare` index during the search.
        """
        if report is ignore_progress or type(searcher).prepare is Searcher.prepare:
            return
        key = (name, corpus.content_hash)
        if key in self._prepared:
            return
        step = f"indexing for {name}"
        # The search fails in the same way, and decides if it can do without this searcher.
        with suppress(ModelServiceError, ToolServiceError):
            await searcher.prepare(
                corpus, on_progress=lambda done, total: report(PreparationProgress(step, done, total, "chunks"))
            )
            self._prepared.append(key)

    # --- choosing ---

    def _with_surroundings(self, hits: Sequence[Hit], corpora: Sequence[Corpus], where: Where | None) -> Sequence[Hit]:
        if not (self._config.neighbours or self._config.whole_sections):
            return hits
        return with_surroundings(
            hits,
            corpora,
            neighbours=self._config.neighbours,
            whole_sections=self._config.whole_sections,
            max_tokens=self._config.max_ref_token,
            where=where,
        )

    def _chosen(self, known: _Knowledge, hits: Sequence[Hit], *, selective: bool) -> list[Chunk]:
        most = self._config.max_ref_token
        if not known.indexes:
            return choose(known.files, hits, max_tokens=most, all_if_it_fits=not selective)
        if not hits:
            return front_part(known.files, max_tokens=most)
        order = {
            source: number for number, source in enumerate(dict.fromkeys(one.source for one in known.files.chunks))
        }
        chosen = best_within(hits, max_tokens=most)
        return sorted(chosen, key=lambda chunk: (order.get(chunk.source, len(order)), chunk.source, chunk.index))


def _all_chunks(corpora: Sequence[Corpus], where: Where | None) -> list[Chunk]:
    """Return all chunks that pass the filter, without duplicates, or [] if there are too many."""
    numbers = [corpus.select(where).numbers if where else range(len(corpus.chunks)) for corpus in corpora]
    if sum(map(len, numbers)) > _MAX_OVERVIEWED:
        return []
    chunks = [corpus.chunks[number] for corpus, own in zip(corpora, numbers, strict=True) for number in own]
    return list({chunk.id: chunk for chunk in chunks}.values())


def _sample(corpus: Corpus) -> str:
    step = max(1, len(corpus.chunks) // _SAMPLED)
    numbers = range(0, len(corpus.chunks), step)[:_SAMPLED]
    return "\n".join(corpus.chunks[number].text[:_SAMPLED_CHARS] for number in numbers)


def _shown(known: _Knowledge, chosen: Sequence[Chunk]) -> tuple[Shown, ...]:
    """Return how much of each document is shown, or () if all documents are shown in full."""
    totals: defaultdict[str, list[Chunk]] = defaultdict(list)
    for chunk in known.files.chunks:
        totals[chunk.source].append(chunk)
    counts: defaultdict[str, list[Chunk]] = defaultdict(list)
    for chunk in chosen:
        counts[chunk.source].append(chunk)
    shown = []
    for source, of_one in counts.items():
        everything = totals.get(source, [])
        if everything and all(chunk.page is not None for chunk in everything):
            pages, total = ({(chunk.part, chunk.page) for chunk in chunks} for chunks in (of_one, everything))
            shown.append(Shown(source, len(pages), len(total), "pages"))
            continue
        count = len(everything) or max((index.count_chunks(source) for index in known.indexes), default=0)
        shown.append(Shown(source, len(of_one), max(count, len(of_one)), "parts"))
    is_whole = len(shown) == known.documents and all(one.count == one.total for one in shown)
    return () if is_whole and not any(chunk.is_cut for chunk in chosen) else tuple(shown)


def _fitting(where: Where, corpora: Sequence[Corpus]) -> Where:
    """Check a filter against all corpora together, and return it.

    Raises:
        ConfigError: No document has a key of the filter, or its values are of another kind.
    """
    kinds: dict[str, set[str]] = {}
    for corpus in corpora:
        for key, found in corpus.metadata_kinds.items():
            kinds.setdefault(key, set()).update(found)
    return where.check(kinds)


def _selected(corpus: Corpus, where: Where) -> Corpus:
    """Return the part of a corpus that passes a filter."""
    return Corpus(tuple(corpus.chunks[number] for number in corpus.select(where).numbers))


async def _search(
    name: str, searcher: Searcher, query: str, corpus: Corpus, *, limit: int, where: Where | None
) -> list[Hit]:
    """Search a corpus. Unexpected errors are translated to name the searcher."""
    try:
        hits: object = await searcher.search(query, corpus, limit=limit, where=where)
    except JackfieldError:
        raise
    except Exception as error:
        raise BrokenPluginError(f"searcher {name!r} failed ({type(error).__name__}: {error})") from error
    if not isinstance(hits, list) or not all(isinstance(hit, Hit) for hit in hits):
        raise BrokenPluginError(f"searcher {name!r} must return a list of Hit objects")
    return hits


def _merged(name: str, rankings: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Merge a searcher's hits in several corpora into one ranking without duplicates."""
    if len(rankings) == 1:
        return list(rankings[0])
    best: dict[str, Hit] = {}
    for hit in sorted((hit for ranking in rankings for hit in ranking), key=lambda hit: -hit.score):
        best.setdefault(hit.chunk.id, hit)
    return [Hit(hit.chunk, hit.score, {**hit.ranks, name: rank}) for rank, hit in enumerate(best.values(), start=1)]


def _source(passage: Passage) -> str | dict[str, str]:
    name = basename_of(passage["url"])
    return {"location": name, "part": passage["part"]} if "part" in passage else name


def _place(chunk: Chunk) -> dict[str, object]:
    """Describe the location of a chunk: the file, and its part, page and headings if known."""
    position: dict[str, object] = {"location": basename_of(chunk.source)}
    if chunk.part:
        position["part"] = chunk.part
    if chunk.page is not None:
        position["page"] = chunk.page
    if headings := headings_in_part(chunk):
        position["headings"] = list(headings)
    return position
