"""The request for a summary: its sizes, its options, and the report of one that failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from jackfield.config import GenerateConfig, Lang
from jackfield.errors import ModelResponseError
from jackfield.events import ModelEvent, UsageReported
from jackfield.messages import Message, Usage
from jackfield.request import ChatRequest, ModelFacts
from jackfield.testing import ScriptedModel, answer
from jackfield_truncation.writing import FAILED_EVENT, Spent, failed, request_for, sizes_of_question, summary_from


@pytest.mark.parametrize(
    ("context", "limit", "room", "sizes"),
    [
        (None, 100_000, 100, (100_000, 2048)),
        (None, 100_000, 512, (100_000, 2048)),
        (None, 100_000, 513, (100_000, 2052)),
        (None, 4000, 513, (4000, 1000)),
        (10_000, 100_000, 100, (9000, 2048)),
        (10_000, 8000, 100, (8000, 2000)),
    ],
)
def test_a_question_for_a_summary_fits_the_model_that_writes_it(
    context: int | None, limit: int, room: int, sizes: tuple[int, int]
) -> None:
    model = None if context is None else ScriptedModel([], facts=ModelFacts(context_tokens=context))
    assert sizes_of_question(model, limit, room) == sizes
    assert sizes_of_question(ScriptedModel([]), limit, room) == sizes_of_question(None, limit, room)


def test_a_question_for_a_summary_has_the_options_of_the_model_and_none_of_the_questions_own() -> None:
    config = GenerateConfig(
        temperature=0.5,
        max_tokens=7,
        max_input_tokens=9,
        stop=["x"],
        response_format={"type": "json_object"},
        function_choice="required",
    )
    asked = ChatRequest("m", (Message("user", "a"),), ({"name": "f"},), config)
    made = request_for(asked, [Message("user", "b")], 50)
    assert ([message.content for message in made.messages], made.functions) == (["b"], ())
    sent = made.config
    assert (sent.temperature, sent.max_tokens, sent.max_input_tokens) == (0.5, 50, None)
    assert (sent.stop, sent.response_format, sent.function_choice) == ((), None, "auto")


@pytest.mark.parametrize(
    ("lang", "note"),
    [
        ("en", "the dropped part could not be summarised (ValueError: a b {})"),
        ("zh", "省略的内容未能写成摘要（ValueError: a b {}）"),
    ],
)
def test_a_summary_that_failed_is_reported_in_a_line(lang: Lang, note: str) -> None:
    event = failed(ValueError("a\n  b " + "x" * 999), lang)
    assert (event.name, event.data["error"]) == (FAILED_EVENT, "ValueError")
    assert event.data["note"] == note.format("x" * 196)


def test_summaries_are_paid_for_one_after_the_other_also_those_that_failed() -> None:
    steps = [answer("a", usage=Usage(prompt_tokens=3)), [UsageReported(Usage(prompt_tokens=5))]]
    model, spent = ScriptedModel([*steps, answer("b", usage=Usage(prompt_tokens=7))]), Spent()
    request = ChatRequest("m", (Message("user", "a"),), config=GenerateConfig(max_tokens=50), lang="zh")

    async def call_next(_: ChatRequest) -> AsyncIterator[ModelEvent]:
        raise AssertionError("another model writes")
        yield

    async def main() -> None:
        assert await summary_from(model, request, call_next, spent) == "a"
        with pytest.raises(ModelResponseError):
            await summary_from(model, request, call_next, spent)
        assert await summary_from(model, request, call_next, spent) == "b"

    asyncio.run(main())
    assert spent.usage == Usage(prompt_tokens=15)
    assert [(one.config.max_tokens, one.lang) for one in model.requests] == [(50, "zh")] * 3
