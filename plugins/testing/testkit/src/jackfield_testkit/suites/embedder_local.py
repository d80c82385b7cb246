"""Contract tests for all embedders, which need no server."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, ClassVar, TypeVar

import pytest

from jackfield import sync
from jackfield.messages import Usage
from jackfield.plugins import EmbedderSpec
from jackfield.retrieval import Embedded, Embedder, Purpose, Vector
from jackfield_testkit.effects import undeclared, watching
from jackfield_testkit.installed import forbid_default_host, plain_host
from jackfield_testkit.loopwatch import check_loop
from jackfield_testkit.suites.base import Suite
from jackfield_testkit.suites.threads import at_once

T = TypeVar("T")
MakeEmbedder = Callable[..., Embedder]

LIMIT_S = 20.0  # far more than any of these calls takes
TEXTS: Sequence[str] = (
    "Green tea is brewed with water of eighty degrees.",
    "The lighthouse keeper counted the ships every evening.",
    "绿茶要用八十度的水冲泡。",
    "Volcanoes erupt when magma rises through cracks in the crust.",
    "Der Zug nach München fährt um acht Uhr ab.",
)
ODD_TEXTS: Sequence[str] = (
    " ",
    "\n",
    "\0",
    "?!",
    "🙂",
    "half \ud83d",
    "a" * 3000,
    "the the the",
    '{"input": ',
    "<|endoftext|>",
    "数" * 500,
)
PURPOSES: Sequence[Purpose] = ("document", "query")


class LocalEmbedderSuite(Suite):
    """Contract of all embedders. For those that use a server, `EmbedderSuite` is more thorough.

    ```python
    class TestAcme(LocalEmbedderSuite):
        component = "jackfield-acme/acme"
        config = {"dimension": 64}
    ```

    Attributes:
        component: The embedder to test, as `distribution/name`, or only the name if it is unique.
        config: The embedder's settings.
        other_space: Settings that override `config` to produce incomparable vectors, such as another model or
            dimension. Empty if there are none.
        many: A number of texts that exceeds one batch with the settings in `batched`.
        batched: Settings for small batches. Empty if the embedder has no such setting.
        tolerance: The allowed difference between the components of two vectors for the same text, which may have been
            embedded together with other texts and in a different order.
    """

    component: ClassVar[str]
    config: ClassVar[Mapping[str, object]] = {}
    other_space: ClassVar[Mapping[str, object]] = {}
    many: ClassVar[int] = 25
    batched: ClassVar[Mapping[str, object]] = {}
    tolerance: ClassVar[float] = 1e-4

    def make_embedder(self, **overrides: Any) -> Embedder:
        """Create an embedder to test. Override this if yours needs more than `config`."""
        return self.made({**self.config, **overrides})

    def made(self, settings: Mapping[str, object]) -> Embedder:
        """Create an embedder with these settings, as the core would."""
        host = plain_host()
        made = host.make(host.find("embedder", self.component), settings, Embedder)
        assert isinstance(made, Embedder)
        return made

    @pytest.fixture
    def make(self) -> Iterator[MakeEmbedder]:
        """Yield a function that creates embedders. They are closed at the end."""
        embedders: list[Embedder] = []

        def make(**overrides: Any) -> Embedder:
            embedders.append(self.make_embedder(**overrides))
            return embedders[-1]

        yield make
        for embedder in embedders:
            sync.run(embedder.aclose())

    @pytest.fixture
    def embedder(self, make: MakeEmbedder) -> Embedder:
        """Return an unused embedder."""
        return make()

    def test_it_takes_plugins_and_keys_from_its_host(self, make: MakeEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
        if type(self).make_embedder.__module__.partition(".")[0] != "jackfield_testkit":
            pytest.skip("the embedder is created by hand, perhaps without a host")
        before = vectors_of(make(), TEXTS)
        forbid_default_host(monkeypatch)
        assert vectors_of(make(), TEXTS) == before

    # --- vectors ---

    def test_the_event_loop_is_never_held_up(self, embedder: Embedder) -> None:
        vectors_of(embedder, TEXTS)  # a first call, whose imports do not count

        async def embed_and_close() -> None:
            await embedder.embed(TEXTS, purpose="document")
            await embedder.aclose()

        check_loop(embed_and_close)

    def test_each_text_has_its_vector_in_order(self, embedder: Embedder, make: MakeEmbedder) -> None:
        together = vectors_of(embedder, TEXTS)
        assert len(together) == len(TEXTS)
        for text, vector in zip(TEXTS, together, strict=True):
            (alone,) = vectors_of(make(), [text])
            assert self.are_alike(vector, alone), f"{text!r} gets a different vector when it is embedded alone"

    def test_vectors_are_finite_numbers_and_of_one_length(self, embedder: Embedder) -> None:
        vectors = vectors_of(embedder, TEXTS)
        for vector in vectors:
            assert isinstance(vector, tuple), f"a vector must be a tuple, got {type(vector).__name__}"
            assert {*map(type, vector)} == {float}, f"{vector[:5]} …"
            assert all(map(math.isfinite, vector)), f"{vector[:5]} …"
            assert any(vector), "a vector must not consist of zeros only"
        assert len(set(map(len, vectors))) == 1

    def test_the_dimension_says_the_truth(self, embedder: Embedder) -> None:
        before = embedder.dimension
        (vector,) = vectors_of(embedder, TEXTS[:1])
        assert before in (None, len(vector))
        assert embedder.dimension in (None, len(vector))

    def test_many_texts_keep_their_number_and_order(self, make: MakeEmbedder) -> None:
        texts = [f"Passage {number}: {TEXTS[number % len(TEXTS)]}" for number in range(self.many)]
        together = vectors_of(make(**self.batched), texts)
        assert len(together) == len(texts)
        for number in (0, 1, self.many // 2, self.many - 2, self.many - 1):
            (alone,) = vectors_of(make(**self.batched), [texts[number]])
            assert self.are_alike(together[number], alone), (
                f"text {number} of {self.many} has the vector of another text"
            )

    def test_a_text_that_comes_twice_has_its_vector_twice(self, embedder: Embedder) -> None:
        first, other, again = vectors_of(embedder, [TEXTS[0], TEXTS[1], TEXTS[0]])
        assert self.are_alike(first, again)
        assert not self.are_alike(first, other), "two texts with different meanings have the same vector"

    def test_any_text_that_is_not_empty_has_a_vector(self, embedder: Embedder) -> None:
        vectors = vectors_of(embedder, ODD_TEXTS)
        assert len(vectors) == len(ODD_TEXTS)
        assert len({len(vector) for vector in vectors}) == 1

    def test_of_no_texts_there_are_no_vectors(self, embedder: Embedder) -> None:
        assert asked(embedder, []) == Embedded((), Usage())

    @pytest.mark.parametrize("place", [0, 2, 4])
    def test_an_empty_text_is_refused_by_its_place(self, embedder: Embedder, place: int) -> None:
        texts = [*TEXTS[:place], "", *TEXTS[place:4]]
        with pytest.raises(ValueError, match=rf"\b{place}\b"):
            asked(embedder, texts)

    def test_texts_may_come_in_any_sequence_and_stay_as_they_are(self, embedder: Embedder) -> None:
        listed = list(TEXTS)
        from_list = vectors_of(embedder, listed)
        assert listed == list(TEXTS), "the caller's list was changed"
        assert all(map(self.are_alike, from_list, vectors_of(embedder, tuple(TEXTS))))

    @pytest.mark.parametrize("purpose", PURPOSES)
    def test_documents_and_queries_are_embedded_in_one_space(self, embedder: Embedder, purpose: Purpose) -> None:
        (document,) = vectors_of(embedder, TEXTS[:1])
        (vector,) = vectors_of(embedder, TEXTS[:1], purpose=purpose)
        assert len(vector) == len(document)
        assert self.are_alike(vector, vectors_of(embedder, TEXTS[:1], purpose=purpose)[0])

    def test_usage_counts_what_was_embedded(self, embedder: Embedder) -> None:
        usage = asked(embedder, TEXTS).usage
        assert isinstance(usage, Usage)
        assert usage.prompt_tokens >= 0
        assert usage.completion_tokens == 0

    # --- its space ---

    def test_its_space_stays_the_same_for_the_same_settings(self, embedder: Embedder, make: MakeEmbedder) -> None:
        before = embedder.space
        assert isinstance(before, str)
        assert before.strip()
        asked(embedder, TEXTS)
        assert embedder.space == before == make().space

    def test_vectors_that_cannot_be_compared_are_of_two_spaces(self, make: MakeEmbedder) -> None:
        if not self.other_space:
            pytest.skip("the embedder has no settings that change the meaning of its vectors")
        assert make().space != make(**self.other_space).space

    # --- hygiene ---

    def test_making_one_does_nothing(self, make: MakeEmbedder) -> None:
        make()  # the module is imported by now
        with watching() as effects:
            made = make()
            assert repr(made)
            assert made.space
        assert (effects.outside, effects.read) == ([], []), (
            "creating an embedder must not read files or connect: do this on the first call"
        )

    def test_it_does_what_it_declares_and_nothing_else(self, make: MakeEmbedder) -> None:
        host = plain_host()
        with watching() as effects:
            asked(make(), TEXTS)
        spec = host.spec_of(host.find("embedder", self.component), EmbedderSpec)
        assert undeclared(effects, spec.effects) == [], (
            "undeclared effects: add them to `effects` of the descriptor, or remove them"
        )

    def test_a_closed_embedder_can_be_closed_again_and_used_again(self, make: MakeEmbedder) -> None:
        embedder = make()

        async def close_and_use() -> list[Vector]:
            await embedder.aclose()
            first = await embedder.embed(TEXTS[:1])
            await embedder.aclose()
            await embedder.aclose()
            return [*first.vectors, *(await embedder.embed(TEXTS[:1])).vectors]

        first, second = within(embedder, close_and_use)
        assert self.are_alike(first, second)

    # --- many at once ---

    def test_calls_at_the_same_time_give_what_they_give_alone(self, make: MakeEmbedder) -> None:
        calls = [list(TEXTS[start:end]) for start, end in combinations(range(6), 2)]
        alone, embedder = make(), make()

        async def all_at_once() -> list[Embedded]:
            return await asyncio.gather(*map(embedder.embed, calls))

        for texts, came in zip(calls, within(embedder, all_at_once), strict=True):
            wanted = vectors_of(alone, texts)
            assert len(came.vectors) == len(wanted)
            assert all(map(self.are_alike, came.vectors, wanted))

    def test_threads_with_event_loops_of_their_own_get_what_they_get_alone(self, make: MakeEmbedder) -> None:
        wanted = vectors_of(make(), TEXTS)
        embedder = make()  # not used yet
        for came in at_once(4, lambda _: (vectors_of(embedder, TEXTS), vectors_of(embedder, TEXTS))):
            assert isinstance(came, tuple), f"a thread failed with {came!r}"
            for vectors in came:
                assert all(map(self.are_alike, vectors, wanted))

    # --- parts ---

    def are_alike(self, first: Vector, second: Vector) -> bool:
        """Return True if two vectors may belong to the same text."""
        return len(first) == len(second) and all(
            math.isclose(a, b, rel_tol=self.tolerance, abs_tol=self.tolerance)
            for a, b in zip(first, second, strict=True)
        )


def within(embedder: Embedder, work: Callable[[], Awaitable[T]], *, limit_s: float = LIMIT_S) -> T:
    """Run a coroutine on its own event loop, and close everything the embedder opened there.

    If the coroutine does not finish within `limit_s` seconds, it fails rather than letting the test hang.
    """

    async def whole() -> T:
        limit = asyncio.timeout(limit_s)
        try:
            async with limit:
                return await work()
        except TimeoutError:
            if limit.expired():
                pytest.fail(f"the embedder did not finish within {limit_s:g} s")
            raise
        finally:
            await embedder.aclose()

    return asyncio.run(whole())


def asked(
    embedder: Embedder, texts: Sequence[str], *, purpose: Purpose = "document", limit_s: float = LIMIT_S
) -> Embedded:
    """Return the result of one call."""
    embedded = within(embedder, lambda: embedder.embed(texts, purpose=purpose), limit_s=limit_s)
    assert isinstance(embedded, Embedded)
    assert isinstance(embedded.vectors, tuple), f"vectors must be a tuple, got {type(embedded.vectors).__name__}"
    return embedded


def vectors_of(embedder: Embedder, texts: Sequence[str], *, purpose: Purpose = "document") -> tuple[Vector, ...]:
    """Return the vectors from one call."""
    return asked(embedder, texts, purpose=purpose).vectors
