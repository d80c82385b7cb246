"""A server of embeddings without a model: words and their beginnings, hashed. It knows no meaning."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jackfield.retrieval import Searcher, make_searcher
from jackfield_testkit.embeddings import embeddings, texts_in, tokens_in
from jackfield_testkit.installed import plain_host
from jackfield_testkit.replies import Reply
from jackfield_testkit.server import FakeOpenAI, RecordedRequest

DIMENSION = 1024
MakeSearcher = Callable[..., Searcher]


def vector_of(text: str) -> list[float]:
    """The vector of a text, of length 1."""
    numbers = [0.0] * DIMENSION
    for word in re.findall(r"\w+", text.lower()):
        for piece in (word, word[:4], *re.findall(r"[\u4e00-\u9fff]", word)):
            digest = hashlib.blake2b(piece.encode(errors="replace"), digest_size=2).digest()
            numbers[int.from_bytes(digest) % DIMENSION] += 1
    length = math.sqrt(sum(number * number for number in numbers)) or 1.0
    return [number / length for number in numbers]


def of_words(request: RecordedRequest) -> Reply:
    """The answer to a request for embeddings."""
    texts = texts_in(request)
    return embeddings(request, [vector_of(text) for text in texts], tokens=tokens_in(texts))


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    """The server."""
    with FakeOpenAI() as server:
        server.respond(of_words)
        yield server


@pytest.fixture
def make(server: FakeOpenAI) -> MakeSearcher:
    """Makes a searcher that asks the server."""

    def made(**settings: Any) -> Searcher:
        of_the_embedder = {"base_url": server.url, "api_key": "sk-test", **settings.pop("embedder_settings", {})}
        cfg = {"embedding_model": "openai:words", "embedder_settings": of_the_embedder, **settings}
        return make_searcher("jackfield-vector-search/vector_search", cfg, host=plain_host())

    return made
