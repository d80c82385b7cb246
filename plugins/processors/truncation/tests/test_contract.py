"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from jackfield import FnCallAgent
from jackfield.messages import FunctionCall, Message, Usage
from jackfield.processors import Processor
from jackfield.request import FunctionSchema
from jackfield.testing import ScriptedModel, answer
from jackfield_testkit.suites import PluginSuite, ProcessorSuite, ToolsetSuite
from jackfield_truncation.summarizing import SummarizingTruncation

LONG: Sequence[Message] = (
    Message("system", "Be brief."),
    Message("user", "What is in the report?"),
    Message("assistant", "", function_call=FunctionCall("read", "{}"), extra={"function_id": "1"}),
    Message("function", "A line of the report. " * 300, name="read", extra={"function_id": "1"}),
    Message("assistant", "Many lines. " * 100),
    Message("user", "And in the other one?"),
)


class TestPlugin(PluginSuite):
    dist = "jackfield-truncation"


class TestShortRequests(ProcessorSuite):
    component = "jackfield-truncation/truncation"
    config: ClassVar[Mapping[str, Any]] = {"context_tokens": 100_000}
    max_held = 0


class TestLongRequests(ProcessorSuite):
    component = "jackfield-truncation/truncation"
    config: ClassVar[Mapping[str, Any]] = {"context_tokens": 600, "answer_tokens": 100}
    messages: ClassVar[Sequence[Message]] = LONG
    max_held = 0


class TestSummariesOfShortRequests(ProcessorSuite):
    component = "jackfield-truncation/summarizing_truncation"
    config: ClassVar[Mapping[str, Any]] = {"context_tokens": 100_000}
    max_held = 0


class TestSummariesOfLongRequests(ProcessorSuite):
    component = "jackfield-truncation/summarizing_truncation"
    messages: ClassVar[Sequence[Message]] = LONG
    max_held = 0

    def make_processor(self) -> Processor:
        """One with a model of its own for summaries: what the suite's model is asked is then the request itself."""
        llm = ScriptedModel(lambda _: answer("A report of 300 lines.", usage=Usage()))
        return SummarizingTruncation(llm=llm, context_tokens=600, answer_tokens=100)


class TestCompaction(ToolsetSuite):
    component = "jackfield-truncation/compaction"
    config: ClassVar[Mapping[str, object]] = {"context_tokens": 2000, "tokenizer": "estimate"}
    tools = ("read_earlier",)

    async def _shown(self, agent: FnCallAgent, model: ScriptedModel) -> Sequence[FunctionSchema]:
        """Of a conversation that is long enough: in a short one there is nothing to read again."""
        await agent.aask([*LONG, *LONG[1:], Message("user", "Go.")])
        return model.requests[-1].functions
