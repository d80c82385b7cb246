"""Cut documents into chunks that can be found and shown on their own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from jackfield.retrieval import Block, Chunk, Corpus, Document
from jackfield.tokenizers import TokenCounter
from jackfield_counting.estimating import estimate_tokens
from jackfield_documents.cutting import cut_to_fit, tail_from_a_sentence
from jackfield_documents.places import BETWEEN_BLOCKS, places_of

_TABLE_RULE = re.compile(r"[\s:|]*+-[\s:|-]*+$")


def chunk_document(
    document: Document,
    *,
    size_tokens: int = 500,
    overlap_chars: int = 150,
    count_tokens: TokenCounter = estimate_tokens,
) -> list[Chunk]:
    """Cut a document into chunks; nothing is lost, and blocks stay whole while they fit.

    A chunk of a document with pages begins with a line `[page: N]`, and has one wherever the page changes. A heading
    stands with what follows it, and opens a new chunk when the one before it is half full. Where a text is cut on one
    page, the next chunk repeats the end of the one before it, across paragraphs; the rest of a table repeats the
    table's header.

    Args:
        document: What a parser made.
        size_tokens: The most tokens of a chunk, page lines and overlap included, at least 1. Only a chunk of a
            single character, with its page line, may have more.
        overlap_chars: The most characters that are repeated; 0 for none. Less is repeated where there is no room.
        count_tokens: How tokens are counted.

    Raises:
        ValueError: `size_tokens` is less than 1, or `overlap_chars` is negative.
    """
    if size_tokens < 1 or overlap_chars < 0:
        raise ValueError(
            f"size_tokens must be at least 1 and overlap_chars at least 0, got {size_tokens}, {overlap_chars}"
        )
    cut = _Cut(size_tokens, overlap_chars, count_tokens)
    pieces = list(_pieces(document, cut))
    chunks: list[Chunk] = []
    before = start = 0
    while start < len(pieces):
        draft, end = _next_chunk(pieces, before, start, cut)
        joint = _joint(pieces[start - 1], pieces[start]) if start else None
        chunks.append(_chunk(document, draft, pieces[start], len(chunks), joint))
        before, start = start, end
    return chunks


def corpus_of(
    documents: Iterable[Document],
    *,
    size_tokens: int = 500,
    overlap_chars: int = 150,
    count_tokens: TokenCounter = estimate_tokens,
) -> Corpus:
    """The chunks of several documents, in their order; see `chunk_document`."""
    return Corpus(
        tuple(
            chunk
            for document in documents
            for chunk in chunk_document(
                document, size_tokens=size_tokens, overlap_chars=overlap_chars, count_tokens=count_tokens
            )
        )
    )


def page_line(page: int | None) -> str:
    """The line before the text of a page; '' if there are no pages."""
    return "" if page is None else f"[page: {page}]\n"


@dataclass(frozen=True, slots=True)
class _Cut:
    """How to cut."""

    size: int
    overlap_chars: int
    count: TokenCounter

    @property
    def size_with_room(self) -> int:
        """The size of a part of a block that is cut anyway: it leaves room for what the next chunk repeats."""
        return self.size - min(self.overlap_chars // 3, self.size // 4)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A block, or a part of one that is longer than a chunk.

    `glue` stands between it and the piece before it; `lead` is repeated where it opens a chunk.
    """

    text: str
    tokens: int
    page: int | None
    headings: tuple[str, ...]
    kind: str
    glue: str = BETWEEN_BLOCKS
    lead: str = ""

    @property
    def is_heading(self) -> bool:
        return self.kind == "heading"

    @property
    def is_prose(self) -> bool:
        return self.kind in ("paragraph", "list")


@dataclass(frozen=True, slots=True)
class _Draft:
    """The text of a chunk to be."""

    text: str
    tokens: int
    overlap: int


# --- blocks to pieces ---


def _pieces(document: Document, cut: _Cut) -> Iterator[_Piece]:
    for place in places_of(document):
        yield from _pieces_of(place.block, place.page, place.headings, cut)


def _pieces_of(block: Block, page: int | None, headings: tuple[str, ...], cut: _Cut) -> Iterator[_Piece]:
    text = _shown(block)
    opening = page_line(page)
    tokens = cut.count(text)
    # Counted with its page line only where that could matter: counting is most of the work.
    if 2 * (tokens + len(opening)) < cut.size or cut.count(opening + text) <= cut.size:
        yield _Piece(text, tokens, page, headings, block.kind)
        return
    lead = _table_header(text, cut) if block.kind == "table" else ""
    by_line = block.kind in ("table", "code")
    parts = cut_to_fit(text, cut.size_with_room, lambda part: cut.count(opening + lead + part), by_line=by_line)
    glue, above = BETWEEN_BLOCKS, ""
    for part in parts:
        if not part.strip():
            glue += part  # it is shown between two parts, and is none itself: a page line would stand before nothing
            continue
        yield _Piece(part, cut.count(part), page, headings, block.kind, glue, above)
        glue, above = "", lead


