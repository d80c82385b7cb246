from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield.retrieval import Block, Chunk, Document, Hit
from jackfield.tokenizers import TokenCounter
from jackfield_counting.estimating import estimate_tokens
from jackfield_documents import best_within, choose, chunk_document, corpus_of, passages
from jackfield_documents.cutting import cut_to_fit, head_that_fits, tail_from_a_sentence

PAGE_LINE = re.compile(r"^\[page: \d+\]\n", re.MULTILINE)

texts = st.text(alphabet="abcdefg ABC.,!?。，\n中文字句", min_size=1, max_size=120)
kinds = st.sampled_from(["heading", "paragraph", "list", "table", "code"])
sizes = st.integers(min_value=1, max_value=80)
counters = st.sampled_from([estimate_tokens, len, lambda text: len(text.encode())])
counters_of_any = st.sampled_from([estimate_tokens, len, lambda text: len(text.encode("utf-8", "surrogatepass"))])


@st.composite
def documents(draw: st.DrawFn, *, pages: bool | None = None) -> Document:
    with_pages = draw(st.booleans()) if pages is None else pages
    page = 1
    blocks = []
    for _ in range(draw(st.integers(0, 8))):
        page += draw(st.integers(0, 2))
        kind = draw(kinds)
        level = draw(st.integers(1, 3)) if kind == "heading" else 0
        blocks.append(Block(draw(texts), kind=kind, page=page if with_pages else None, level=level))
    return Document("a.pdf", tuple(blocks), "hash")


def words(text: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]", text))


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def in_one_line(text: str) -> str:
    return " ".join(text.split())


def own_text(chunk: Chunk) -> str:
    """A chunk without its page lines and without what it repeats."""
    opening = PAGE_LINE.match(chunk.text) if chunk.page is not None else None
    start = opening.end() if opening else 0
    return PAGE_LINE.sub("", chunk.text[:start] + chunk.text[start + chunk.overlap :])


@given(documents(), sizes, st.integers(0, 60), counters)
def test_nothing_is_lost_and_nothing_is_added(document: Document, size: int, overlap: int, count: TokenCounter) -> None:
    chunks = chunk_document(document, size_tokens=size, overlap_chars=overlap, count_tokens=count)
    rendered = "".join(
        "#" * min(block.level, 6) + block.text if block.kind == "heading" else block.text
        for block in document.blocks
        if block.text.strip()
    )
    assert squeezed("".join(map(own_text, chunks))) == squeezed(rendered)


@given(documents(), sizes, st.integers(0, 60), counters)
def test_no_chunk_is_longer_than_asked_unless_a_single_character_is(
    document: Document, size: int, overlap: int, count: TokenCounter
) -> None:
    for chunk in chunk_document(document, size_tokens=size, overlap_chars=overlap, count_tokens=count):
        assert chunk.tokens == count(chunk.text)
        assert chunk.tokens <= size or len(own_text(chunk)) == 1
        assert chunk.overlap <= overlap + 2 or "|" in chunk.text


@given(documents(pages=True), sizes)
def test_every_chunk_of_a_document_with_pages_begins_with_its_page(document: Document, size: int) -> None:
    for chunk in chunk_document(document, size_tokens=size):
        assert chunk.text.startswith(f"[page: {chunk.page}]\n")


@given(documents(), sizes)
def test_the_same_document_is_cut_the_same_way_and_all_ids_differ(document: Document, size: int) -> None:
    chunks = chunk_document(document, size_tokens=size)
    assert chunks == chunk_document(document, size_tokens=size)
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))


def test_two_files_with_the_same_bytes_have_different_chunks_in_one_corpus() -> None:
    blocks = (Block("the same"),)
    corpus = corpus_of([Document("a.txt", blocks, "h"), Document("b.txt", blocks, "h")])
    assert len({chunk.id for chunk in corpus.chunks}) == 2


def test_a_corpus_with_other_text_has_another_hash() -> None:
    one, two = (corpus_of([Document("a.txt", (Block(text),), "h")]) for text in ("old", "new"))
    assert one.content_hash != two.content_hash


def test_the_next_chunk_repeats_the_last_sentence_of_the_same_page() -> None:
    text = " ".join(f"Sentence number {n} says something about cats and dogs." for n in range(40))
    chunks = chunk_document(
        Document("a", (Block(text, page=3),), "h"), size_tokens=60, overlap_chars=80, count_tokens=words
    )
    assert len(chunks) > 5
    for before, chunk in pairwise(chunks):
        repeated = chunk.text.removeprefix("[page: 3]\n")[: chunk.overlap]
        assert repeated.startswith("Sentence number")
        assert before.text.endswith(repeated)


DOCUMENT = Document("a.md", (Block("Head", kind="heading", level=1), Block("Text.")), "h", "Title")


