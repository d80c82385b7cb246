"""Answers from documents alone: in one turn, and part by part."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from jackfield import create_agent, tool
from jackfield.agents import CancelToken
from jackfield.errors import ConfigError, DocParserError, ModelRequestError
from jackfield.events import ModelEvent, PluginEvent, PreparationProgress, RunEvent, RunFinished, TurnStarted
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer
from jackfield_assistant import BasicDocQA, DocQAAgent, ParallelDocQA
from jackfield_assistant.memory import RETRIEVED
from jackfield_assistant.parallel import PROGRESS

PATIENCE_S = 30
PARTS = 6


@pytest.fixture
def book(tmp_path: Path) -> str:
    path = tmp_path / "book.md"
    path.write_text("\n\n".join(f"# Chapter {n}\n\nPanel {n} has {n * 10} sockets." for n in range(1, PARTS + 1)))
    return str(path)


def parallel(script: Any, book: str, **options: Any) -> ParallelDocQA:
    return ParallelDocQA(llm=ScriptedModel(script), files=[book], **{"part_tokens": 20, **options})


def reads(request: ChatRequest) -> list[ModelEvent]:
    """A model that knows about panel 3 only."""
    text = request.messages[-1].get_text_content()
    if "Part:" not in text:
        return answer("30 sockets")
    return answer('{"res": "ans", "content": "Panel 3: 30"}' if "Panel 3" in text else '{"res": "none", "content": ""}')


def progress_in(events: list[Any]) -> list[Any]:
    return [event.data for event in events if isinstance(event, PluginEvent) and event.name == PROGRESS]


def test_doc_qa_answers_in_one_turn_from_what_it_read(book: str) -> None:
    assert BasicDocQA is DocQAAgent
    model = ScriptedModel([answer("10")])
    result = create_agent("doc_qa", llm=model, files=[book], system_message="Be short.").ask("Sockets of panel 1?")
    assert result.text == "10"
    system = model.requests[0].messages[0].get_text_content()
    assert system.startswith("Be short.\n\nAnswer from the passages below.")
    assert "Panel 1 has 10 sockets" in system
    assert not model.requests[0].functions
    model = ScriptedModel([answer("?")])
    create_agent("doc_qa", llm=model).ask("Hello")
    assert [message.role for message in model.requests[0].messages] == ["user"]


@pytest.mark.parametrize("kind", ["doc_qa", "parallel_doc_qa"])
def test_tools_are_ignored(kind: str, book: str) -> None:
    @tool
    def look_up(name: str) -> str:
        """Look it up."""
        return name

    model = ScriptedModel(reads)
    create_agent(kind, llm=model, files=[book], function_list=[look_up]).ask("Sockets of panel 3?")
    assert [request.functions for request in model.requests] == [()] * len(model.requests)


def test_each_part_is_read_and_what_they_say_is_before_the_passages(book: str) -> None:
    agent = parallel(reads, book)
    stream = agent.stream("How many sockets has panel 3?")
    events = list(stream)
    assert stream.result.text == "30 sockets"
    told = progress_in(events)
    assert [data["done"] for data in told] == list(range(1, len(told) + 1))
    assert {data["of"] for data in told} == {len(told)}
    assert len(told) >= PARTS
    (found,) = (event.data for event in events if isinstance(event, PluginEvent) and event.name == RETRIEVED)
    assert found["documents"] == 1
    assert [source.location for source in stream.result.sources] == ["book.md"]
    assert any(isinstance(event, PreparationProgress) for event in events)
    assert isinstance(agent.llm, ScriptedModel)
    system = agent.llm.requests[-1].messages[0].get_text_content()
    before, passage, _ = system.partition("Panel 3 has")
    assert "Panel 3: 30" in before
    assert passage, "the passages of the search are gone"
    assert {(event.agent, event.depth) for event in events if isinstance(event, RunEvent)} == {("reader", 1)}
    assert stream.result.usage.total_tokens == 2 * (len(told) + 1)


@pytest.mark.parametrize(("options", "rounds"), [({}, 4), ({"rounds": 2}, 2)])
def test_parts_without_an_answer_are_read_again(book: str, options: dict[str, Any], rounds: int) -> None:
    def knows_nothing(request: ChatRequest) -> list[ModelEvent]:
        return answer('{"res": "none"}' if "Part:" in request.messages[-1].get_text_content() else "It does not say.")

    agent = parallel(knows_nothing, book, **options)
    events = list(agent.stream("How many sockets has panel 3?"))
    told = progress_in(events)
    assert len(told) == rounds * told[0]["of"]
    with pytest.raises(ConfigError, match="rounds must be at least 1"):
        parallel(knows_nothing, book, rounds=0)


class _Counted(ScriptedModel):
    """Counts how many requests are under way at a time; the first ones wait for each other."""

    def __init__(self, expected: int) -> None:
        super().__init__(reads)
        self.now = self.most = 0
        self._expected = expected
        self._met = asyncio.Event()

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        if "Part:" in request.messages[-1].get_text_content():
            self.now += 1
            self.most = max(self.most, self.now)
            if self.now == self._expected:
                self._met.set()
            await self._met.wait()
        async for event in super().stream(request):
            yield event
        self.now -= "Part:" in request.messages[-1].get_text_content()


def test_as_many_parts_are_read_at_a_time_as_allowed_and_no_more(book: str) -> None:
    model = _Counted(2)
    agent = ParallelDocQA(llm=model, files=[book], part_tokens=20, at_once=2)

    async def run() -> str:
        async with asyncio.timeout(PATIENCE_S):
            return (await agent.aask("How many sockets has panel 3?")).text

    assert asyncio.run(run()) == "30 sockets"
    assert model.most == 2


def test_parts_that_fail_are_named_and_the_others_are_used(book: str) -> None:
    def script(request: ChatRequest) -> list[Any]:
        text = request.messages[-1].get_text_content()
        if "Panel 2" in text and "Part:" in text:
            return [ModelRequestError("refused", backend="scripted")]
        return [*answer("not JSON")] if "Panel 4" in text and "Part:" in text else [*reads(request)]

    stream = parallel(script, book).stream("How many sockets has panel 3?")
    told = progress_in(list(stream))
    assert stream.result.text == "30 sockets"
    notes = [data["note"] for data in told if "note" in data]
    assert len(notes) == 2
    assert any("of book.md was not read" in note and "refused" in note for note in notes)
    assert any("contains no JSON object" in note for note in notes)


def test_if_the_model_fails_at_every_part_the_run_fails(book: str) -> None:
    agent = parallel(lambda _: [ModelRequestError("refused", backend="scripted")], book)
    with pytest.raises(ModelRequestError, match="refused"):
        agent.ask("How many?")


def test_nothing_found_in_any_part_leaves_the_search(book: str) -> None:
    def script(request: ChatRequest) -> list[ModelEvent]:
        none = answer('{"res": "none", "content": ""}')
        return none if "Part:" in request.messages[-1].get_text_content() else answer("10")

    agent = parallel(script, book)
    assert agent.ask("How many sockets has panel 1?").text == "10"
    assert isinstance(agent.llm, ScriptedModel)
    system = agent.llm.requests[-1].messages[0].get_text_content()
    assert "Panel 1 has 10 sockets" in system
    assert "What was found" not in system


def test_cancelling_and_limits_end_the_reading_of_parts(book: str) -> None:
    limited = parallel(reads, book, limits={"tokens": 4}, at_once=1)
    result = limited.ask("How many?")
    assert result.stop_reason == "token_limit"
    assert isinstance(limited.llm, ScriptedModel)
    assert len(limited.llm.requests) == 2
    cancel = CancelToken()

    async def cancelled() -> Any:
        async with asyncio.timeout(PATIENCE_S):
            async for event in parallel(reads, book, at_once=1).astream("How many?", cancel=cancel):
                if event.depth and isinstance(event.event, TurnStarted):
                    cancel.cancel()
        return event.event

    end = asyncio.run(cancelled())
    assert isinstance(end, RunFinished)
    assert end.stop_reason == "cancelled"


def test_what_cannot_be_read_and_odd_sizes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "half.pdf").write_bytes(b"%PDF-1.7")
    with pytest.raises(DocParserError, match=r"half\.pdf is truncated"):
        parallel(reads, str(tmp_path / "half.pdf")).ask("How many?")
    with pytest.raises(ConfigError, match="at least 1"):
        ParallelDocQA(llm=ScriptedModel([]), at_once=0)
