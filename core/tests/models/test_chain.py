"""The chain of a model: the order of its processors, and when a call format is looked up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from jackfield.config import GenerateConfig
from jackfield.errors import BrokenPluginError, PluginNotFoundError
from jackfield.events import ModelEvent
from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield.processors import CallNext, Preprocessor, Processor
from jackfield.request import ChatRequest, ModelFacts
from jackfield.testing import ScriptedModel, answer

LOOK = {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {}}}
ASK = [Message("user", "Hi")]


class Notes(Preprocessor):
    """Notes each request, and the order in which such processors got it."""

    def __init__(self, name: str, seen: list[str]) -> None:
        self.name, self.seen, self.closed = name, seen, 0  # type: ignore[misc]

    def prepare(self, request: ChatRequest) -> ChatRequest:
        self.seen.append(self.name)
        return request

    async def aclose(self) -> None:
        self.closed += 1


def test_processors_of_one_answer_are_around_all_others_in_their_order() -> None:
    seen: list[str] = []
    own, other = Notes("own", seen), Notes("other", seen)
    model = ScriptedModel([answer("a"), answer("b")], processors=[own, other])

    async def ask() -> None:
        async for _ in model.astream(ASK, around=[Notes("first", seen), Notes("second", seen)]):
            pass
        async for _ in model.astream(ASK):
            pass
        assert own.closed == 0
        await model.aclose()

    asyncio.run(ask())
    assert [name for name in seen if name != "other"] == ["first", "second", "own", "own"]
    assert (own.closed, other.closed) == (1, 1)
    asyncio.run(ScriptedModel([]).aclose())  # nothing was made


def test_a_processor_that_adds_the_first_tool_gets_a_call_format_for_it() -> None:
    class Adds(Processor):
        name = "adds"

        def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
            from dataclasses import replace

            return call_next(replace(request, functions=(LOOK,)))

    model = ScriptedModel([answer("a")], facts=ModelFacts(native_tools=False))

    async def ask() -> None:
        async for _ in model.astream(ASK, around=[Adds()]):
            pass

    asyncio.run(ask())
    assert model.requests[0].functions == ()
    assert "look" in model.requests[0].messages[0].get_text_content()


@pytest.mark.parametrize(
    ("functions", "history", "needs_format"),
    [
        ((), ASK, False),
        ((LOOK,), ASK, True),
        ((), [*ASK, Message("assistant", "", function_call=FunctionCall("look", "{}"))], True),
        ((), [*ASK, Message("function", "seen", name="look")], True),
    ],
    ids=["nothing of tools", "a tool", "a call", "a result"],
)
def test_a_call_format_is_looked_up_for_requests_about_tools_alone(
    site: Any, functions: Any, history: Any, needs_format: bool
) -> None:
    host = site.host()
    model = ScriptedModel([answer("a")], facts=ModelFacts(native_tools=False), host=host)
    if needs_format:
        with pytest.raises(Exception, match="no call_format 'nous' is installed"):
            asyncio.run(model.acomplete(history, functions))
    else:
        assert asyncio.run(model.acomplete(history, functions)).messages[0].content == "a"


def test_a_call_format_that_is_none_is_named(site: Any) -> None:
    source = "from jackfield.plugins import CallFormatSpec, hook\n@hook.call_formats\ndef f(): return [CallFormatSpec("
    site.add(
        "acme",
        {"call_format.odd": "acme_light"},
        modules={"acme_light": f"{source}name='odd', target='builtins:dict')]"},
    )
    model = ScriptedModel([], config={"model": "m", "generate_cfg": {"fncall_prompt_type": "odd"}}, host=site.host())
    with pytest.raises(BrokenPluginError, match=r"call format 'odd' is not a jackfield\.processors\.CallFormat"):
        asyncio.run(model.acomplete(ASK, [LOOK]))


def test_processors_of_a_model_cannot_change_once_it_was_asked() -> None:
    model = ScriptedModel([answer("a")])
    model._use_processors([], add=True)
    asyncio.run(model.acomplete(ASK))
    for add in (True, False):
        with pytest.raises(RuntimeError, match="scripted:scripted has already been used, so its processors can no"):
            model._use_processors([], add=add)


class Measuring(Preprocessor):
    """Notes the text of each request, and whether the model accepts PDFs."""

    name = "measuring"

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.takes_files: list[bool] = []

    def prepare(self, request: ChatRequest) -> ChatRequest:
        self.texts.append(request.messages[-1].get_text_content())
        self.takes_files.append(request.facts.files)
        return request


@pytest.mark.parametrize("phase", ["input", "context", "format"])
def test_a_processor_inside_the_first_that_reads_files_sees_their_text(phase: Any, tmp_path: Path) -> None:
    class Inner(Measuring):
        pass

    Inner.phase = phase
    file = tmp_path / "a.txt"
    file.write_text("the words of the file", encoding="utf-8")
    inner = Inner()
    asked = [Message("user", [ContentItem(text="q"), ContentItem(file=str(file))])]
    asyncio.run(ScriptedModel([answer("a")], processors=[inner]).acomplete(asked))
    assert ("the words of the file" in inner.texts[0]) == (phase != "input")


def test_one_processor_that_needs_text_is_enough_wherever_it_stands() -> None:
    class Reading(Measuring):
        name = "zzz"
        needs_text = True

    for processors in ([Measuring(), Reading()], [Reading(), Measuring()], [Measuring()]):
        model = ScriptedModel([answer("a")], facts=ModelFacts(files=True), processors=processors)
        asyncio.run(model.acomplete(ASK))
        assert {taken for one in processors for taken in one.takes_files} == {len(processors) == 1}


def test_the_chain_that_is_shown_is_that_of_the_options_that_are_asked_about(site: Any) -> None:
    model = ScriptedModel([], facts=ModelFacts(native_tools=False), host=site.host())
    assert [one.name for one in model.processors(GenerateConfig(use_raw_api=True))] == ["retry"]
    with pytest.raises(PluginNotFoundError, match="no call_format 'acme' is installed"):
        model.processors(GenerateConfig(fncall_prompt_type="acme"))
    with pytest.raises(PluginNotFoundError, match="no call_format 'nous' is installed"):
        model.processors()