@pytest.mark.parametrize(
    "other",
    [
        replace(DOCUMENT, source="b.md"),
        replace(DOCUMENT, title="Other"),
        replace(DOCUMENT, blocks=(*DOCUMENT.blocks[:1], Block("Other."))),
    ],
)
def test_all_that_is_searched_in_a_chunk_shows_in_its_id(other: Document) -> None:
    [one], [changed] = chunk_document(DOCUMENT), chunk_document(other)
    assert one.id != changed.id


def test_the_same_text_under_another_heading_has_another_id() -> None:
    text = Block("word " * 30)
    chunks = [
        chunk_document(
            Document("a", (Block(name, kind="heading", level=1), text, text), "h"),
            size_tokens=40,
            overlap_chars=0,
            count_tokens=words,
        )
        for name in ("One", "Two")
    ]
    assert [len(of_one) for of_one in chunks] == [2, 2]
    assert chunks[0][1].text == chunks[1][1].text
    assert chunks[0][1].id != chunks[1][1].id


@pytest.mark.parametrize("where", ["page", "file"])
def test_nothing_is_repeated_across_pages_and_files_inside(where: str) -> None:
    text = "This sentence is here. And that one is here, too."
    blocks = tuple(Block(text, page=n) if where == "page" else Block(text, part=f"{n}.txt") for n in range(1, 6))
    # There is room for a repeated sentence, but not for two texts.
    chunks = chunk_document(Document("a", blocks, "h"), size_tokens=25, overlap_chars=40, count_tokens=words)
    assert len(chunks) == 5
    assert [chunk.overlap for chunk in chunks] == [0] * 5
    as_one = tuple(replace(block, page=1, part="") for block in blocks)
    chunks = chunk_document(Document("a", as_one, "h"), size_tokens=25, overlap_chars=40, count_tokens=words)
    assert all(chunk.overlap for chunk in chunks[1:]), "within one page it is repeated"


def test_a_chunk_over_two_pages_says_where_the_second_begins() -> None:
    blocks = (Block("First.", page=1), Block("Second.", page=2))
    [chunk] = chunk_document(Document("a", blocks, "h"), size_tokens=100)
    assert chunk.text == "[page: 1]\nFirst.\n\n[page: 2]\nSecond."


def test_a_heading_stands_with_its_text_and_not_at_the_end_of_a_chunk() -> None:
    blocks = (
        Block("word " * 30),
        Block("Chapter", kind="heading", level=1),
        Block("Section", kind="heading", level=2),
        Block("other " * 30),
    )
    chunks = chunk_document(Document("a", blocks, "h"), size_tokens=45, overlap_chars=0, count_tokens=words)
    assert [chunk.text.split(maxsplit=1)[0] for chunk in chunks] == ["word", "#"]
    assert chunks[1].text.startswith("# Chapter\n\n## Section\n\nother")


HEADING = Block("h " * 12, kind="heading", level=1)


@given(
    st.lists(
        st.one_of(
            st.integers(1, 12).map(lambda count: Block("h " * count, kind="heading", level=1)),
            st.integers(1, 60).map(lambda count: Block("word " * count)),
        ),
        max_size=12,
    ),
    st.integers(30, 60),
)
@example([Block("word " * 12), HEADING, HEADING, Block("word " * 12)], 30)
def test_a_chunk_ends_in_a_heading_only_if_it_has_nothing_else(blocks: list[Block], size: int) -> None:
    chunks = chunk_document(Document("a", tuple(blocks), "h"), size_tokens=size, overlap_chars=0, count_tokens=words)
    for chunk in chunks[:-1]:
        *_, last = chunk.text.split("\n\n")
        assert not last.startswith("#") or "word" not in chunk.text


def test_a_chapter_opens_a_chunk_if_the_current_one_is_half_full_and_no_sooner() -> None:
    for filled, first in ((10, "word"), (30, "#")):
        blocks = (Block("word " * filled), Block("Chapter", kind="heading", level=1), Block("other " * 5))
        chunks = chunk_document(Document("a", blocks, "h"), size_tokens=50, overlap_chars=0, count_tokens=words)
        assert chunks[-1].text.startswith(first)


def test_a_chunk_knows_the_headings_above_it() -> None:
    blocks = (
        Block("One", kind="heading", level=1),
        Block("Two", kind="heading", level=2),
        Block("text " * 40),
        Block("Three", kind="heading", level=2),
        Block("more " * 40),
        Block("Four", kind="heading", level=1),
        Block("last " * 40),
    )
    chunks = chunk_document(Document("a", blocks, "h"), size_tokens=50, overlap_chars=0, count_tokens=words)
    assert [chunk.headings for chunk in chunks] == [("One",), ("One", "Three"), ("Four",)]


