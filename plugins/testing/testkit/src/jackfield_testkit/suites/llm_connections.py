"""Test how a backend handles kept-alive connections that the server closes or on which it sends too much."""

# ruff: noqa: S101 - these are tests: they assert, and take fixtures for their effects

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import pytest

from jackfield.errors import ModelConnectionError, ModelServiceError, ModelTimeoutError
from jackfield.messages import ModelResponse
from jackfield.models import BaseChatModel
from jackfield_testkit import replies
from jackfield_testkit.replies import Reply
from jackfield_testkit.server import FakeOpenAI
from jackfield_testkit.suites.llm_asking import HELLO, TIME_OUTS_S, LLMTests, run_with

Between = Callable[[], None]


def _no_pause() -> None:
    """Make the next call right away, before the event loop has noticed what the server did."""


def _busy() -> None:
    """Block the event loop while the server acts, so that the loop does not notice it before the next call."""
    time.sleep(0.05)


class ConnectionTests(LLMTests):
    """Kept-alive connections: a server may close one at any time, and no call may fail because of it."""

    # --- connections that end ---

    @pytest.mark.parametrize(("between", "times"), [(_no_pause, 20), (_busy, 5)], ids=["at once", "busy"])
    def test_a_server_that_closes_after_each_answer_costs_no_call(
        self, server: FakeOpenAI, model: BaseChatModel, between: Between, times: int
    ) -> None:
        # llama.cpp announces keep-alive, but closes the connection after each streamed answer.
        server.default = replies.text("again").closing()
        answers = _asked(model, times, between)
        assert [answer.get_content() for answer in answers] == ["again"] * times

    def test_blocking_calls_survive_a_server_that_closes_after_each_answer(
        self, server: FakeOpenAI, model: BaseChatModel
    ) -> None:
        server.default = replies.text("again").closing()
        assert [model.quick_chat("hello") for _ in range(20)] == ["again"] * 20

    def test_a_batch_survives_a_server_that_closes_after_each_answer(
        self, server: FakeOpenAI, model: BaseChatModel
    ) -> None:
        server.default = replies.text("again").closing()

        async def whole_batch() -> list[object]:
            return list(await model.abatch(["hello"] * 40, concurrency=8))

        answers = run_with(model, whole_batch)
        failed = [answer for answer in answers if not isinstance(answer, ModelResponse)]
        assert not failed, f"{len(failed)} of 40 calls failed, the first with {failed[0]!r}"

    def test_a_kept_connection_that_ends_without_an_answer_costs_no_call(
        self, server: FakeOpenAI, model: BaseChatModel
    ) -> None:
        server.reply(replies.text("first"), replies.text("lost").closing(unanswered=True), replies.text("second"))
        answers = _asked(model, 2)
        assert [answer.get_content() for answer in answers] == ["first", "second"]
        assert len(server.requests) == 3

    def test_a_request_is_sent_twice_at_most(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text("first"), *[replies.text("lost").closing(unanswered=True)] * 3)
        with pytest.raises(ModelConnectionError):
            _asked(model, 2)
        assert len(server.requests) == 3

    def test_a_new_connection_that_ends_without_an_answer_is_an_error(
        self, server: FakeOpenAI, model: BaseChatModel
    ) -> None:
        server.reply(replies.text("lost").closing(unanswered=True), replies.text("never"))
        with pytest.raises(ModelConnectionError):
            _asked(model, 1)
        assert len(server.requests) == 1

    def test_a_kept_connection_that_is_silent_is_a_time_out_and_nothing_is_sent_twice(
        self, server: FakeOpenAI, model: BaseChatModel
    ) -> None:
        error: ModelServiceError | None = None
        for seconds in TIME_OUTS_S:
            server.clear()
            server.reply(replies.text("first"), replies.text("late").delayed(60), replies.text("never"))
            with pytest.raises((ModelTimeoutError, ModelConnectionError)) as caught:
                _asked(model, 2, request_timeout=seconds)
            error = caught.value
            if len(server.requests) > 1:  # otherwise the machine was too busy to connect, or for the first answer
                break
        assert len(server.requests) == 2
        assert isinstance(error, ModelTimeoutError)

    def test_an_answer_that_began_on_a_kept_connection_is_not_asked_for_again(
        self, server: FakeOpenAI, model: BaseChatModel
    ) -> None:
        server.reply(replies.text("first"), replies.text(["half", "x"]).reset_after(1), replies.text("never"))
        with pytest.raises(ModelServiceError) as caught:
            _asked(model, 2)
        assert caught.value.partial_text == "half"
        assert len(server.requests) == 2

    # --- connections that send too much ---

    @pytest.mark.parametrize("form", ["stream", "object"])
    def test_an_answer_that_nobody_asked_for_is_nobodys(
        self, server: FakeOpenAI, model: BaseChatModel, form: str
    ) -> None:
        first = replies.text("first") if form == "stream" else replies.text("first").written(as_one_object=True)
        unasked = replies.text("for somebody else")
        server.reply(first.followed_by(unasked), replies.text("second"))
        answers = _asked(model, 2)
        assert [answer.get_content() for answer in answers] == ["first", "second"]

    def test_an_answer_that_comes_between_two_calls_is_nobodys(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        unasked = replies.text("for somebody else")
        server.reply(replies.text("first").followed_by(unasked, delay_s=0.01), replies.text("second"))

        def until_it_is_there() -> None:
            server.wait_until(lambda s: s.open_streams == 0, timeout_s=10)
            _busy()

        answers = _asked(model, 2, until_it_is_there)
        assert [answer.get_content() for answer in answers] == ["first", "second"]

    # --- connections that stay open ---

    def test_a_server_that_holds_a_finished_stream_open_costs_nothing(
        self, server: FakeOpenAI, model: BaseChatModel
    ) -> None:
        server.default = _held_open()
        # Half a second for each of these calls would be too much.
        assert [answer.get_content() for answer in _asked(model, 40)] == ["again"] * 40

    def test_the_end_of_a_response_may_come_after_the_end_of_its_stream(
        self, server: FakeOpenAI, model: BaseChatModel
    ) -> None:
        server.default = replies.text("again").ended_apart(0.001)
        assert [answer.get_content() for answer in _asked(model, 10)] == ["again"] * 10


def _held_open() -> Reply:
    return replies.text("again").held_open()


def _asked(
    model: BaseChatModel, times: int, between: Between = _no_pause, *, request_timeout: float | None = None
) -> list[ModelResponse]:
    """Return the answers to several consecutive calls on one event loop."""
    config = {} if request_timeout is None else {"request_timeout": request_timeout}

    async def ask() -> list[ModelResponse]:
        answers = []
        for _ in range(times):
            answers.append(await model.acomplete(HELLO, config=config))
            between()
        return answers

    work: Callable[[], Awaitable[list[ModelResponse]]] = ask
    return run_with(model, work)
