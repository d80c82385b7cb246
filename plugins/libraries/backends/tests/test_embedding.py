"""Texts are embedded in requests of a bounded size, in order, and all or none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ModelOverloadedError, ModelRequestError, ModelResponseError
from jackfield.messages import Usage
from jackfield.retrieval import Embedded
from jackfield_backends.embedding import check_texts, embed_in_batches


class Server:
    """Embeds a text as its length; notes the requests, and how many there were at once."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.now = 0
        self.most = 0

    async def ask(self, texts: Sequence[str]) -> Embedded:
        self.batches.append(list(texts))
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            for _ in range(len(texts[0])):  # the longer, the later
                await asyncio.sleep(0)
        finally:
            self.now -= 1
        return Embedded(tuple((float(len(text)),) for text in texts), Usage(prompt_tokens=len(texts)))


def embed(texts: Sequence[str], ask: Any, **options: Any) -> Embedded:
    return asyncio.run(embed_in_batches(texts, ask, backend="acme", **{"size": 2, "concurrency": 1, **options}))


@given(st.lists(st.integers(1, 9), max_size=12), st.integers(1, 5), st.integers(1, 4))
def test_vectors_are_in_the_order_of_the_texts_whatever_the_order_of_the_answers(
    lengths: list[int], size: int, concurrency: int
) -> None:
    server = Server()
    texts = ["x" * length for length in lengths]
    embedded = embed(texts, server.ask, size=size, concurrency=concurrency)
    assert [vector[0] for vector in embedded.vectors] == lengths
    assert embedded.usage.prompt_tokens == len(texts)
    assert [len(batch) for batch in server.batches] == [
        len(texts[start : start + size]) for start in range(0, len(texts), size)
    ]
    assert server.most == min(concurrency, len(server.batches))


def test_no_texts_are_no_request() -> None:
    server = Server()
    assert embed([], server.ask) == embed([], server.ask, dimension=3) == Embedded((), Usage())
    assert server.batches == []


def test_a_request_is_repeated_if_that_may_help_and_makes_room_for_others_meanwhile() -> None:
    asked: list[str] = []

    async def ask(texts: Sequence[str]) -> Embedded:
        asked.append(texts[0])
        if asked.count("a") == 1 and texts[0] == "a":
            raise ModelOverloadedError("later", backend="acme", retry_after_s=0.05)
        return Embedded(((1.0,),) * len(texts), Usage())

    assert len(embed(["a", "b", "c"], ask, size=1, max_retries=1).vectors) == 3
    assert asked == ["a", "b", "c", "a"]
    asked.clear()
    with pytest.raises(ModelOverloadedError):
        embed(["a", "b", "c"], ask, size=1)


def test_a_request_that_fails_ends_the_others() -> None:
    ended: list[str] = []

    async def ask(texts: Sequence[str]) -> Embedded:
        if texts[0] == "b":
            await asyncio.sleep(0)
            raise ModelRequestError("no", backend="acme")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            for _ in range(9):  # as closing a connection takes
                await asyncio.sleep(0)
            ended.append(texts[0])
            raise
        raise AssertionError

    async def nothing_is_left() -> bool:
        with pytest.raises(ModelRequestError):
            await embed_in_batches(["a", "b", "c"], ask, backend="acme", size=1, concurrency=3)
        return asyncio.all_tasks() == {asyncio.current_task()}

    assert asyncio.run(nothing_is_left())
    assert ended == ["a", "c"]


def test_a_cancelled_call_ends_all_its_requests_before_it_ends() -> None:
    begun: list[str] = []
    ended: list[str] = []

    async def ask(texts: Sequence[str]) -> Embedded:
        begun.append(texts[0])
        try:
            await asyncio.sleep(60)
        finally:
            for _ in range(len(ended) + 9):
                await asyncio.sleep(0)
            ended.append(texts[0])
        raise AssertionError

    async def cancel() -> None:
        task = asyncio.ensure_future(embed_in_batches(["a", "b", "c"], ask, backend="acme", size=1, concurrency=3))
        while len(begun) < 3:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == ["a", "b", "c"]

    asyncio.run(cancel())


@pytest.mark.parametrize("concurrency", [1, 2, 3])
@pytest.mark.parametrize("ticks", [0, 1, 2])
def test_no_request_begins_after_one_has_failed(concurrency: int, ticks: int) -> None:
    sent: list[str] = []

    async def ask(texts: Sequence[str]) -> Embedded:
        sent.append(texts[0])
        for _ in range(ticks):
            await asyncio.sleep(0)
        if texts[0] != "b":
            return Embedded(((1.0,),), Usage())
        sent.append("failed")
        raise ModelRequestError("no", backend="acme")

    with pytest.raises(ModelRequestError):
        embed(["a", "b", "c", "d", "e", "f"], ask, size=1, concurrency=concurrency)
    assert sent[-1] == "failed"


@pytest.mark.parametrize(
    ("vectors", "dimension", "problem"),
    [
        (
            [(1.0,), (1.0, 2.0)],
            None,
            "acme: the server sent vectors of different lengths, or empty ones (1, 2)",
        ),
        ([(), ()], None, "acme: the server sent vectors of different lengths, or empty ones (0)"),
        (
            [(1.0,), (2.0,)],
            2,
            "acme: the server sent vectors of 1 numbers instead of the "
            "requested 2: the model has a fixed dimension; remove "
            "`dimension`",
        ),
        (
            [(1.0, 2.0, 3.0), (1.0, 2.0, 3.0)],
            2,
            "acme: the server sent vectors of 3 numbers instead of the requested 2: the model has a fixed dimension; "
            "remove `dimension`",
        ),
    ],
)
def test_vectors_of_a_wrong_length_are_an_error(
    vectors: list[tuple[float, ...]], dimension: int | None, problem: str
) -> None:
    left = list(vectors)

    async def ask(texts: Sequence[str]) -> Embedded:
        return Embedded((left.pop(0),), Usage())

    with pytest.raises(ModelResponseError) as caught:
        embed(["a", "b"], ask, size=1, dimension=dimension)
    assert str(caught.value) == problem
    assert caught.value.backend == "acme"


def test_vectors_of_the_requested_length_are_taken() -> None:
    assert embed(["a", " "], Server().ask, dimension=1).vectors == ((1.0,), (1.0,))


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ("ab", "texts must be a list of strings, got a single string"),
        (["a", ""], "text 1 is empty: remove it, or replace it with a placeholder"),
    ],
)
def test_texts_that_no_embedder_takes_are_refused_before_any_request(texts: Any, problem: str) -> None:
    server = Server()
    for check in (check_texts, lambda texts: embed(texts, server.ask)):
        with pytest.raises(ValueError, match=f"^{problem}$"):
            check(texts)
    assert server.batches == []
