"""Add the chunks around hits: neighbours in the document, or the section."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jackfield.retrieval import Chunk, Corpus, Hit, Where, chunk_values


def with_surroundings(
    hits: Sequence[Hit],
    corpora: Sequence[Corpus],
    *,
    neighbours: int = 0,
    whole_sections: bool = False,
    max_tokens: int,
    where: Where | None = None,
) -> list[Hit]:
    """Return hits, each followed by the chunks around it, nearest first and without duplicates.

    Args:
        hits: The hits, best first.
        corpora: The corpora that were searched.
        neighbours: The number of chunks to add before and after each hit.
        whole_sections: True to also add the chunks under the hit's heading, including subheadings.
        max_tokens: The limit on the total tokens. The first chunk to exceed it is the last one returned.
        where: A filter that added chunks must match.
    """
    chosen: dict[str, Hit] = {}
    tokens = 0
    for hit in hits:
        for chunk in (hit.chunk, *_around(hit.chunk, corpora, neighbours, whole_sections, max_tokens)):
            is_hit = chunk is hit.chunk
            if chunk.id in chosen or not (is_hit or where is None or where.matches(chunk_values(chunk))):
                continue
            chosen[chunk.id] = hit if is_hit else Hit(chunk, hit.score)
            tokens += chunk.tokens
            if tokens > max_tokens:
                return list(chosen.values())
    return list(chosen.values())


def _around(
    chunk: Chunk, corpora: Sequence[Corpus], neighbours: int, whole_sections: bool, max_tokens: int
) -> Iterator[Chunk]:
    """Yield the chunks around a chunk, nearest first and earlier before later, until `max_tokens` is exceeded."""
    for corpus in corpora:
        number = corpus.number_of(chunk)
        if number is None or corpus.chunks[number].id != chunk.id:
            continue
        is_open = {-1: True, 1: True}
        distance = tokens = 0
        while any(is_open.values()) and tokens <= max_tokens:
            distance += 1
            for side in (-1, 1):
                other = _chunk_at(corpus, number + side * distance) if is_open[side] else None
                is_in = other is not None and (other.source, other.part) == (chunk.source, chunk.part)
                if not (is_in and other and (distance <= neighbours or (whole_sections and _is_under(other, chunk)))):
                    is_open[side] = False
                    continue
                tokens += other.tokens
                yield other
        return


def _chunk_at(corpus: Corpus, number: int) -> Chunk | None:
    return corpus.chunks[number] if 0 <= number < len(corpus.chunks) else None


def _is_under(other: Chunk, chunk: Chunk) -> bool:
    """Return True if `other` is under the heading of `chunk`, including subheadings."""
    depth = len(chunk.headings)
    return depth > 0 and other.headings[:depth] == chunk.headings
