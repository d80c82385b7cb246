"""Corpora made of texts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import pytest

from jackfield.retrieval import Chunk, Corpus


@pytest.fixture(scope="session")
def corpus_of() -> Callable[[Sequence[str]], Corpus]:
    def make(texts: Sequence[str]) -> Corpus:
        chunks = []
        for number, text in enumerate(texts):
            identity = hashlib.sha256(f"{number} {text}".encode()).hexdigest()
            chunks.append(Chunk(identity, "a.txt", text, number, tokens=10))
        return Corpus(tuple(chunks))

    return make
