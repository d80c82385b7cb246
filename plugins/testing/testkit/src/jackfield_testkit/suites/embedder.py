"""Contract tests for embedders that use a server."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import asyncio
import logging
import pickle
import socket
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import pytest

from jackfield import sync
from jackfield.errors import (
    ModelAuthError,
    ModelConnectionError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelRequestError,
    ModelResponseError,
    ModelServiceError,
    ModelTimeoutError,
    RateLimitedError,
)
from jackfield.retrieval import Embedded, Embedder, Purpose
from jackfield_testkit import embeddings, replies
from jackfield_testkit.replies import Reply
from jackfield_testkit.server import FakeOpenAI, RecordedRequest
from jackfield_testkit.suites.embedder_local import (
    PURPOSES,
    TEXTS,
    LocalEmbedderSuite,
    MakeEmbedder,
    asked,
    vectors_of,
    within,
)
from jackfield_testkit.suites.llm_asking import connections_to

API_KEY = "sk-test-SECRET"
MODEL = "test-embeddings"
STATUSES: list[tuple[int, type[ModelServiceError], bool]] = [
    (400, ModelRequestError, False),
    (401, ModelAuthError, False),
    (403, ModelAuthError, False),
    (404, ModelNotFoundError, False),
    (429, RateLimitedError, True),
    (500, ModelOverloadedError, True),
    (503, ModelOverloadedError, True),
]
GARBAGE = [b"", b"<html>welcome</html>", b"[1, 2]", b"{}", b'{"data": 1, "output": 1}', b"\xff\xfe\x00"]


class EmbedderSuite(LocalEmbedderSuite):
    """Contract of embedders that use a server over HTTP.

    A subclass names its embedder and inherits all tests, which run against a server on 127.0.0.1:

    ```python
    class TestAcme(EmbedderSuite):
        component = "jackfield-acme/acme"
        other_space = {"model": "another-model"}
        batched = {"batch_size": 10}
    ```

    The server speaks OpenAI's protocol. For another protocol, override `make_server`, `texts_in`, `reply_with`,
    `dimension_in` and `purpose_in`; the tests depend on nothing else in the protocol. Error statuses are scripted with
    `replies.error`, which the server must translate.

    Attributes:
        batched: The same as in `LocalEmbedderSuite`. `many` texts must then require at least two requests.
        impatient: Settings that tolerate only a brief silence of the server.
        once: Settings without retries, so that no test waits. The settings of each test override them.
        persistent: Settings that retry a request once if it may succeed.
        patience_s: How long to wait for something that should happen immediately, in seconds.
    """

    batched: ClassVar[Mapping[str, object]] = {"batch_size": 10}
    impatient: ClassVar[Mapping[str, object]] = {"request_timeout": 0.2}
    once: ClassVar[Mapping[str, object]] = {"max_retries": 0}
    persistent: ClassVar[Mapping[str, object]] = {"max_retries": 1}
    patience_s: ClassVar[float] = 10.0

    def make_embedder(self, server_url: str = "", **overrides: Any) -> Embedder:
        """Create an embedder for the server at this URL. Override this if yours is configured differently."""
        given = {"model": MODEL, "base_url": server_url, "api_key": API_KEY, **self.once}
        return self.made({**given, **self.config, **overrides})

    # --- the server, which may speak another protocol ---

    def make_server(self) -> FakeOpenAI:
        """Create the server for the embedder."""
        return FakeOpenAI()

    def texts_in(self, request: RecordedRequest) -> list[str]:
        """Return the texts in a request, in order."""
        return embeddings.texts_in(request)

    def dimension_in(self, request: RecordedRequest) -> int | None:
        """Return the vector length that a request asks for, or None if it does not specify one."""
        return embeddings.dimension_in(request)

    def purpose_in(self, request: RecordedRequest) -> Purpose | None:  # noqa: ARG002 - for subclasses that use it
        """Return the purpose that a request states for its texts, or None if the protocol has no such field."""
        return None

    def reply_with(
        self, request: RecordedRequest, vectors: Sequence[Sequence[float]], *, tokens: int, order: Sequence[int]
    ) -> Reply:
        """Return an answer with the given vectors.

        Args:
            request: The request to answer.
            vectors: One vector for each text in the request.
            tokens: The token count to report.
            order: The indices of the vectors to list. They may be out of order, and some may be missing or repeated.
        """
        return embeddings.embeddings(request, vectors, tokens=tokens, order=order)

    @pytest.fixture
    def server(self) -> Iterator[FakeOpenAI]:
        """Yield a server for this test only, which embeds the texts it receives."""
        with self.make_server() as server:
            server.respond(self._answering())
            yield server

    @pytest.fixture
    def make(self, server: FakeOpenAI) -> Iterator[MakeEmbedder]:
        """Yield a function that creates embedders for the server. They are closed at the end."""
        embedders: list[Embedder] = []

        def make(server_url: str = "", **overrides: Any) -> Embedder:
            embedders.append(self.make_embedder(server_url or server.url, **overrides))
            return embedders[-1]

        yield make
        for embedder in embedders:
            sync.run(embedder.aclose())

    # --- requests ---

    def test_it_connects_at_the_first_call_and_not_before(self, server: FakeOpenAI, embedder: Embedder) -> None:
        assert repr(embedder)
        assert embedder.space
        assert connections_to(server) == 0
        asked(embedder, TEXTS)
        assert connections_to(server) > 1  # the check above made one

    def test_the_vectors_are_those_of_the_server(self, server: FakeOpenAI, embedder: Embedder) -> None:
        vectors = vectors_of(embedder, TEXTS)
        dimension = self.dimension_in(server.requests[-1]) or embeddings.DIMENSION
        wanted = [embeddings.vector_of(text, dimension) for text in TEXTS]
        assert all(map(self.are_alike, vectors, wanted))

    def test_of_no_texts_nothing_is_asked(self, server: FakeOpenAI, embedder: Embedder) -> None:
        asked(embedder, [])
        assert server.requests == []

    def test_if_one_text_is_empty_none_is_sent(self, server: FakeOpenAI, make: MakeEmbedder) -> None:
        embedder = make(**self.batched)
        with pytest.raises(ValueError, match=rf"\b{self.many}\b"):
            asked(embedder, [*_passages(self.many), ""])
        assert server.requests == []

    def test_many_texts_are_sent_in_several_requests_and_each_of_them_once(
        self, server: FakeOpenAI, make: MakeEmbedder
    ) -> None:
        texts = _passages(self.many)
        embedded = asked(make(**self.batched), texts)
        sent = [text for request in server.requests for text in self.texts_in(request)]
        assert sorted(sent) == sorted(texts)
        assert len(server.requests) > 1, (
            "all texts were sent in one request: set `many` and `batched` so that several requests are needed"
        )
        assert self._are_those_of(embedded, texts, server.requests[0])

    def test_vectors_are_put_in_order_by_their_indices(self, server: FakeOpenAI, make: MakeEmbedder) -> None:
        server.respond(self._answering(order=lambda count: range(count - 1, -1, -1)))
        texts = _passages(self.many)
        assert self._are_those_of(asked(make(**self.batched), texts), texts, server.requests[0])

    def test_usage_is_the_sum_of_all_requests(self, server: FakeOpenAI, make: MakeEmbedder) -> None:
        texts = _passages(self.many)
        usage = asked(make(**self.batched), texts).usage
        assert len(server.requests) > 1
        assert usage.prompt_tokens == usage.total_tokens == embeddings.tokens_in(texts)

    @pytest.mark.parametrize("purpose", PURPOSES)
    def test_the_purpose_is_told_where_there_is_a_word_for_it(
        self, server: FakeOpenAI, embedder: Embedder, purpose: Purpose
    ) -> None:
        asked(embedder, TEXTS, purpose=purpose)
        assert self.purpose_in(server.requests[-1]) in (None, purpose)

    # --- invalid answers ---

    @pytest.mark.parametrize("body", GARBAGE, ids=ascii)
    def test_an_answer_that_nobody_can_read_is_an_error(
        self, server: FakeOpenAI, embedder: Embedder, body: bytes
    ) -> None:
        server.reply(replies.raw(body))
        assert isinstance(_failure(embedder), ModelResponseError)

    @pytest.mark.parametrize("order", [(0, 1, 2, 3), (), (0, 1, 2, 3, 4, 4), (0, 0, 2, 3, 4)], ids=str)
    def test_too_few_vectors_too_many_and_two_for_one_text_are_errors(
        self, server: FakeOpenAI, embedder: Embedder, order: Sequence[int]
    ) -> None:
        server.respond(self._answering(order=lambda _: order))
        assert isinstance(_failure(embedder), ModelResponseError)

    def test_vectors_of_different_lengths_are_an_error(self, server: FakeOpenAI, embedder: Embedder) -> None:
        def uneven(request: RecordedRequest) -> Reply:
            texts = self.texts_in(request)
            vectors = [embeddings.vector_of(text, 4 + place % 2) for place, text in enumerate(texts)]
            return self.reply_with(request, vectors, tokens=1, order=range(len(texts)))

        server.respond(uneven)
        assert isinstance(_failure(embedder), ModelResponseError)

    # --- faults ---

    @pytest.mark.parametrize(("status", "error_class", "retryable"), STATUSES)
    def test_a_status_has_its_class_of_error_with_all_facts(
        self,
        server: FakeOpenAI,
        embedder: Embedder,
        status: int,
        error_class: type[ModelServiceError],
        retryable: bool,
    ) -> None:
        server.reply(replies.error(status, "because of reasons", headers={"Retry-After": "2"}))
        error = _failure(embedder)
        assert isinstance(error, error_class)
        assert (error.status, error.retryable, error.backend) == (status, retryable, embedder.backend)
        assert (error.retry_after_s, error.request_id) == (2, "req_1")
        assert "because of reasons" in str(error), "the server's message is missing"
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
        assert (type(copy), str(copy), copy.retry_after_s) == (type(error), str(error), 2)

    def test_a_broken_connection_is_an_error(self, server: FakeOpenAI, embedder: Embedder) -> None:
        server.reply(replies.raw(b"x" * 100).reset_after(0))
        assert isinstance(_failure(embedder), ModelConnectionError)

    def test_a_server_that_is_not_there_is_a_connection_error(self, make: MakeEmbedder) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        assert isinstance(_failure(make(f"http://127.0.0.1:{port}/v1")), ModelConnectionError)

    def test_silence_for_longer_than_allowed_is_a_time_out(self, server: FakeOpenAI, make: MakeEmbedder) -> None:
        server.respond(lambda _: replies.raw(b"{}").delayed(60))
        embedder = make(**self.impatient)
        error: ModelServiceError | None = None
        for _ in range(5):
            error = _failure(embedder, limit_s=self.patience_s)
            if server.requests:  # otherwise the machine was too busy to connect
                break
        assert isinstance(error, ModelTimeoutError)
        assert self._is_left_alone(server), "the connection is still open"

    def test_nothing_is_repeated_unless_asked(self, server: FakeOpenAI, embedder: Embedder) -> None:
        server.respond(lambda _: replies.error(503))
        _failure(embedder)
        assert len(server.requests) == 1

    def test_what_can_succeed_is_repeated_as_often_as_asked(self, server: FakeOpenAI, make: MakeEmbedder) -> None:
        embedder = make(**self.persistent)
        server.reply(replies.error(503))
        vectors = asked(embedder, TEXTS[:1]).vectors
        assert self.are_alike(vectors[0], vectors_of(make(), TEXTS[:1])[0])
        server.clear()
        server.respond(lambda _: replies.error(503))
        assert isinstance(_failure(embedder), ModelOverloadedError)
        assert len(server.requests) == 2

    def test_what_cannot_succeed_is_not_repeated(self, server: FakeOpenAI, make: MakeEmbedder) -> None:
        server.respond(lambda _: replies.error(401))
        _failure(make(**self.persistent))
        assert len(server.requests) == 1

    def test_one_request_that_fails_ends_the_others(self, server: FakeOpenAI, make: MakeEmbedder) -> None:
        # The second request fails once the first is certainly open. If requests are sequential, the first one fails.
        server.reply(replies.error(401).delayed(10), replies.error(401))
        server.respond(lambda _: replies.raw(b"{}").delayed(60))
        embedder = make(**self.batched)

        async def fail() -> ModelServiceError:
            with pytest.raises(ModelServiceError) as caught:
                await embedder.embed(_passages(self.many))
            # On the same loop, because everything left running ends with it.
            assert await sync.in_worker(lambda: self._is_left_alone(server)), "other requests continue"
            return caught.value

        assert isinstance(within(embedder, fail, limit_s=20 + 2 * self.patience_s), ModelAuthError)

    def test_a_call_that_is_cancelled_leaves_nothing_open(self, server: FakeOpenAI, embedder: Embedder) -> None:
        server.respond(lambda _: replies.raw(b"{}").delayed(60))

        async def cancel() -> bool:
            call = asyncio.create_task(_awaited(embedder))
            begun = await sync.in_worker(lambda: server.wait_until(lambda s: s.open_streams > 0, timeout_s=10))
            call.cancel()
            with suppress(asyncio.CancelledError):
                await call
            assert await sync.in_worker(lambda: self._is_left_alone(server)), "the connection is still open"
            return begun and call.cancelled()

        assert within(embedder, cancel, limit_s=10 + 2 * self.patience_s), "the call continued, or never started"

    def test_closing_an_embedder_closes_its_connections(self, server: FakeOpenAI, embedder: Embedder) -> None:
        async def embed_and_close() -> bool:
            await embedder.embed(TEXTS, purpose="document")
            await embedder.aclose()
            # Before the loop ends, which would close everything.
            return await asyncio.to_thread(
                lambda: server.wait_until(lambda s: s.open_connections == 0, timeout_s=self.patience_s)
            )

        assert within(embedder, embed_and_close), "`aclose` leaves connections open"

    # --- the key ---

    def test_the_key_is_sent_in_a_header_alone(self, server: FakeOpenAI, embedder: Embedder) -> None:
        asked(embedder, TEXTS)
        request = server.requests[-1]
        assert any(API_KEY in value for value in request.headers.values()), "the key was not sent"
        assert API_KEY not in request.path
        assert API_KEY.encode() not in request.body

    def test_the_key_is_in_no_representation(self, embedder: Embedder) -> None:
        asked(embedder, TEXTS)
        assert API_KEY not in f"{embedder!r} {embedder} {embedder.space}"
        try:
            pickled = pickle.dumps(embedder)
        except (TypeError, AttributeError, pickle.PicklingError):
            return  # the key stays in its process
        assert API_KEY.encode() not in pickled

    @pytest.mark.parametrize("status", [400, 401, 429, 500])
    def test_the_key_is_in_no_error_even_if_the_server_repeats_it(
        self, server: FakeOpenAI, embedder: Embedder, status: int
    ) -> None:
        server.reply(replies.error(status, f"Incorrect API key provided: {API_KEY}.", code="invalid_api_key"))
        error = _failure(embedder)
        assert API_KEY not in str(error) + repr(error)
        assert API_KEY.encode() not in pickle.dumps(error)
        assert API_KEY not in "".join(traceback.format_exception(error)), "the key is in the error's cause or context"

    def test_nothing_is_printed_and_the_key_is_in_no_log(
        self,
        server: FakeOpenAI,
        embedder: Embedder,
        caplog: pytest.LogCaptureFixture,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        caplog.set_level(logging.DEBUG)
        asked(embedder, TEXTS)
        server.reply(replies.error(500))
        _failure(embedder)
        assert API_KEY not in caplog.text
        assert capfd.readouterr() == ("", "")

    # --- parts ---

    def _answering(self, order: Callable[[int], Sequence[int]] = range) -> Callable[[RecordedRequest], Reply]:
        """Return a server function that embeds the texts it receives and lists the vectors in the given order."""

        def answer(request: RecordedRequest) -> Reply:
            texts = self.texts_in(request)
            if not texts or "" in texts:
                return replies.error(400, "there is nothing to embed")
            dimension = self.dimension_in(request) or embeddings.DIMENSION
            vectors = [embeddings.vector_of(text, dimension) for text in texts]
            return self.reply_with(request, vectors, tokens=embeddings.tokens_in(texts), order=list(order(len(texts))))

        return answer

    def _are_those_of(self, embedded: Embedded, texts: Sequence[str], request: RecordedRequest) -> bool:
        dimension = self.dimension_in(request) or embeddings.DIMENSION
        wanted = [embeddings.vector_of(text, dimension) for text in texts]
        return len(embedded.vectors) == len(wanted) and all(map(self.are_alike, embedded.vectors, wanted))

    def _is_left_alone(self, server: FakeOpenAI) -> bool:
        return server.wait_until(lambda s: s.open_streams == 0, timeout_s=self.patience_s)


def _passages(count: int) -> list[str]:
    return [f"Passage {number} of this book." for number in range(count)]


async def _awaited(embedder: Embedder) -> Embedded:
    return await embedder.embed(TEXTS)


def _failure(embedder: Embedder, texts: Sequence[str] = TEXTS, **options: Any) -> ModelServiceError:
    """Return the error of one call."""
    with pytest.raises(ModelServiceError) as caught:
        asked(embedder, texts, **options)
    return caught.value
