"""Choose what is shown to a model, within so many tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypedDict

from jackfield.retrieval.base import Chunk, Corpus, Hit, shown_path
from jackfield.retrieval.chunking import page_line
from jackfield.retrieval.cutting import head_that_fits
from jackfield.tokens import TokenCounter, estimate_tokens


class Passage(TypedDict):
    """The texts of one source, in document order."""

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
    if all_if_it_fits and sum(chunk.tokens for chunk in corpus.chunks) <= max_tokens:
        return list(corpus.chunks)
    if not hits:
        return front_part(corpus, max_tokens=max_tokens, count_tokens=count_tokens)
    chosen = best_within(hits, max_tokens=max_tokens, count_tokens=count_tokens)
    place = {chunk.id: number for number, chunk in enumerate(corpus.chunks)}
    return sorted(chosen, key=lambda chunk: place.get(chunk.id, len(place)))


def best_within(hits: Sequence[Hit], *, max_tokens: int, count_tokens: TokenCounter = estimate_tokens) -> list[Chunk]:
    """The chunks of the best hits, best first: whole while they fit, the first that does not is cut to the rest."""
    return _first_within((hit.chunk for hit in hits), max_tokens, count_tokens)


def front_part(corpus: Corpus, *, max_tokens: int, count_tokens: TokenCounter = estimate_tokens) -> list[Chunk]:
    """The beginning of every document, an equal share of the tokens for each."""
    by_source = Counter(chunk.source for chunk in corpus.chunks)
    share = max_tokens // max(1, len(by_source))
    return [
        chunk
        for source in by_source  # in the order of the corpus
        for chunk in _first_within((c for c in corpus.chunks if c.source == source), share, count_tokens)
    ]


def passages(chunks: Iterable[Chunk]) -> list[Passage]:
    """Group chunks by source, in the order of their first chunk.

    What a chunk repeats of the one before it is left out where that one stands there, too.
    """
    grouped: dict[str, Passage] = {}
    before: Chunk | None = None
    for chunk in chunks:
        entry = grouped.setdefault(chunk.source, {"url": shown_path(chunk.source), "text": []})
        entry["text"].append(_without_overlap(chunk, before) if before else chunk.text)
        before = chunk
    return list(grouped.values())


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
    """The beginning of a chunk, or None if nothing fits but its page line and what it repeats."""
    start = len(page_line(chunk.page)) + chunk.overlap
    opening, rest = chunk.text[:start], chunk.text[start:]
    length = head_that_fits(rest, max_tokens, lambda part: count_tokens(opening + part))
    if not length:
        return None
    text = opening + rest[:length]
    return replace(chunk, text=text, tokens=count_tokens(text))


def _without_overlap(chunk: Chunk, before: Chunk) -> str:
    start = len(page_line(chunk.page))
    repeated = chunk.text[start : start + chunk.overlap].strip()
    # The text is compared because the chunk before may have been cut, or be another's.
    if before.source == chunk.source and repeated and before.text.rstrip().endswith(repeated):
        return chunk.text[:start] + chunk.text[start + chunk.overlap :]
    return chunk.text
