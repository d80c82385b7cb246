"""Test how a backend handles server faults: the right error class and facts, and no pointless retries."""

# ruff: noqa: S101, ARG002 - these are tests: they assert, and take fixtures for their effects

from __future__ import annotations

import email.utils
import pickle
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import pytest

from jackfield.errors import (
    ContentFilterError,
    ContextLengthError,
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
from jackfield.events import ModelEvent, ModelFinished, RetryScheduled, StreamReset, TextDelta
from jackfield.models import BaseChatModel, fold
from jackfield_testkit import replies
from jackfield_testkit.replies import Reply
from jackfield_testkit.server import FakeOpenAI
from jackfield_testkit.suites.llm_asking import (
    API_KEY,
    HELLO,
    TIME_OUTS_S,
    LLMTests,
    answer_of,
    events_of,
    run_with,
)

STATUSES: list[tuple[int, type[ModelServiceError], bool]] = [
    (400, ModelRequestError, False),
    (401, ModelAuthError, False),
    (403, ModelAuthError, False),
    (404, ModelNotFoundError, False),
    (429, RateLimitedError, True),
    (500, ModelOverloadedError, True),
    (502, ModelOverloadedError, True),
    (503, ModelOverloadedError, True),
]
TOO_LONG = "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens."


class FaultTests(LLMTests):
    """Errors, timeouts and retries."""

    # --- statuses ---

    @pytest.mark.parametrize(("status", "error_class", "retryable"), STATUSES)
    def test_a_status_has_its_class_of_error_with_all_facts(
        self,
        server: FakeOpenAI,
        model: BaseChatModel,
        status: int,
        error_class: type[ModelServiceError],
        retryable: bool,
    ) -> None:
        server.reply(replies.error(status, "because of reasons", code="some_code"))
        error = self._failure(model)
        assert isinstance(error, error_class)
        assert (error.status, error.code, error.request_id) == (status, "some_code", "req_1")
        assert error.backend == model.backend
        assert error.retryable is retryable
        assert "because of reasons" in str(error), "the server's message is missing"

    def test_a_rate_limit_says_how_many_seconds_to_wait(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.error(429, headers={"Retry-After": "2"}))
        assert self._failure(model).retry_after_s == 2

    def test_a_rate_limit_says_until_when_to_wait(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        until = email.utils.formatdate(time.time() + 3600, usegmt=True)
        server.reply(replies.error(429, headers={"Retry-After": until}))
        wait_s = self._failure(model).retry_after_s
        assert wait_s is not None
        # A wide range, so that slow machines pass; all that matters is that the date was understood.
        assert 1800 < wait_s <= 3601

    def test_a_history_that_is_too_long_is_told_apart(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.error(400, TOO_LONG, code="context_length_exceeded"))
        error = self._failure(model)
        assert isinstance(error, ContextLengthError)
        assert not error.retryable

    def test_filtered_content_is_told_apart(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.error(400, "The content was flagged.", code="content_filter"))
        assert isinstance(self._failure(model), ContentFilterError)

    def test_a_proxys_error_page_is_an_error_by_its_status(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        page = b"<html><h1>502 Bad Gateway</h1>" + b"x" * 100_000
        server.reply(replies.raw(page, {"Content-Type": "text/html"}, status=502))
        error = self._failure(model)
        assert isinstance(error, ModelOverloadedError)
        assert len(str(error)) < 5_000, "the error contains an entire page"

    # --- invalid protocol ---

    @pytest.mark.parametrize("body", [b"", b"<html>welcome</html>", b"[1, 2]", b'{"choices": 1}', b"\xff\xfe\x00"])
    def test_a_response_that_nobody_can_read_is_an_error(
        self, server: FakeOpenAI, model: BaseChatModel, body: bytes
    ) -> None:
        server.reply(replies.raw(body, {"Content-Type": "application/json"}))
        assert isinstance(self._failure(model), ModelResponseError)

    def test_a_malformed_chunk_is_an_error_with_the_text_so_far(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text(["half an ", "answer"]).broken_after(1, "malformed"))
        error = self._failure(model)
        assert isinstance(error, ModelResponseError)
        assert error.partial_text == "half an "

    def test_an_error_inside_a_stream_is_an_error_with_the_text_so_far(
        self, server: FakeOpenAI, model: BaseChatModel
    ) -> None:
        first = {"choices": [{"index": 0, "delta": {"content": "half an "}, "finish_reason": None}]}
        failure = {"error": {"message": "the machine is on fire", "type": "server_error", "code": "fire"}}
        server.reply(replies.chunks([first, failure]))
        error = self._failure(model)
        assert (error.partial_text, error.code) == ("half an ", "fire")
        assert "the machine is on fire" in str(error)

    # --- connections ---

    def test_a_reset_is_an_error_with_the_text_so_far(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text(["half an ", "answer"]).reset_after(1))
        error = self._failure(model)
        assert isinstance(error, ModelConnectionError)
        assert error.partial_text == "half an "

    def test_what_came_before_a_reset_is_passed_on(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text(["half an ", "answer"]).reset_after(1))
        seen: list[ModelEvent] = []

        async def listen() -> None:
            async for event in model.astream(HELLO):
                seen.append(event)  # noqa: PERF401 - events before the failure count as well

        with pytest.raises(ModelConnectionError):
            run_with(model, listen)
        assert "".join(event.text for event in seen if isinstance(event, TextDelta)) == "half an "
        assert not any(isinstance(event, ModelFinished) for event in seen)

    def test_a_server_that_is_not_there_is_a_connection_error(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        error = self._failure(self.make_model(f"http://127.0.0.1:{port}/v1"))
        assert isinstance(error, ModelConnectionError)
        assert error.retryable

    def test_a_server_without_tls_at_a_url_with_it_is_an_error_and_learns_nothing(self) -> None:
        # The server does not answer in TLS, so the connection must fail, and must not be retried without TLS.
        with _server_without_tls() as (address, heard):
            error = self._failure(self.make_model(f"https://{address}/v1"))
        assert heard, "the backend did not connect"
        assert API_KEY.encode() not in b"".join(heard), "the key was sent in clear text"
        assert isinstance(error, ModelConnectionError)

    @pytest.mark.parametrize(
        "reply",
        [replies.text("x").delayed(60), replies.text(["half", "x"]).stall_after(1)],
        ids=["before", "inside"],
    )
    def test_silence_for_longer_than_allowed_is_a_time_out(
        self, server: FakeOpenAI, model: BaseChatModel, reply: Reply
    ) -> None:
        error = self._timed_out(server, model, reply, lambda seconds: {"request_timeout": seconds})
        assert error.partial_text == ("half" if reply.ends_after else "")
        assert server.wait_until(lambda s: s.open_streams == 0, timeout_s=self.patience_s), (
            "the connection is still open"
        )

    @pytest.mark.parametrize("name", ["request_timeout", "event_timeout"])
    def test_comments_do_not_prolong_an_answer_for_ever(
        self, server: FakeOpenAI, model: BaseChatModel, name: str
    ) -> None:
        # Ten times the allowed silence, unless `event_timeout` is set.
        reply = replies.text(["half", "x"]).broken_after(1, "comment")
        error = self._timed_out(server, model, reply, lambda seconds: {"request_timeout": 60, name: seconds})
        assert error.partial_text == "half"
        assert server.wait_until(lambda s: s.open_streams == 0, timeout_s=self.patience_s), (
            "the connection is still open"
        )

    def test_comments_are_no_silence(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        ticks = replies.text(["tick "] * 6).written(comments=True)
        options = ("request_timeout", "event_timeout")
        assert _slowly_answered(server, model, ticks, options) == "tick " * 6

    def test_a_line_without_an_end_is_an_error_with_the_text_so_far(
        self, server: FakeOpenAI, model: BaseChatModel
    ) -> None:
        server.reply(replies.text(["half", "x"]).broken_after(1, "flood"))
        error = self._failure(model)
        assert error.partial_text == "half"
        assert server.wait_until(lambda s: s.open_streams == 0, timeout_s=self.patience_s), (
            "the connection is still open"
        )

    def test_a_slow_stream_that_is_never_silent_is_no_time_out(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        assert _slowly_answered(server, model, replies.text(["tick "] * 12), ["request_timeout"]) == "tick " * 12

    def test_a_deadline_ends_a_stream_that_is_never_silent(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        ticks = replies.text(["tick "] * 3000).paced(0.02)
        self._timed_out(server, model, ticks, lambda seconds: {"deadline": seconds})
        assert server.wait_until(lambda s: s.open_streams == 0, timeout_s=self.patience_s), (
            "the connection is still open"
        )

    # --- retries ---

    @pytest.mark.parametrize(("status", "error_class", "retryable"), STATUSES)
    def test_nothing_is_repeated_unless_asked(
        self,
        server: FakeOpenAI,
        model: BaseChatModel,
        status: int,
        error_class: type[ModelServiceError],
        retryable: bool,
    ) -> None:
        # An SDK with its own retries would multiply the attempts.
        server.default = replies.error(status)
        with suppress(error_class):
            events_of(model)
        assert len(server.requests) == 1, (
            f"the backend retries a request that failed with {status}: leave retries to the core"
        )

    @pytest.mark.parametrize("status", [status for status, _, retryable in STATUSES if not retryable])
    def test_what_cannot_succeed_is_not_repeated(self, server: FakeOpenAI, model: BaseChatModel, status: int) -> None:
        server.default = replies.error(status)
        with pytest.raises(ModelServiceError):
            answer_of(model, config={"max_retries": 3})
        assert len(server.requests) == 1, (
            f"status {status} is retried, although waiting cannot help: check the error class"
        )

    def test_what_can_succeed_is_repeated_as_often_as_asked(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.default = replies.error(503)
        with pytest.raises(ModelOverloadedError):
            answer_of(model, config={"max_retries": 1})
        assert len(server.requests) == 2

    @pytest.mark.parametrize("value", ["1000000000", "1e300", "Fri, 31 Dec 9999 23:59:59 GMT"])
    @pytest.mark.parametrize("status", [429, 503])
    def test_a_server_cannot_choose_how_long_we_wait(
        self, server: FakeOpenAI, model: BaseChatModel, status: int, value: str
    ) -> None:
        server.reply(replies.error(status, "come back later", headers={"Retry-After": value}))

        async def ask() -> ModelServiceError:
            with pytest.raises(ModelServiceError) as caught:
                await model.acomplete(HELLO, config={"max_retries": 1})
            return caught.value

        error = run_with(model, ask)
        assert error.status == status
        assert (error.retry_after_s or 0) > 10_000, "the error does not say how long to wait"
        assert len(server.requests) == 1, "the request was repeated too early"

    @pytest.mark.parametrize(
        "value", ["-5", "nan", "inf", "-inf", "soon", "", "1 s", "Mon, 99 Foo 99999 99:99:99 +9999999", "\u0661"]
    )
    def test_a_pause_that_nobody_can_read_is_no_pause(
        self, server: FakeOpenAI, model: BaseChatModel, value: str
    ) -> None:
        server.reply(replies.error(429, headers={"Retry-After": value.encode().decode("latin-1")}))
        error = self._failure(model)
        assert isinstance(error, RateLimitedError)
        assert error.retry_after_s is None or 0 <= error.retry_after_s < 10

    def test_a_stream_that_broke_off_is_declared_void_before_it_starts_again(
        self, server: FakeOpenAI, model: BaseChatModel
    ) -> None:
        server.reply(replies.text(["half an ", "answer"]).reset_after(1), replies.text("a whole answer"))

        async def gather() -> list[ModelEvent]:
            return [event async for event in model.astream(HELLO, config={"max_retries": 1})]

        events = run_with(model, gather)
        told = [type(event) for event in events if isinstance(event, RetryScheduled | StreamReset)]
        assert told == [RetryScheduled, StreamReset]
        assert fold(events).get_content() == "a whole answer"

    def test_an_error_survives_pickling_with_its_facts(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.error(429, "slow down", code="slow", headers={"Retry-After": "2"}))
        error = self._failure(model)
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
        assert type(copy) is type(error)
        assert (str(copy), copy.status, copy.code) == (str(error), 429, "slow")
        assert (copy.retry_after_s, copy.request_id) == (2, "req_1")

    def _timed_out(
        self, server: FakeOpenAI, model: BaseChatModel, reply: Reply, config: Callable[[float], Mapping[str, object]]
    ) -> ModelTimeoutError:
        """Return the error of a call that times out.

        The result proves nothing if a busy machine had no time to connect, to send the request, or to read the start of
        an answer that breaks off. In that case the call is repeated with a longer timeout.
        """
        for seconds in TIME_OUTS_S:
            server.clear()
            server.default = reply  # for any number of requests, because an abandoned one may arrive late
            with pytest.raises((ModelTimeoutError, ModelConnectionError)) as caught:
                # Comments may continue for ten times as long.
                answer_of(model, config=config(seconds), limit_s=2 * self.patience_s + 12 * seconds)
            error = caught.value
            if server.requests and (error.partial_text or reply.ends_after is None):
                assert isinstance(error, ModelTimeoutError), f"expected a ModelTimeoutError, got {error!r}"
                return error
        pytest.fail("the timeout error has no text, although the server had sent some")

    def _failure(self, model: BaseChatModel) -> ModelServiceError:
        """Return the error of one call."""
        with pytest.raises(ModelServiceError) as caught:
            answer_of(model)
        return caught.value


def _slowly_answered(server: FakeOpenAI, model: BaseChatModel, reply: Reply, options: Sequence[str]) -> str:
    """Return the answer to a call that takes longer than the timeout in total, although each silence is short.

    A busy machine can stay silent for longer than the server, or connect too late. In that case the call is repeated
    with a longer timeout.
    """
    for seconds in TIME_OUTS_S:
        server.clear()
        # For any number of requests, because the abandoned one may reach the server later.
        server.default = reply.paced(seconds / 8)
        with suppress(ModelTimeoutError, ModelConnectionError):
            return answer_of(model, config=dict.fromkeys(options, seconds)).get_content()
    pytest.fail("a response that keeps arriving must not time out")


@contextmanager
def _server_without_tls() -> Iterator[tuple[str, list[bytes]]]:
    """Yield the address of a server that answers every request with 400 Bad Request, and the bytes it receives."""
    heard: list[bytes] = []

    def serve() -> None:
        with suppress(OSError):  # it is closed from outside
            while True:
                connection, _ = listening.accept()
                with connection, suppress(OSError):
                    heard.append(connection.recv(65536))
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}", heard
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
