"""Cutting takes as long as a text is long, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jackfield.retrieval import Block, BlockKind, Document
from jackfield_counting.estimating import estimate_tokens
from jackfield_documents import chunk_document

TEXTS = {
    "table": "name17,48151,name62,342\n",
    "digits": "1234567890",
    "prose": "The quick brown fox jumps over the lazy dog. ",
    "Chinese": "数据库系统是一个重要的组成部分。",
    "signs": "!",
    "ellipses": "。…",
    "quotes": '."',
    "a word": "a",
    "spaces": " a",
    "accents": "a\u0301",
    "dense and thin": "a" * 5000 + "1 " * 2500,
    "rules": "|-",
}


@pytest.mark.parametrize("kind", ["paragraph", "code", "table"])
@pytest.mark.parametrize("name", TEXTS)
def test_each_character_is_counted_a_few_times(name: str, kind: BlockKind) -> None:
    text = (TEXTS[name] * 20_000)[:20_000]
    counted = 0

    def count(part: str) -> int:
        nonlocal counted
        counted += len(part)
        return estimate_tokens(part)

    chunks = chunk_document(Document("s", (Block(text, kind=kind),), "h"), count_tokens=count)
    assert sum(len(chunk.text) for chunk in chunks) >= len(text.strip())
    assert counted <= 5 * len(text), f"each character is counted {counted / len(text):.1f} times"


def test_a_document_of_paragraphs_is_counted_about_twice() -> None:
    blocks = tuple(Block("The quick brown fox jumps over the lazy dog. " * 8) for _ in range(200))
    counted = calls = 0

    def count(part: str) -> int:
        nonlocal counted, calls
        counted += len(part)
        calls += 1
        return estimate_tokens(part)

    chunks = chunk_document(Document("s", blocks, "h"), count_tokens=count)
    assert counted <= 2.5 * sum(len(block.text) for block in blocks)
    assert calls <= len(blocks) + 3 * len(chunks)  # each paragraph, and for each chunk its overlap and its text


DOCUMENTS: dict[str, Callable[[int], tuple[Block, ...]]] = {
    "paragraphs": lambda count: tuple(Block(f"Paragraph {number}.") for number in range(count)),
    "single letters": lambda count: tuple(Block("a") for _ in range(count)),
    "headings": lambda count: tuple(Block(f"Part {number}", "heading", level=1) for number in range(count)),
    "headings that go down": lambda count: tuple(Block("Part", "heading", level=number) for number in range(1, count)),
    "a heading each": lambda count: tuple(
        Block("Part", "heading", level=1) if number % 2 else Block("Text.") for number in range(count)
    ),
    "a page each": lambda count: tuple(Block("Text.", page=1000 + number) for number in range(count)),
    "tables": lambda count: tuple(Block("| a |\n|---|\n| b |", "table") for _ in range(count)),
}


@pytest.mark.parametrize("size", [1, 10, 500])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_many_blocks_are_counted_as_often_as_few(name: str, size: int) -> None:
    counted = 0

    def count(part: str) -> int:
        nonlocal counted
        counted += 1 + len(part)
        return estimate_tokens(part)

    def work(blocks: int) -> float:
        nonlocal counted
        counted = 0
        chunk_document(Document("s", DOCUMENTS[name](blocks), "h"), size_tokens=size, count_tokens=count)
        return counted / blocks

    few, many = work(100), work(800)
    assert many <= 1.5 * few + 10, f"each of 100 blocks takes {few:.0f} steps, and each of 800 takes {many:.0f}"


@pytest.mark.timeout(40)
@pytest.mark.parametrize("name", ["signs", "ellipses", "quotes", "rules", "accents"])
def test_looking_for_the_end_of_a_sentence_comes_to_the_end_of_a_long_text(name: str) -> None:
    """The steps of an expression cannot be counted: one that grows with the square would take many minutes for this."""
    size = 100_000
    text = (TEXTS[name] * size)[:size]
    # One chunk takes a quarter of it: what is not linear shows in long chunks.
    chunks = chunk_document(
        Document("s", (Block(text),), "h"), size_tokens=size // 4, count_tokens=lambda part: len(part) // 2
    )
    assert sum(len(chunk.text) for chunk in chunks) >= len(text.strip())
