"""Test how a backend reads a stream, whichever way it arrives."""

# ruff: noqa: S101 - these are tests: they assert, and take fixtures for their effects

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import ClassVar

import pytest

from jackfield import sync
from jackfield.errors import ModelServiceError
from jackfield.events import ModelEvent, ModelFinished, ReasoningDelta, TextDelta, UsageReported
from jackfield.messages import Message, ModelResponse
from jackfield.models import BaseChatModel, Fold, fold
from jackfield_testkit import replies
from jackfield_testkit.replies import Reply, ToolCall
from jackfield_testkit.server import FakeOpenAI, RecordedRequest
from jackfield_testkit.suites.llm_asking import HELLO, MODEL, WEATHER, LLMTests, answer_of, close, events_of, run_with

TEXT = 'naïve “quotes”, 你好，世界 🙂🏽\n\ndata: [DONE]\\ "x" \u2028 end'
DELIVERIES: dict[str, Callable[[Reply], Reply]] = {
    "1 byte": lambda reply: reply.cut(1),
    "7 bytes": lambda reply: reply.cut(7),
    "64 bytes": lambda reply: reply.cut(64),
    "4096 bytes": lambda reply: reply.cut(4096),
    "inside of characters": lambda reply: reply.cut(inside_characters=True),
    "crlf": lambda reply: reply.written(newline=b"\r\n"),
    "crlf, 1 byte": lambda reply: reply.written(newline=b"\r\n").cut(1),
    "cr": lambda reply: reply.written(newline=b"\r"),
    "cr, 1 byte": lambda reply: reply.written(newline=b"\r").cut(1),
    "byte order mark": lambda reply: reply.written(bom=True),
    "byte order mark, 1 byte": lambda reply: reply.written(bom=True).cut(1),
    "comments": lambda reply: reply.written(comments=True),
    "empty chunks": lambda reply: reply.written(empty_chunks=True),
    "no [DONE]": lambda reply: reply.without("done"),
    "paced": lambda reply: reply.paced(0.001),
}


ANSWERS: dict[str, Reply] = {
    "text": replies.text(TEXT, chars=7),
    "reasoning": replies.reasoning("先想一想 🤔", then=TEXT, chars=7),
    "calls": replies.tool_calls(
        [ToolCall("get_weather", {"place": "北京 🙂"}, "a"), ToolCall("get_weather", {"place": "Zürich"}, "b")],
        content="two calls: ",
        chars=7,
        interleaved=True,
    ),
}


IN_HALVES: dict[str, Reply] = {
    "text": replies.text(TEXT, chars=0),
    "reasoning": replies.reasoning("先想一想 🤔", then=TEXT, chars=0),
    "calls": replies.tool_calls(
        [ToolCall("get_weather", {"place": "北京 🙂"}, "a"), ToolCall("get_weather", {"place": "Zürich"}, "b")],
        content="two calls: ",
        chars=0,
        interleaved=True,
    ),
}


