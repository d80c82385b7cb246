"""Split documents into chunks that can be searched and shown independently."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from jackfield.retrieval import Chunk, Corpus, Document, MetadataValue
from jackfield.tokenizers import TokenCounter
from jackfield_counting.estimating import estimate_tokens
from jackfield_documents.cutting import cut_and_count, tail_from_a_sentence
from jackfield_documents.places import BETWEEN_BLOCKS, Place, places_of
from jackfield_documents.selecting import MetadataRules, metadata_of, stated_metadata

CUT_VERSION = "3"
"""Changes whenever documents are split differently, so that saved indexes split their documents again."""

_SAMPLE_CHARS_PER_TOKEN = 20
_TABLE_RULE = re.compile(r"[\s:|]*+-[\s:|-]*+$")


def chunk_document(
    document: Document,
    *,
    size_tokens: int = 500,
    overlap_chars: int = 150,
    count_tokens: TokenCounter = estimate_tokens,
    metadata: Mapping[str, MetadataValue] | None = None,
) -> list[Chunk]:
    """Split a document into chunks. No text is lost, and blocks stay whole if they fit.

    A chunk never spans two embedded files. In a document with pages, each chunk begins with a line `[page: N]` and has
    another wherever the page changes. A heading stays with the block after it, and starts a new chunk if the current
    one is at least half full. If prose is split within a page, the next chunk repeats the end of the previous one,
    across paragraphs. If a table is split, each further chunk repeats the table's header.

    Args:
        document: The parsed document.
        size_tokens: The maximum tokens per chunk, including page lines and overlap; at least 1. Only a chunk of a
            single character, with its page line, may exceed the maximum.
        overlap_chars: The maximum number of characters to repeat, or 0 for none. Chunks without room repeat less.
        count_tokens: Counts a text's tokens.
        metadata: The values for filtering the chunks. Defaults to the values that the file states.

    Raises:
        ValueError: `size_tokens` is less than 1, or `overlap_chars` is negative.
    """
    if size_tokens < 1 or overlap_chars < 0:
        raise ValueError(
            f"size_tokens must be at least 1 and overlap_chars at least 0, got {size_tokens}, {overlap_chars}"
        )
    cut = _Cut(size_tokens, overlap_chars, count_tokens)
    pieces = [piece for place in places_of(document) for piece in _split_block(place, cut)]
    values = stated_metadata(document) if metadata is None else metadata
    chunks: list[Chunk] = []
    previous = start = 0
    while start < len(pieces):
        draft, end = _next_chunk(pieces, previous, start, cut)
        joint = _joint(pieces[start - 1], pieces[start]) if start else None
        chunks.append(_chunk(document, draft, pieces[start], len(chunks), joint, metadata=values))
        previous, start = start, end
    return chunks


def corpus_of(
    documents: Iterable[Document],
    *,
    size_tokens: int = 500,
    overlap_chars: int = 150,
    count_tokens: TokenCounter = estimate_tokens,
    rules: MetadataRules = (),
) -> Corpus:
    """Split documents into one corpus, in order. See `chunk_document`, and `metadata_of` for `rules`."""
    return Corpus(
        tuple(
            chunk
            for document in documents
            for chunk in chunk_document(
                document,
                size_tokens=size_tokens,
                overlap_chars=overlap_chars,
                count_tokens=count_tokens,
                metadata=metadata_of(document, rules),
            )
        )
    )


def page_line(page: int | None) -> str:
    """Return the line that marks a page, or '' in documents without pages."""
    return "" if page is None else f"[page: {page}]\n"


@dataclass(frozen=True, slots=True)
class _Cut:
    """The parameters of `chunk_document`."""

    size: int
    overlap_chars: int
    count: TokenCounter

    @property
    def part_size(self) -> int:
        """The maximum size of each part of a split block, which leaves room for the overlap."""
        return self.size - min(self.overlap_chars // 3, self.size // 4)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A block, or a part of a block that is too long for one chunk.

    `tokens` may differ a little from the text's own count. The sum only decides which chunks to try, and whole chunks
    are then counted exactly. `glue` separates a piece from the previous one. `lead` is repeated before a piece that
    starts a chunk.
    """

    text: str
    tokens: int
    page: int | None
    headings: tuple[str, ...]
    kind: str
    part: str
    glue: str = BETWEEN_BLOCKS
    lead: str = ""

    @property
    def is_heading(self) -> bool:
        return self.kind == "heading"

    @property
    def position(self) -> tuple[str, int | None]:
        return (self.part, self.page)

    @property
    def is_prose(self) -> bool:
        return self.kind in ("paragraph", "list")


@dataclass(frozen=True, slots=True)
class _Draft:
    """The text of a chunk to be built."""

    text: str
    tokens: int
    overlap: int


# --- blocks to pieces ---


