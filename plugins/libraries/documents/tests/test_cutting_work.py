"""Cutting takes as long as a text is long, whatever it is made of."""

from __future__ import annotations

import pytest

from jackfield.retrieval import Block, BlockKind, Document
from jackfield.tokens import estimate_tokens
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
    text = (TEXTS[name] * 60_000)[:60_000]
    counted = 0

    def count(part: str) -> int:
        nonlocal counted
        counted += len(part)
        return estimate_tokens(part)

    chunks = chunk_document(Document("s", (Block(text, kind=kind),), "h"), count_tokens=count)
    assert sum(len(chunk.text) for chunk in chunks) >= len(text.strip())
    assert counted <= 10 * len(text), f"each character is counted {counted / len(text):.1f} times"


@pytest.mark.timeout(40)
@pytest.mark.parametrize("name", ["signs", "ellipses", "quotes", "rules", "accents"])
def test_looking_for_the_end_of_a_sentence_comes_to_the_end_of_a_long_text(name: str) -> None:
    """The steps of an expression cannot be counted: one that grows with the square would take many minutes for this."""
    size = 400_000
    text = (TEXTS[name] * size)[:size]
    # One chunk takes a quarter of it: what is not linear shows in long chunks.
    chunks = chunk_document(
        Document("s", (Block(text),), "h"), size_tokens=size // 4, count_tokens=lambda part: len(part) // 2
    )
    assert sum(len(chunk.text) for chunk in chunks) >= len(text.strip())
