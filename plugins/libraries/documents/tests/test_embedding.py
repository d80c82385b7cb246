"""Vectors are checked before anybody compares with them. (Searchers' tests have the rest, with a real embedder.)"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError, ModelResponseError
from jackfield.messages import Usage
from jackfield.plugins import PluginHost, Row, Settings
from jackfield.retrieval import Chunk, Embedded, Embedder, Purpose
from jackfield.work import Work, surrounded
from jackfield_documents.embedding import ChunkEmbedder


class Scripted(Embedder):
    backend = "scripted"
    answer: tuple[tuple[float, ...], ...] = ()
    usage = Usage()

    @property
    def space(self) -> str:
        return "scripted/2"

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        self.asked = (list(texts), purpose)
        return Embedded(self.answer, self.usage)


class Host:
    """Finds one embedder, whatever is asked for."""

    settings = Settings()

    def __init__(self, embedder: Scripted) -> None:
        self.embedder = embedder
        self.asked: list[Any] = []

    def find(self, kind: str, name: str) -> Row:
        self.asked.append((kind, name))
        return Row(kind, name, "", "acme", "1.0", 1, "")

    def make(self, _row: Row, settings: dict[str, Any], _base: type) -> Scripted:
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
        ([(1.0, 2.0)], "1 vectors for 2 texts"),
        ([(1.0, 2.0), (1.0,)], "differ in length"),
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


@pytest.mark.parametrize("purpose", ["query", "document"])
def test_an_embedder_knows_the_purpose_of_its_texts(purpose: Purpose) -> None:
    embedder = made("scripted:m", (1.0, 2.0), (3.0, 4.0))
    asyncio.run(embedder.embed(["a", "b"], purpose))
    assert cast("Scripted", embedder._load()).asked == (["a", "b"], purpose)


class Noted:
    """Notes the work of a run."""

    def __init__(self) -> None:
        self.works: list[tuple[Work, BaseException | None]] = []

    def enter(self, work: Work) -> Callable[[BaseException | None], None]:
        return lambda error: self.works.append((work, error))

    def headers(self) -> Mapping[str, str]:
        return {}


@pytest.mark.parametrize(
    ("texts", "vectors", "tokens", "facts"),
    [
        ("ab", [(1.0, 2.0), (3.0, 4.0)], 7, {"dimension": 2, "prompt_tokens": 7}),
        ("ab", [(1.0, 2.0), (3.0, 4.0)], 0, {"dimension": 2}),
        ("", [], 0, {}),
        ("ab", [(1.0, 2.0)], 7, {}),
    ],
    ids=["with tokens", "without tokens", "without texts", "with too few vectors"],
)
def test_a_request_is_a_piece_of_work_of_its_run(
    texts: str, vectors: list[tuple[float, ...]], tokens: int, facts: dict[str, int]
) -> None:
    noted, embedder = Noted(), made("scripted:m/2:7b", *vectors)
    cast("Scripted", embedder._load()).usage = Usage(prompt_tokens=tokens)
    with (
        surrounded(Work(kind="run", run_id="r"), noted),
        suppress(ModelResponseError),
    ):
        asyncio.run(embedder.embed(list(texts), "query"))
    (work, error), _ = noted.works
    assert (work.kind, work.run_id, work.name) == ("embedding", "r", "scripted")
    assert work.facts == {"model": "m/2:7b", "texts": len(texts), **facts}
    assert (error is None) == (len(vectors) == len(texts))


@pytest.mark.parametrize("name", ["scripted", "scripted:", ""])
def test_an_embedder_is_named_with_its_model(name: str) -> None:
    with pytest.raises(ConfigError, match="specify the embedder and its model"):
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


@pytest.mark.parametrize("query", ["{", '{"text": 3}', "{}", "[" * 3, '{"a":' * 100_000], ids=lambda query: query[:9])
def test_what_is_not_such_json_is_the_question_itself(query: str) -> None:
    assert made().question_in(query) == query[:50]


@pytest.mark.parametrize(
    ("title", "headings", "text", "embedded"),
    [
        ("Tides", ("Harbour", "Low"), "At six.", "Tides\nHarbour\nLow\nAt six."),
        ("Tides", ("Tides", "", "Low", "Low"), "At six.", "Tides\nLow\nAt six."),
        ("", (), " At six. ", "At six."),
        ("Tides", ("Low",), " \n", ""),
        ("Tides", (), "x" * 60, f"Tides\n{'x' * 44}"),
    ],
    ids=["all", "each once", "text alone", "no text", "cut"],
)
def test_a_chunk_is_embedded_below_its_title_and_headings(
    title: str, headings: tuple[str, ...], text: str, embedded: str
) -> None:
    chunk = Chunk("a", "a", text, 0, 1, title=title, headings=headings)
    assert made().text_of(chunk).strip() == embedded