class StreamTests(LLMTests):
    """Streams: their rules, delivery, end, and concurrency."""

    concurrent_streams: ClassVar[int] = 16

    # --- the law ---

    @pytest.mark.parametrize("answer", ANSWERS)
    def test_a_stream_has_one_end_and_it_comes_last(
        self, server: FakeOpenAI, model: BaseChatModel, answer: str
    ) -> None:
        server.reply(ANSWERS[answer])
        events = events_of(model, functions=[WEATHER])
        ends = [index for index, event in enumerate(events) if isinstance(event, ModelFinished)]
        assert ends == [len(events) - 1]

    @pytest.mark.parametrize("answer", ANSWERS)
    def test_a_whole_answer_is_the_fold_of_its_stream(
        self, server: FakeOpenAI, model: BaseChatModel, answer: str
    ) -> None:
        server.reply(ANSWERS[answer], ANSWERS[answer])
        streamed = fold(events_of(model, functions=[WEATHER]), model.backend)
        assert answer_of(model, functions=[WEATHER]) == streamed

    def test_text_arrives_unchanged(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text(TEXT, chars=3))
        assert answer_of(model).get_content() == TEXT

    @pytest.mark.parametrize("answer", ANSWERS)
    def test_delivering_a_stream_otherwise_changes_nothing(
        self, server: FakeOpenAI, model: BaseChatModel, answer: str
    ) -> None:
        server.reply(ANSWERS[answer], *(deliver(ANSWERS[answer]) for deliver in DELIVERIES.values()))

        async def ask() -> None:
            plain = await model.acomplete(HELLO, [WEATHER])
            assert plain.messages
            for delivery in DELIVERIES:
                came = await model.acomplete(HELLO, [WEATHER])
                assert came == plain, f"the response differs when it is delivered as {delivery!r}"

        run_with(model, ask)

    @pytest.mark.parametrize("answer", IN_HALVES)
    def test_characters_that_come_in_two_chunks_are_whole(
        self, server: FakeOpenAI, model: BaseChatModel, answer: str
    ) -> None:
        # JSON writes an emoji as two escapes, and some servers split them.
        server.reply(ANSWERS[answer], IN_HALVES[answer])
        plain = answer_of(model, functions=[WEATHER])
        events = events_of(model, functions=[WEATHER])
        is_whole = fold(events, model.backend) == plain
        # In ASCII, because a report with a lone surrogate cannot be written.
        assert is_whole, f"expected {plain!a}, got {events!a}"
        for event in events:
            str(event).encode()  # writing it down never fails

    def test_half_a_character_that_stays_alone_is_replaced(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text(["a\ud83d", "b", "\ude00c", "d\ud83d"]))
        assert ascii(answer_of(model).get_content()) == ascii("a\ufffdb\ufffdcd\ufffd")

    def test_a_long_text_is_whole(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        # Buffers of 64 KiB are common, but neither a longer line nor a longer body may be cut.
        text = "0123456789" * 20_000
        server.reply(replies.text([text, "end"]), replies.text(text).written(as_one_object=True))
        assert answer_of(model).get_content() == text + "end"
        assert answer_of(model).get_content() == text

    @pytest.mark.parametrize("answer", ANSWERS)
    def test_a_server_that_does_not_stream_is_understood(
        self, server: FakeOpenAI, model: BaseChatModel, answer: str
    ) -> None:
        server.reply(ANSWERS[answer], ANSWERS[answer].written(as_one_object=True))
        streamed = answer_of(model, functions=[WEATHER])
        whole = answer_of(model, functions=[WEATHER])
        assert [_meaning(message) for message in whole.messages] == [_meaning(m) for m in streamed.messages]
        assert (whole.usage, whole.finish_reason) == (streamed.usage, streamed.finish_reason)

    def test_text_is_passed_on_before_the_answer_is_complete(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text(["first", " second"]).stall_after(1))

        async def first() -> ModelEvent:
            events = model.stream(model.make_request(HELLO))
            async for event in events:
                if isinstance(event, TextDelta) and event.text:
                    await close(events)
                    return event
            raise AssertionError("the stream ended without text")

        assert run_with(model, first) == TextDelta("first")

    def test_growing_snapshots_end_with_the_whole_answer(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text(["one ", "two ", "three"]).paced(0.002))
        answer, texts = Fold(), []
        for event in sync.iterate(model.astream(HELLO)):
            answer.feed(event)
            texts.append(answer.text)
        assert texts[-1] == "one two three"
        assert all(later.startswith(earlier) for earlier, later in pairwise(texts))

    # --- metadata ---

    @pytest.mark.parametrize("reason", ["stop", "length", "content_filter"])
    def test_the_finish_reason_has_the_same_word_for_all_providers(
        self, server: FakeOpenAI, model: BaseChatModel, reason: str
    ) -> None:
        server.reply(replies.text("cut", finish_reason=reason))
        assert answer_of(model).finish_reason == reason

    def test_the_providers_word_for_the_reason_is_kept_beside_ours(
        self, server: FakeOpenAI, model: BaseChatModel
    ) -> None:
        for word, reason in {**server.dialect.finish_reasons, "a_word_of_tomorrow": "other"}.items():
            server.reply(replies.text("cut", finish_reason=word))
            response = answer_of(model)
            assert (response.finish_reason, response.provider_reason) == (reason, word)

    def test_the_answer_says_which_model_and_which_response_it_is(
        self, server: FakeOpenAI, model: BaseChatModel
    ) -> None:
        server.reply(replies.text("hi"))
        response = answer_of(model)
        assert (response.model, response.response_id) == (MODEL, replies.RESPONSE_ID)

    def test_usage_is_reported_once(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        usage = {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 64},
            "completion_tokens_details": {"reasoning_tokens": 12},
        }
        server.reply(replies.text("hi", usage=usage))
        reported = [event.usage for event in events_of(model) if isinstance(event, UsageReported)]
        assert len(reported) == 1, f"expected one UsageReported per response, got {len(reported)}"
        assert (reported[0].prompt_tokens, reported[0].completion_tokens, reported[0].total_tokens) == (100, 20, 120), (
            "the server counted 100 prompt tokens and 20 completion tokens"
        )
        reasoning_tokens = 12 if server.dialect.counts_reasoning else 0
        assert (reported[0].cached_tokens, reported[0].reasoning_tokens) == (64, reasoning_tokens)

    def test_an_answer_without_usage_is_complete(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text("hi").without("usage"))
        response = answer_of(model)
        assert (response.get_content(), response.usage.total_tokens) == ("hi", 0)

    @pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
    def test_reasoning_is_apart_from_the_text(self, server: FakeOpenAI, model: BaseChatModel, field: str) -> None:
        name = "reasoning" if field == "reasoning" else "reasoning_content"
        server.reply(replies.reasoning("think, think", then="answer", field=name))  # type: ignore[arg-type]
        events = events_of(model)
        assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == "think, think"
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "answer"

    def test_a_stream_that_ends_in_the_middle_is_an_error_with_the_text_so_far(
        self, server: FakeOpenAI, model: BaseChatModel
    ) -> None:
        server.reply(replies.text(["half an ", "answer"]).broken_after(1, "end"))
        with pytest.raises(ModelServiceError) as caught:
            answer_of(model)
        assert caught.value.partial_text == "half an "

    # --- leaving early ---

    def test_closing_a_stream_closes_its_connection(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text(["first", " second"]).stall_after(1))

        async def leave() -> bool:
            events = model.astream(HELLO)
            await anext(events)
            await close(events)
            return await asyncio.to_thread(server.wait_until, _was_left, timeout_s=self.patience_s)

        assert run_with(model, leave), "the stream was closed, but the connection is still open"

    def test_cancelling_a_call_closes_its_connection(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text("x").stall_after(0))

        async def cancel() -> bool:
            task = asyncio.create_task(model.acomplete(HELLO))
            await asyncio.to_thread(server.wait_until, lambda s: s.open_streams == 1)
            task.cancel()
            await asyncio.wait([task])
            return await asyncio.to_thread(server.wait_until, _was_left, timeout_s=self.patience_s)

        assert run_with(model, cancel), "the call was cancelled, but the connection is still open"

    def test_leaving_a_blocking_iterator_closes_its_connection(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text(["first", " second"]).stall_after(1))
        events = sync.iterate(model.astream(HELLO, config={"request_timeout": 10}))
        assert next(event for event in events if isinstance(event, TextDelta) and event.text) == TextDelta("first")
        events.close()
        assert server.wait_until(_was_left, timeout_s=self.patience_s)

    def test_the_next_call_after_an_abandoned_one_is_answered(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text(["abandoned", " answer"]).stall_after(1), replies.text("the next answer"))

        async def twice() -> ModelResponse:
            events = model.astream(HELLO)
            await anext(events)
            await close(events)
            return await model.acomplete(HELLO)

        assert run_with(model, twice).get_content() == "the next answer"

    # --- many ---

    def test_streams_at_the_same_time_do_not_mix(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.respond(_echo)
        questions = [f"question {number} " * 5 for number in range(self.concurrent_streams)]

        async def ask_all() -> list[ModelResponse]:
            return await asyncio.gather(*(model.acomplete([Message("user", question)]) for question in questions))

        assert [response.get_content() for response in run_with(model, ask_all)] == questions

    def test_calls_at_the_same_time_do_not_wait_for_each_other(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.default = replies.text("x").stall_after(0)

        async def all_at_once() -> bool:
            tasks = [asyncio.create_task(model.acomplete(HELLO)) for _ in range(4)]
            together = await asyncio.to_thread(
                server.wait_until, lambda s: s.open_streams == 4, timeout_s=self.patience_s
            )
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            return together

        assert run_with(model, all_at_once), "four calls were started, but they did not all reach the server"

    def test_others_run_while_the_server_is_silent(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.reply(replies.text(["half ", "x"]).stall_after(1))

        async def look_at_it() -> bool:
            begun = asyncio.Event()

            async def read() -> None:
                async for _ in model.astream(HELLO, config={"request_timeout": self.patience_s}):
                    begun.set()

            # Not before its first event, because a server that is slow to send would prove nothing.
            reading, beginning = asyncio.create_task(read()), asyncio.create_task(begun.wait())
            await asyncio.wait([reading, beginning], return_when="FIRST_COMPLETED")
            # If a stream blocks the event loop, it has ended one way or another before this continues.
            for _ in range(50):  # an error passes through several layers
                await asyncio.sleep(0)
            waits = not reading.done()
            reading.cancel()
            beginning.cancel()
            await asyncio.wait([reading, beginning])
            return waits

        assert run_with(model, look_at_it), "the event loop was blocked while the server was silent"

    def test_threads_at_the_same_time_do_not_mix(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.respond(_echo)
        questions = [f"question {number} " * 5 for number in range(8)]
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(model.quick_chat, questions)) == questions

    def test_calls_one_after_the_other_share_a_connection(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.default = replies.text("again")

        async def three_times() -> None:
            for _ in range(3):
                await model.acomplete(HELLO)

        run_with(model, three_times)
        assert (len(server.requests), server.connections) == (3, 1)

    def test_blocking_calls_one_after_the_other_share_a_connection(
        self, server: FakeOpenAI, model: BaseChatModel
    ) -> None:
        server.default = replies.text("again")
        for _ in range(3):
            model.quick_chat("hello")
        assert (len(server.requests), server.connections) == (3, 1)

    def test_one_model_serves_several_event_loops(self, server: FakeOpenAI, model: BaseChatModel) -> None:
        server.default = replies.text("again")

        async def once() -> ModelResponse:
            return await model.acomplete(HELLO)

        # Without closing the model in between: a connection from a closed loop must not be reused.
        assert [asyncio.run(once()).get_content() for _ in range(2)] == ["again", "again"]
        assert model.quick_chat("hello") == "again"


def _was_left(server: FakeOpenAI) -> bool:
    return server.disconnects == 1 and server.open_streams == 0


def _echo(request: RecordedRequest) -> Reply:
    content = request.json["messages"][-1]["content"]
    text = content if isinstance(content, str) else content[0]["text"]
    return replies.text(text, chars=5).paced(0.001)


def _meaning(message: Message) -> tuple[object, ...]:
    """Return a message's content without ids, which may differ in another form of the same answer."""
    call = message.function_call
    return message.content, message.reasoning_content, call and (call.name, call.get_parsed_arguments())
