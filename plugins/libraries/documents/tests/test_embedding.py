"""Vectors are checked before anybody compares with them. (Searchers' tests have the rest, with a real embedder.)"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError, ModelResponseError
from jackfield.plugins import PluginHost
from jackfield.retrieval import Chunk, Embedded, Embedder, Purpose
from jackfield_documents.embedding import ChunkEmbedder


class Scripted(Embedder):
    backend = "scripted"
    answer: tuple[tuple[float, ...], ...] = ()

    @property
    def space(self) -> str:
        return "scripted/2"

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        return Embedded(self.answer)


class Host:
    """Finds one embedder, whatever is asked for."""

    def __init__(self, embedder: Scripted) -> None:
        self.embedder = embedder
        self.asked: list[Any] = []

    def find(self, kind: str, name: str) -> str:
        self.asked.append((kind, name))
        return name

    def make(self, _found: str, settings: dict[str, Any], _base: type) -> Scripted:
        self.asked.append(settings)
        return self.embedder


def made(model: str = "scripted:m", *answer: tuple[float, ...], max_chars: int = 50) -> ChunkEmbedder:
    embedder = Scripted({})
    embedder.answer = answer
    host = cast("PluginHost", Host(embedder))
    return ChunkEmbedder(model, {"dimension": 2}, host=host, max_chars=max_chars)


@pytest.mark.parametrize(
    ("vectors", "problem"),
    [
        ([(1.0, 2.0)], "1 vectors came for 2 texts"),
        ([(1.0, 2.0), (1.0,)], "different lengths"),
        ([(), ()], "empty"),
        ([(1.0, 2.0), (1.0, float("nan"))], "not finite"),
        ([(1.0, 2.0), (1.0, float("-inf"))], "not finite"),
        ([(1.0, 2.0), (1.0, 1e39)], "not finite"),
    ],
)
def test_vectors_that_cannot_be_compared_are_an_error(vectors: list[tuple[float, ...]], problem: str) -> None:
    with pytest.raises(ModelResponseError, match=f"embedder scripted:m: .*{problem}"):
        asyncio.run(made("scripted:m", *vectors).embed(["a", "b"], "document"))


def test_vectors_that_can_are_given_as_they_came() -> None:
    assert asyncio.run(made("scripted:m", (1.0, 2.0)).embed(["a"], "query")) == ((1.0, 2.0),)


@pytest.mark.parametrize("name", ["scripted", "scripted:", ""])
def test_an_embedder_is_named_with_its_model(name: str) -> None:
    with pytest.raises(ConfigError, match="name the embedder and its model"):
        made(name).space  # noqa: B018 - it is looked up when it is needed


def test_the_space_says_how_much_of_a_text_is_embedded() -> None:
    assert made().space != made(max_chars=60).space


@given(st.text(), st.text(max_size=5))
def test_a_text_is_one_that_can_be_sent_and_no_longer_than_allowed(text: str, title: str) -> None:
    embedder = made()
    embedded = embedder.text_of(Chunk("1", "a", text, 0, 1, title=title))
    for one in (embedded, embedder.question_in(text)):
        one.encode()
        assert len(one) <= 50
        assert one == one.strip()
    assert not embedded or text.strip()


@pytest.mark.parametrize("query", ['{"text": "tea?", "keywords_en": ["a"]}', "tea?", " tea? "])
def test_the_question_of_a_query_may_be_in_json(query: str) -> None:
    assert made().question_in(query) == "tea?"


@pytest.mark.parametrize("query", ["{", '{"text": 3}', "{}", "[" * 3])
def test_what_is_not_such_json_is_the_question_itself(query: str) -> None:
    assert made().question_in(query) == query
