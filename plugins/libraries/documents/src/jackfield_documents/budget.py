"""Choose what is shown to a model, within a number of tokens."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

from jackfield.retrieval import Chunk, Corpus, Hit, shown_path
from jackfield.tokenizers import TokenCounter
from jackfield_counting.estimating import estimate_tokens
from jackfield_documents.chunking import page_line
from jackfield_documents.cutting import head_that_fits

# What is left of a page line, or of its beginning, where nothing follows it.
_PAGE_LINE_AT_END = re.compile(r"(?<!\s)\s*+^\[(?:page: ?\d*\]?|[page]{0,4})\s*\Z", re.MULTILINE)


class Passage(TypedDict):
    """The texts of one source, in document order; neighbouring chunks are one text."""

    url: str
    text: list[str]


def choose(
    corpus: Corpus,
    hits: Sequence[Hit],
    *,
    max_tokens: int,
    all_if_it_fits: bool = True,
    count_tokens: TokenCounter = estimate_tokens,
) -> list[Chunk]:
    """What to show of a corpus: all of it if that fits, else the best hits, else, without hits, its front part.

    Returns:
        Chunks in document order, together at most `max_tokens`; the last one taken may be cut.
    """
    if all_if_it_fits and fits_whole(corpus, max_tokens=max_tokens, count_tokens=count_tokens):
        return list(corpus.chunks)
    if not hits:
        return front_part(corpus, max_tokens=max_tokens, count_tokens=count_tokens)
    chosen = best_within(hits, max_tokens=max_tokens, count_tokens=count_tokens)
    place = {chunk.id: number for number, chunk in enumerate(corpus.chunks)}
    return sorted(chosen, key=lambda chunk: place.get(chunk.id, len(place)))


def fits_whole(corpus: Corpus, *, max_tokens: int, count_tokens: TokenCounter = estimate_tokens) -> bool:
    """Whether all of a corpus fits, as `passages` shows it: text that chunks repeat counts once."""
    total = sum(chunk.tokens for chunk in corpus.chunks)
    if total <= max_tokens:
        return True
    repeated = sum(chunk.overlap + len(page_line(chunk.page)) for chunk in corpus.chunks)
    if total - 2 * repeated > max_tokens:  # a character has hardly ever more than two tokens
        return False
    return sum(count_tokens(text) for entry in passages(corpus.chunks) for text in entry["text"]) <= max_tokens


def best_within(hits: Sequence[Hit], *, max_tokens: int, count_tokens: TokenCounter = estimate_tokens) -> list[Chunk]:
    """The chunks of the best hits, best first: whole while they fit; the first that does not is cut to what is left."""
    return _first_within((hit.chunk for hit in hits), max_tokens, count_tokens)


def front_part(corpus: Corpus, *, max_tokens: int, count_tokens: TokenCounter = estimate_tokens) -> list[Chunk]:
    """The beginning of every document, with an equal share of the tokens; what one does not need goes to the others."""
    by_source: defaultdict[str, list[Chunk]] = defaultdict(list)
    for chunk in corpus.chunks:
        by_source[chunk.source].append(chunk)
    sizes = {source: sum(chunk.tokens for chunk in chunks) for source, chunks in by_source.items()}
    shares = _shares(sizes, max_tokens)
    return [
        chunk
        for source, chunks in by_source.items()  # in the order of the corpus
        for chunk in _first_within(chunks, shares[source], count_tokens)
    ]


def _shares(sizes: Mapping[str, int], most: int) -> dict[str, int]:
    """How much each may have of what there is: as much as the others, if it needs so much."""
    rest, shares = most, dict[str, int]()
    for left, source in zip(range(len(sizes), 0, -1), sorted(sizes, key=sizes.__getitem__), strict=True):
        shares[source] = min(sizes[source], rest // left)
        rest -= shares[source]
    return shares


def passages(chunks: Iterable[Chunk]) -> list[Passage]:
    """Group chunks by source, in the order of their first chunk.

    Chunks that follow each other in their document become one text, as in the document: without the overlap, and with
    a page line only where the page changes.
    """
    grouped: dict[str, Passage] = {}
    parts: dict[str, list[list[str]]] = defaultdict(list)
    before: Chunk | None = None
    for chunk in chunks:
        grouped.setdefault(chunk.source, {"url": shown_path(chunk.source), "text": []})
        if before is not None and chunk.joint is not None and _is_next(chunk, before):
            parts[chunk.source][-1] += [chunk.joint, chunk.text[_start_of_own(chunk) :]]
        else:
            parts[chunk.source].append([chunk.text])
        before = chunk
    for source, entry in grouped.items():
        entry["text"] = ["".join(texts) for texts in parts[source]]
    return list(grouped.values())


def _is_next(chunk: Chunk, before: Chunk) -> bool:
    return chunk.source == before.source and chunk.index == before.index + 1 and not before.is_cut


def _start_of_own(chunk: Chunk) -> int:
    """Where in a chunk the text begins that is its own."""
    return len(page_line(chunk.page)) + chunk.overlap


def _first_within(chunks: Iterable[Chunk], max_tokens: int, count_tokens: TokenCounter) -> list[Chunk]:
    taken: list[Chunk] = []
    rest = max_tokens
    for chunk in chunks:
        if chunk.tokens > rest:
            part = _cut(chunk, rest, count_tokens)
            return [*taken, part] if part else taken
        taken.append(chunk)
        rest -= chunk.tokens
    return taken


def _cut(chunk: Chunk, max_tokens: int, count_tokens: TokenCounter) -> Chunk | None:
    """The beginning of a chunk, or None if nothing fits but page lines and what it repeats."""
    start = _start_of_own(chunk)
    opening, rest = chunk.text[:start], chunk.text[start:]
    length = head_that_fits(rest, max_tokens, lambda part: count_tokens(opening + part))
    own = rest[:length] if chunk.page is None else _PAGE_LINE_AT_END.sub("", rest[:length])
    if not own.strip():
        return None
    text = opening + own
    return replace(chunk, text=text, tokens=count_tokens(text), is_cut=True)
