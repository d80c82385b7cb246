"""Choose the passages to show to a model within a token budget."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NotRequired, TypedDict

from jackfield.retrieval import Chunk, Corpus, Hit, shown_path
from jackfield.tokenizers import TokenCounter
from jackfield_counting.estimating import estimate_tokens
from jackfield_documents.chunking import page_line
from jackfield_documents.cutting import head_that_fits

# A page line, or the beginning of one, at the end of a text.
_PAGE_LINE_AT_END = re.compile(r"(?<!\s)\s*+^\[(?:page: ?\d*\]?|[page]{0,4})\s*\Z", re.MULTILINE)


class Passage(TypedDict):
    """The texts of one source, in document order. Adjacent chunks are merged into one text.

    Attributes:
        url: The source's path or URL.
        text: The texts.
        part: The embedded file that contains the texts, if any; see `Chunk.part`.
    """

    url: str
    text: list[str]
    part: NotRequired[str]


def choose(
    corpus: Corpus,
    hits: Sequence[Hit],
    *,
    max_tokens: int,
    all_if_it_fits: bool = True,
    count_tokens: TokenCounter = estimate_tokens,
) -> list[Chunk]:
    """Choose chunks to show: the whole corpus if it fits, else the best hits, else the front part of each document.

    Returns:
        Chunks in document order, at most `max_tokens` in total. The last chunk chosen may be truncated.
    """
    if all_if_it_fits and fits_whole(corpus, max_tokens=max_tokens, count_tokens=count_tokens):
        return list(corpus.chunks)
    if not hits:
        return front_part(corpus, max_tokens=max_tokens, count_tokens=count_tokens)
    chosen = best_within(hits, max_tokens=max_tokens, count_tokens=count_tokens)
    position = {chunk.id: number for number, chunk in enumerate(corpus.chunks)}
    return sorted(chosen, key=lambda chunk: position.get(chunk.id, len(position)))


def fits_whole(corpus: Corpus, *, max_tokens: int, count_tokens: TokenCounter = estimate_tokens) -> bool:
    """Return True if the whole corpus fits when shown by `passages`, which shows overlaps between chunks only once."""
    total = sum(chunk.tokens for chunk in corpus.chunks)
    if total <= max_tokens:
        return True
    repeated = sum(chunk.overlap + len(page_line(chunk.page)) for chunk in corpus.chunks)
    if total - 2 * repeated > max_tokens:  # a character rarely has more than two tokens
        return False
    return sum(count_tokens(text) for entry in passages(corpus.chunks) for text in entry["text"]) <= max_tokens


def best_within(hits: Sequence[Hit], *, max_tokens: int, count_tokens: TokenCounter = estimate_tokens) -> list[Chunk]:
    """Return the chunks of the best hits, best first, ending with a truncated chunk if one does not fit."""
    return take_within((hit.chunk for hit in hits), max_tokens, count_tokens)


def front_part(corpus: Corpus, *, max_tokens: int, count_tokens: TokenCounter = estimate_tokens) -> list[Chunk]:
    """Return the beginning of each document. Documents share the tokens equally; longer ones get any surplus."""
    by_source: defaultdict[str, list[Chunk]] = defaultdict(list)
    for chunk in corpus.chunks:
        by_source[chunk.source].append(chunk)
    sizes = {source: sum(chunk.tokens for chunk in chunks) for source, chunks in by_source.items()}
    shares = share_tokens(sizes, max_tokens)
    return [
        chunk
        for source, chunks in by_source.items()  # in the order of the corpus
        for chunk in take_within(chunks, shares[source], count_tokens)
    ]


def share_tokens(sizes: Mapping[str, int], available: int) -> dict[str, int]:
    """Divide the available tokens equally, without giving any source more than its size."""
    shares: dict[str, int] = {}
    smallest_first = sorted(sizes, key=lambda source: sizes[source])
    for index, source in enumerate(smallest_first):
        shares[source] = min(sizes[source], available // (len(sizes) - index))
        available -= shares[source]
    return shares


def passages(chunks: Iterable[Chunk], *, mark: Callable[[Chunk], str] | None = None) -> list[Passage]:
    """Group chunks by source, ordered by each source's first chunk.

    Adjacent chunks are merged into one text, as in the document: overlaps appear once, and page lines only where the
    page changes.

    Args:
        chunks: The chunks.
        mark: Returns a line to insert before a chunk's text, including the text repeated from the previous chunk.
    """
    parts: dict[tuple[str, str], list[list[str]]] = defaultdict(list)
    previous: Chunk | None = None
    for chunk in chunks:
        line = f"{mark(chunk)}\n" if mark else ""
        if previous is not None and chunk.joint is not None and _is_next(chunk, previous):
            texts = parts[chunk.source, chunk.part][-1]
            if line:
                texts += _with_line_before_overlap(texts.pop() + chunk.joint, line, chunk)
            else:
                texts.append(chunk.joint)
            texts.append(chunk.text[_start_of_new_text(chunk) :])
        else:
            parts[chunk.source, chunk.part].append([line, chunk.text])
        previous = chunk
    result: list[Passage] = []
    for (source, part), of_part in parts.items():
        passage: Passage = {"url": shown_path(source), "text": ["".join(text_parts) for text_parts in of_part]}
        if part:
            passage["part"] = part
        result.append(passage)
    return result


def _with_line_before_overlap(text: str, line: str, chunk: Chunk) -> list[str]:
    """Split a text before the part that the next chunk repeats, and insert a line there."""
    repeated = chunk.text[len(page_line(chunk.page)) : _start_of_new_text(chunk)]
    start = len(text) - (len(repeated) if text.endswith(repeated) else 0)  # tables repeat their header instead
    before = text[:start]
    return [before, "" if before.endswith("\n") or not before else "\n", line, text[start:]]


def _is_next(chunk: Chunk, previous: Chunk) -> bool:
    is_same_file = (chunk.source, chunk.part) == (previous.source, previous.part)
    return is_same_file and chunk.index == previous.index + 1 and not previous.is_cut


def _start_of_new_text(chunk: Chunk) -> int:
    """Return the offset at which a chunk's own text begins, after the page line and the repeated text."""
    return len(page_line(chunk.page)) + chunk.overlap


def take_within(chunks: Iterable[Chunk], max_tokens: int, count_tokens: TokenCounter) -> list[Chunk]:
    """Return the leading chunks that fit, followed by a truncated chunk if there is room."""
    chosen: list[Chunk] = []
    remaining = max_tokens
    for chunk in chunks:
        if chunk.tokens > remaining:
            part = _truncate(chunk, remaining, count_tokens)
            return [*chosen, part] if part else chosen
        chosen.append(chunk)
        remaining -= chunk.tokens
    return chosen


def _truncate(chunk: Chunk, max_tokens: int, count_tokens: TokenCounter) -> Chunk | None:
    """Return a chunk's beginning, or None if only page lines and repeated text fit."""
    start = _start_of_new_text(chunk)
    opening, rest = chunk.text[:start], chunk.text[start:]
    length = head_that_fits(rest, max_tokens, lambda part: count_tokens(opening + part))
    own = rest[:length] if chunk.page is None else _PAGE_LINE_AT_END.sub("", rest[:length])
    if not own.strip():
        return None
    text = opening + own
    return replace(chunk, text=text, tokens=count_tokens(text), is_cut=True)