def _shown(block: Block) -> str:
    return f"{'#' * min(block.level, 6)} {block.text}" if block.kind == "heading" and block.level else block.text


def _table_header(text: str, cut: _Cut) -> str:
    """The first two lines of a pipe table, or '' if they are none or would take more than a third of a chunk."""
    lines = text.split("\n", 2)
    if len(lines) < 3 or not _TABLE_RULE.match(lines[1].strip()):
        return ""
    header = f"{lines[0]}\n{lines[1]}\n"
    return header if 3 * cut.count(header) <= cut.size else ""


# --- pieces to chunks ---


def _next_chunk(pieces: Sequence[_Piece], before: int, start: int, cut: _Cut) -> tuple[_Draft, int]:
    """The chunk that begins with a piece, and the place of the piece after it; `before` is where the last one began."""
    first = pieces[start]
    # +1 for each glue, here and below.
    used = cut.count(page_line(first.page)) + 1
    repeated = _repeated(pieces, before, start, cut, room=cut.size - used - first.tokens)
    end = _end_of_chunk(pieces, start, used + cut.count(repeated), cut)
    draft = _draft(pieces[start:end], repeated, cut)
    # The tokens of a text are not quite the sum of its parts'.
    while draft.tokens > cut.size and (repeated or end - start > 1):
        if end - start > 1:
            end -= 1
        else:
            repeated = ""
        draft = _draft(pieces[start:end], repeated, cut)
    return draft, end


def _repeated(pieces: Sequence[_Piece], before: int, start: int, cut: _Cut, *, room: int) -> str:
    """What a chunk repeats of the one before it, with the glue between them, in at most `room` tokens."""
    first = pieces[start]
    if first.lead:
        return first.lead if cut.count(first.lead) <= room else ""
    text = _repeatable(pieces[before:start], first, cut.overlap_chars)
    chars = min(len(text), cut.overlap_chars)
    while chars > 0:
        repeated = tail_from_a_sentence(text, chars) + first.glue
        if not repeated.strip():
            return ""
        if cut.count(repeated) <= room:
            return repeated
        chars = chars * 3 // 4
    return ""


def _repeatable(pieces: Sequence[_Piece], first: _Piece, chars: int) -> str:
    """The end of a chunk's prose, on the page where the next one begins; longer than `chars` if there is so much."""
    parts: list[str] = []
    size, following = 0, first
    for piece in reversed(pieces):
        if size > chars or not _is_same_prose(piece, following):
            break
        parts += [following.glue, piece.text]
        size, following = size + len(piece.text), piece
    return "".join(reversed(parts[1:]))  # without the glue to what is repeated


def _is_same_prose(before: _Piece, piece: _Piece) -> bool:
    return before.page == piece.page and before.is_prose and piece.is_prose


def _joint(before: _Piece, piece: _Piece) -> str:
    """What stands between two pieces where a document is shown unbroken."""
    return piece.glue + (page_line(piece.page) if piece.page != before.page else "")


def _end_of_chunk(pieces: Sequence[_Piece], start: int, used: int, cut: _Cut) -> int:
    used += pieces[start].tokens
    end = start + 1
    while end < len(pieces):
        piece, before = pieces[end], pieces[end - 1]
        if piece.is_heading and not before.is_heading and 2 * used > cut.size:
            return end
        used += piece.tokens + 1 + (cut.count(page_line(piece.page)) if piece.page != before.page else 0)
        if used > cut.size:
            return _before_headings(pieces, start, end)
        end += 1
    return end


def _before_headings(pieces: Sequence[_Piece], start: int, end: int) -> int:
    """Where the headings at the end begin, which belong to what follows; `end` if there is nothing but headings."""
    last = end
    while last > start and pieces[last - 1].is_heading:
        last -= 1
    return last if last > start else end


def _draft(pieces: Sequence[_Piece], repeated: str, cut: _Cut) -> _Draft:
    parts = [page_line(pieces[0].page), repeated, pieces[0].text]
    for before, piece in pairwise(pieces):
        parts += [_joint(before, piece), piece.text]
    text = "".join(parts)
    return _Draft(text, cut.count(text), len(repeated))


def _chunk(document: Document, draft: _Draft, first: _Piece, index: int, joint: str | None) -> Chunk:
    # The text is part of the id: another version of a parser may read the same bytes differently.
    identity = "\0".join((document.source, str(index), document.title, *first.headings, draft.text))
    return Chunk(
        id=hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:32],
        source=document.source,
        text=draft.text,
        index=index,
        tokens=draft.tokens,
        page=first.page,
        headings=first.headings,
        title=document.title,
        overlap=draft.overlap,
        joint=joint,
    )