def test_the_rest_of_a_long_table_repeats_its_header_and_rows_stay_whole() -> None:
    rows = "\n".join(f"| row{n} | {n * n} |" for n in range(60))
    table = f"| name | square |\n|---|---|\n{rows}"
    chunks = chunk_document(Document("a", (Block(table, kind="table"),), "h"), size_tokens=80, count_tokens=words)
    assert len(chunks) > 3
    for chunk in chunks:
        assert chunk.text.startswith("| name | square |\n|---|---|\n")
        assert all(line.startswith("|") and line.endswith("|") for line in chunk.text.splitlines() if line)


@pytest.mark.parametrize(("columns", "is_repeated"), [(3, True), (20, False)])
def test_a_table_repeats_no_header_that_takes_more_than_a_third_of_a_chunk(columns: int, is_repeated: bool) -> None:
    header = "| " + " | ".join(f"c{n}" for n in range(columns)) + " |\n|---|"
    rows = "\n".join(f"| row{n} | {n * n} |" for n in range(60))
    table = Block(f"{header}\n{rows}", kind="table")
    chunks = chunk_document(Document("a", (table,), "h"), size_tokens=80, count_tokens=words)
    assert len(chunks) > 3
    assert [chunk.text.startswith(header) for chunk in chunks[1:]] == [is_repeated] * (len(chunks) - 1)


def test_blocks_stay_whole_while_they_fit() -> None:
    blocks = tuple(Block(f"Paragraph {n}: " + "x y z " * 8) for n in range(12))
    chunks = chunk_document(Document("a", blocks, "h"), size_tokens=90, overlap_chars=0, count_tokens=words)
    for block in blocks:
        assert sum(block.text in chunk.text for chunk in chunks) == 1


def test_small_sizes_neither_crash_nor_lose_a_paragraph() -> None:
    paragraphs = [f"Paragraph {n} tells us that {n} is a number." for n in range(12)]
    document = Document("a", tuple(Block(text, page=1) for text in paragraphs), "h")
    for size in range(1, 40):
        chunks = chunk_document(document, size_tokens=size)
        assert squeezed("".join(map(own_text, chunks))) == squeezed("".join(paragraphs)), size


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (-1, 10), (10, -1)])
def test_sizes_that_make_no_sense_are_refused(size: int, overlap: int) -> None:
    with pytest.raises(ValueError, match="size_tokens"):
        chunk_document(Document("a", (), "h"), size_tokens=size, overlap_chars=overlap)


@given(st.text(max_size=400), st.integers(1, 40), counters, st.booleans())
def test_parts_of_a_text_join_to_it_and_fit(text: str, size: int, count: TokenCounter, by_line: bool) -> None:
    parts = list(cut_to_fit(text, size, count, by_line=by_line))
    assert "".join(parts) == text
    assert all(count(part) <= size or len(part) == 1 for part in parts)


@given(st.text(max_size=300), st.integers(0, 40), counters)
def test_the_head_of_a_text_fits(text: str, size: int, count: TokenCounter) -> None:
    length = head_that_fits(text, size, count)
    assert 0 <= length <= len(text)
    assert length == 0 or count(text[:length]) <= size


def test_a_text_is_cut_after_a_sentence_if_that_is_possible() -> None:
    text = "Here is a first sentence. Here is a second one! And a third? And the last."
    assert all(part.rstrip()[-1] in ".!?" for part in cut_to_fit(text, 12, words))
    assert list(cut_to_fit("第一句话。第二句话！第三句话？", 5, len)) == ["第一句话。", "第二句话！", "第三句话？"]


def test_an_accent_is_not_torn_from_its_letter() -> None:
    assert list(cut_to_fit("e\u0301" * 4, 3, len)) == ["e\u0301"] * 4


@pytest.mark.timeout(20)
def test_a_letter_with_endless_accents_is_cut_in_linear_time() -> None:
    text = "a" + "\u0301\u0316" * 150_000
    assert "".join(cut_to_fit(text, 200, len)) == text


@given(st.text(max_size=100), st.integers(1, 50))
def test_the_tail_of_a_text_is_its_end_and_short(text: str, limit: int) -> None:
    tail = tail_from_a_sentence(text, limit)
    assert text.endswith(tail)
    assert len(tail) <= limit


def test_a_tail_begins_with_a_letter_and_not_with_its_accent() -> None:
    assert tail_from_a_sentence("ae\u0301e\u0301", 3) == "e\u0301"


def test_a_tail_starts_at_a_sentence_or_a_word_only_if_that_keeps_half_of_it() -> None:
    assert tail_from_a_sentence("aaa. bbb ccc", 9) == "bbb ccc"
    assert tail_from_a_sentence("aaa. bbb", 8) == "aaa. bbb", "a text that fits is left whole"
    assert tail_from_a_sentence("aaa bbb ccc. dd", 12) == "bbb ccc. dd"
    assert tail_from_a_sentence("aaaabbbbbbbbb cc", 12) == "bbbbbbbbb cc"