def _split_block(place: Place, cut: _Cut) -> Iterator[_Piece]:
    block, page, headings = place.block, place.page, place.headings
    text = f"{'#' * min(block.level, 6)} {block.text}" if block.kind == "heading" and block.level else block.text
    opening = page_line(page)
    # The beginning of a very long text already shows that it must be split, which saves counting the rest.
    counted = text[: _SAMPLE_CHARS_PER_TOKEN * cut.size]
    tokens = cut.count(counted)
    if len(counted) < len(text) and tokens <= 2 * cut.size:
        counted, tokens = text, cut.count(text)
    # The text is counted with its page line only if that could matter.
    is_short = 2 * (tokens + len(opening)) < cut.size
    if is_short or (tokens <= 2 * cut.size and (cut.count(opening + text) if opening else tokens) <= cut.size):
        yield _Piece(text, tokens, page, headings, block.kind, block.part)
        return
    lead = _table_header(text, cut) if block.kind == "table" else ""
    before = opening + lead
    tokens_before = cut.count(before) if before else 0
    parts = cut_and_count(
        text,
        cut.part_size,
        (lambda part: cut.count(before + part)) if before else cut.count,
        by_line=block.kind in ("table", "code"),
        tokens_per_char=tokens / len(counted),
    )
    glue = BETWEEN_BLOCKS
    is_first = True
    for part, tokens_with_opening in parts:
        if not part.strip():
            glue += part  # white space joins two pieces; as a piece it would put a page line before nothing
            continue
        part_tokens = max(1, tokens_with_opening - tokens_before)
        yield _Piece(part, part_tokens, page, headings, block.kind, block.part, glue, "" if is_first else lead)
        glue = ""
        is_first = False


def _table_header(text: str, cut: _Cut) -> str:
    """Return a pipe table's header and rule, or '' if it has none or they take more than a third of a chunk."""
    lines = text.split("\n", 2)
    if len(lines) < 3 or not _TABLE_RULE.match(lines[1].strip()):
        return ""
    header = f"{lines[0]}\n{lines[1]}\n"
    return header if 3 * cut.count(header) <= cut.size else ""


# --- pieces to chunks ---


def _next_chunk(pieces: Sequence[_Piece], previous: int, start: int, cut: _Cut) -> tuple[_Draft, int]:
    """Return the chunk that begins with the piece at `start`, and its end. The previous chunk began at `previous`."""
    first = pieces[start]
    opening = page_line(first.page)
    used = (cut.count(opening) if opening else 0) + 1  # +1 for each glue, here and below
    repeated, repeated_tokens = _overlap(pieces, previous, start, cut, room=cut.size - used - first.tokens)
    end = _end_of_chunk(pieces, start, used + repeated_tokens, cut)
    draft = _draft(pieces[start:end], repeated, cut)
    # The joined text may have a few more tokens than its parts have in total.
    while draft.tokens > cut.size and (repeated or end - start > 1):
        if end - start > 1:
            end -= 1
        else:
            repeated = ""
        draft = _draft(pieces[start:end], repeated, cut)
    return draft, end


def _overlap(pieces: Sequence[_Piece], previous: int, start: int, cut: _Cut, *, room: int) -> tuple[str, int]:
    """Return the text to repeat from the previous chunk, with the glue after it, and its tokens, at most `room`."""
    first = pieces[start]
    if first.lead:
        tokens = cut.count(first.lead)
        return (first.lead, tokens) if tokens <= room else ("", 0)
    text = _end_of_prose(pieces[previous:start], first, cut.overlap_chars)
    chars = min(len(text), cut.overlap_chars)
    while chars > 0:
        repeated = tail_from_a_sentence(text, chars) + first.glue
        if not repeated.strip():
            break
        tokens = cut.count(repeated)
        if tokens <= room:
            return repeated, tokens
        chars = chars * 3 // 4
    return "", 0


def _end_of_prose(pieces: Sequence[_Piece], first: _Piece, chars: int) -> str:
    """Return whole prose pieces from the end of a chunk, on the page of `first`, just over `chars` long if possible."""
    parts: list[str] = []
    size, following = 0, first
    for piece in reversed(pieces):
        is_same_prose = piece.position == following.position and piece.is_prose and following.is_prose
        if size > chars or not is_same_prose:
            break
        parts += [following.glue, piece.text]
        size, following = size + len(piece.text), piece
    return "".join(reversed(parts[1:]))  # without the glue before `first`


def _joint(previous: _Piece, piece: _Piece) -> str:
    """Return the text that joins two pieces in the unbroken document."""
    return piece.glue + (page_line(piece.page) if piece.position != previous.position else "")


def _end_of_chunk(pieces: Sequence[_Piece], start: int, used: int, cut: _Cut) -> int:
    used += pieces[start].tokens
    end = start + 1
    while end < len(pieces):
        piece, previous = pieces[end], pieces[end - 1]
        if piece.part != previous.part or (piece.is_heading and not previous.is_heading and 2 * used > cut.size):
            return end
        used += piece.tokens + 1 + (cut.count(page_line(piece.page)) if piece.page != previous.page else 0)
        if used > cut.size:
            # Headings at the end belong to the next chunk, unless there is nothing else.
            last = end
            while last > start and pieces[last - 1].is_heading:
                last -= 1
            return last if last > start else end
        end += 1
    return end


def _draft(pieces: Sequence[_Piece], repeated: str, cut: _Cut) -> _Draft:
    parts = [page_line(pieces[0].page), repeated, pieces[0].text]
    for previous, piece in pairwise(pieces):
        parts += [_joint(previous, piece), piece.text]
    text = "".join(parts)
    return _Draft(text, cut.count(text), len(repeated))


def _chunk(
    document: Document,
    draft: _Draft,
    first: _Piece,
    index: int,
    joint: str | None,
    *,
    metadata: Mapping[str, MetadataValue],
) -> Chunk:
    # The id includes the text, because another version of a parser may read the same bytes differently.
    identity = "\0".join((document.source, str(index), document.title, *first.headings, draft.text))
    return Chunk(
        id=hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:32],
        source=document.source,
        text=draft.text,
        index=index,
        tokens=draft.tokens,
        page=first.page,
        headings=first.headings,
        part=first.part,
        title=document.title,
        overlap=draft.overlap,
        joint=joint,
        metadata=metadata,
    )
