"""Laws for all models, tested without inspecting any requests, so no server is needed."""

# ruff: noqa: S101 - these are tests: they assert, and take fixtures for their effects

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

from jackfield import sync
from jackfield.events import ModelFinished
from jackfield.messages import FINISH_REASONS, ContentItem, Message
from jackfield.models import BaseChatModel, fold, get_chat_model
from jackfield_testkit.effects import watching
from jackfield_testkit.loopwatch import check_loop
from jackfield_testkit.suites.base import Suite
from jackfield_testkit.suites.calls_heard import calls_to
from jackfield_testkit.suites.llm_asking import HELLO, WEATHER, answer_of, close, events_of, run_with


class ModelLaws(Suite):
    """Laws for all models. A subclass provides a model that answers anything, as the `any_model` fixture."""

    @pytest.fixture
    def any_model(self) -> BaseChatModel:
        """Return a model that answers."""
        raise NotImplementedError

    def test_every_answer_has_one_end_and_it_comes_last(self, any_model: BaseChatModel) -> None:
        events = events_of(any_model)
        ends = [index for index, event in enumerate(events) if isinstance(event, ModelFinished)]
        assert ends == [len(events) - 1]
        assert fold(events, any_model.backend).finish_reason in FINISH_REASONS

    def test_nothing_that_was_given_is_changed(self, any_model: BaseChatModel) -> None:
        messages = [Message("system", "be brief"), Message("user", [ContentItem(text="hello")])]
        schema: dict[str, object] = copy.deepcopy(dict(WEATHER))
        config: dict[str, object] = {"stop": ["END"], "extra_headers": {"X-Test": "yes"}}
        before = [message.model_dump_json() for message in messages], copy.deepcopy((schema, config))
        functions = [schema] if any_model.facts.native_tools else []
        answer_of(any_model, messages, functions, config)
        assert ([message.model_dump_json() for message in messages], (schema, config)) == before

    def test_nothing_sleeps_on_the_event_loop(self, any_model: BaseChatModel) -> None:
        """Sleeping for 20 ms per piece would also stop every other task on the loop. Threads may sleep freely."""
        answer_of(any_model)  # what the first call loads does not count
        with calls_to(lambda function: function is time.sleep) as slept:
            answer_of(any_model)
        assert not slept, f"time.sleep is called on the event loop, at {slept[0]}: use asyncio.sleep"

    def test_the_event_loop_is_never_held_up(self, any_model: BaseChatModel) -> None:
        """Computing, waiting for a lock or calling a blocking library on the loop pauses every other task on it."""
        answer_of(any_model)  # what the first call loads does not count
        check_loop(lambda: _ask_and_close(any_model))

    def test_an_answer_that_is_left_does_not_hinder_the_next(self, any_model: BaseChatModel) -> None:
        async def leave_and_ask() -> str | None:
            events = any_model.astream(HELLO)
            await anext(events)
            await close(events)
            task = asyncio.create_task(any_model.acomplete(HELLO))
            await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            return (await any_model.acomplete(HELLO)).finish_reason

        assert run_with(any_model, leave_and_ask)

    def test_calls_at_the_same_time_are_all_answered(self, any_model: BaseChatModel) -> None:
        async def ask_all() -> list[str]:
            answers = await asyncio.gather(*(any_model.acomplete(HELLO) for _ in range(4)))
            return [answer.get_content() for answer in answers]

        assert all(run_with(any_model, ask_all))

    def test_a_call_writes_no_file(self, any_model: BaseChatModel, tmp_path: Path) -> None:
        answer_of(any_model)  # what the first call loads does not count
        with watching(workspace=tmp_path) as effects:
            answer_of(any_model)
        written = [effect.what for effect in effects.outside if effect.kind == "files"]
        assert not written, f"a call changed files: {written}"


async def _ask_and_close(model: BaseChatModel) -> None:
    try:
        await model.acomplete(HELLO)
    finally:
        await model.aclose()


class ChatModelSuite(ModelLaws):
    """Laws for models that run in-process, or whose server the test kit cannot replace.

    ```python
    class TestAcme(ChatModelSuite):
        component = "jackfield-acme/acme"
        config = {"model": "small"}
    ```

    For backends that use a server over HTTP, `LLMBackendSuite` includes these laws and much more.

    Attributes:
        component: The backend to test, as `distribution/name`, or only the name if it is unique.
        config: The backend's configuration.
        tool_question: A question that makes the model call `get_weather`, if its facts include `native_tools`.
        cannot_show_tools: The reason why no question makes the model call a tool here, although its facts include
            `native_tools`.
    """

    component: ClassVar[str]
    config: ClassVar[Mapping[str, Any]] = {}
    tool_question: ClassVar[str] = ""
    cannot_show_tools: ClassVar[str] = ""

    def make_model(self) -> BaseChatModel:
        """Create the model to test."""
        return get_chat_model({"model_type": self.component, **self.config})

    @pytest.fixture
    def any_model(self) -> Iterator[BaseChatModel]:
        """Yield the model to test."""
        model = self.make_model()
        yield model
        sync.run(model.aclose())

    def test_tools_are_called_or_described_in_the_text(self, any_model: BaseChatModel) -> None:
        """If a model silently ignores tools, an agent is left without tools and without an error."""
        if not any_model.facts.native_tools:
            assert any_model.call_format_name(any_model.config.generate_cfg) != "native"
            return
        if self.cannot_show_tools:
            pytest.skip(f"no question makes the model call a tool: {self.cannot_show_tools}")
        assert self.tool_question, (
            "the model's facts state native_tools: set a `tool_question` that makes the model call "
            "get_weather(place), or state "
            "ModelFacts(native_tools=False) so that a call format describes the tools in the text"
        )
        messages = answer_of(any_model, [Message("user", self.tool_question)], [WEATHER]).messages
        called = [message.function_call.name for message in messages if message.function_call]
        assert WEATHER["name"] in called, (
            f"expected {self.tool_question!r} to cause a call to {WEATHER['name']}, got {called}"
        )