@given(st.text(alphabet="abcdefg ABC.,!?。，\n中文字句", max_size=400), st.integers(1, 60), st.booleans())
def test_a_cut_loses_at_most_15_percent_of_the_room(text: str, size: int, by_line: bool) -> None:
    parts = list(cut_to_fit(text, size, len, by_line=by_line))
    assert all(len(part) >= 0.85 * size for part in parts[:-1])


@given(documents(), sizes, st.integers(0, 60), counters)
def test_chunks_in_order_are_the_document_unbroken(
    document: Document, size: int, overlap: int, count: TokenCounter
) -> None:
    chunks = chunk_document(document, size_tokens=size, overlap_chars=overlap, count_tokens=count)
    whole = chunk_document(document, size_tokens=1_000_000, count_tokens=len)
    shown = [in_one_line(text) for entry in passages(chunks) for text in entry["text"]]
    assert shown == [in_one_line(chunk.text) for chunk in whole]


@given(documents(pages=True), sizes, counters)
def test_no_page_line_stands_before_nothing(document: Document, size: int, count: TokenCounter) -> None:
    corpus = corpus_of([document], size_tokens=size, count_tokens=count)
    hits = [Hit(chunk, 1.0) for chunk in corpus.chunks]
    for budget in (1, 3, 7, 15, 30, 60, 10_000):
        for chosen in (best_within(hits, max_tokens=budget), choose(corpus, [], max_tokens=budget)):
            for text in (text for entry in passages(chosen) for text in entry["text"]):
                assert not re.search(r"^\[page: \d+\]\s*(\Z|\[page: )", text, re.MULTILINE), text


@given(documents(), sizes, st.integers(0, 60), counters)
def test_what_is_repeated_is_the_end_of_the_chunk_before(
    document: Document, size: int, overlap: int, count: TokenCounter
) -> None:
    chunks = chunk_document(document, size_tokens=size, overlap_chars=overlap, count_tokens=count)
    for before, chunk in pairwise(chunks):
        start = len(f"[page: {chunk.page}]\n") if chunk.page is not None else 0
        repeated = chunk.text[start : start + chunk.overlap].strip()
        assert squeezed(before.text).endswith(squeezed(repeated)) or "|" in repeated


def test_the_overlap_is_filled_across_paragraphs() -> None:
    blocks = tuple(Block(f"Short paragraph {n:02}.") for n in range(60))
    chunks = chunk_document(Document("a", blocks, "h"), size_tokens=60, overlap_chars=100, count_tokens=words)
    assert len(chunks) > 3
    assert all(50 <= chunk.overlap <= 102 for chunk in chunks[1:])
    assert chunks[1].text.startswith("Short paragraph")


def test_where_less_fits_less_is_repeated() -> None:
    blocks = tuple(Block(" ".join(f"w{n}x{m}" for m in range(52))) for n in range(6))
    chunks = chunk_document(Document("a", blocks, "h"), size_tokens=60, overlap_chars=150, count_tokens=words)
    assert len(chunks) == 6
    assert all(0 < chunk.overlap < 60 for chunk in chunks[1:])


ANY_TEXT = st.text(st.characters(codec=None), min_size=1, max_size=80)  # surrogates and control characters, too


@given(
    st.lists(st.builds(Block, ANY_TEXT, st.sampled_from(["paragraph", "list", "table", "code"])), max_size=6),
    sizes,
    st.integers(0, 60),
    counters_of_any,
)
def test_of_any_text_no_sign_is_lost_or_changes_its_place_and_chunks_fit(
    blocks: list[Block], size: int, overlap: int, count: TokenCounter
) -> None:
    document = Document("a.txt", tuple(blocks), "hash")
    chunks = chunk_document(document, size_tokens=size, overlap_chars=overlap, count_tokens=count)
    kept = [block.text for block in blocks if block.text.strip()]
    assert squeezed("".join(chunk.text[chunk.overlap :] for chunk in chunks)) == squeezed("".join(kept))
    for chunk in chunks:
        own = chunk.text[chunk.overlap :]
        assert chunk.tokens == count(chunk.text)
        assert chunk.tokens <= size or len(own.strip()) == 1
        assert len(chunk.id) == 32


@given(documents(), sizes)
def test_nothing_is_repeated_but_table_headers_where_no_overlap_is_asked_for(document: Document, size: int) -> None:
    for chunk in chunk_document(document, size_tokens=size, overlap_chars=0):
        start = len(f"[page: {chunk.page}]\n") if chunk.page is not None else 0
        repeated = chunk.text[start : start + chunk.overlap]
        assert repeated == "" or "|" in repeated
