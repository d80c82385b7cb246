"""Write outlines, sections, continuations and complete texts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Unpack

from jackfield.agents import (
    Agent,
    AgentOptions,
    BasicAgent,
    Event,
    ParentRun,
    Run,
    RunOptions,
    Spent,
    ToolEntry,
    run_as,
)
from jackfield.config import LLMConfig
from jackfield.events import HandedOff, RunFinished, StopReason
from jackfield.messages import Message, Usage, with_system_text
from jackfield.models import BaseChatModel
from jackfield.results import text_of_answer
from jackfield.streams import Interrupted, closing
from jackfield_agent_parts import Answered, GivenPrompts, Prompts, ask_below
from jackfield_writing.outlines import sections_of

PROMPTS = Path(__file__).with_name("prompts.toml")


class WriterRunOptions(RunOptions, total=False):
    """Run options of the writing agents."""

    knowledge: object
    """Source material for the text."""


class SectionRunOptions(WriterRunOptions, total=False):
    """Run options of `ExpandWriting`."""

    outline: str
    index: int | str
    """Section number."""

    capture: str
    """Section heading."""

    capture_later: str
    """Heading of the next section."""


class _Writer(Agent):
    """Base for agents that make a single model request, without tools and with a prompt in the system message.

    Args:
        function_list, llm, system_message, name, description: See `Agent`. Tools are never called.
        prompts: Prompts that override those in this package's `prompts.toml`.
        options: See `Agent`.
    """

    resumable = True
    prompt: ClassVar[str]
    run_options: ClassVar[type] = WriterRunOptions

    def __init__(
        self,
        function_list: Iterable[ToolEntry] | None = None,
        llm: str | Mapping[str, Any] | LLMConfig | BaseChatModel | None = None,
        system_message: str | None = "",
        name: str | None = None,
        description: str | None = None,
        *,
        prompts: GivenPrompts = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        super().__init__(function_list, llm, system_message, name, description, **options)
        self.prompts = Prompts.read(PROMPTS, prompts)
        # False if `knowledge` contains the matching passages of attached files, so the model gets only file names.
        self.shows_files = True

    def events(self, run: Run) -> AsyncIterator[Event]:
        instructions = self.prompts.text(self.prompt, run.lang, **self._values(run)).strip()
        messages = with_system_text(run.messages, instructions, first=False)
        loop = replace(self.make_loop(functions=()), reads_files=not self.shows_files)
        return loop.events(replace(run, messages=messages))

    def _values(self, run: Run) -> dict[str, str]:
        knowledge = str(run.options.get("knowledge") or "")
        return {"knowledge": self.prompts.text("knowledge", run.lang, knowledge=knowledge) if knowledge else ""}


class OutlineWriting(_Writer):
    """Agent that writes a text's outline. A run accepts source material as `knowledge`."""

    prompt = "outline"


class ContinueWriting(_Writer):
    """Agent that continues the text of the last message. A run accepts source material as `knowledge`."""

    prompt = "continue"


class ExpandWriting(_Writer):
    """Agent that writes one section of an outline.

    A run accepts `outline`, the section's number (`index`) and heading (`capture`), the heading of the next section
    (`capture_later`), and `knowledge`.
    """

    prompt = "expand"
    run_options: ClassVar[type] = SectionRunOptions

    def _values(self, run: Run) -> dict[str, str]:
        given = {key: str(run.options.get(key) or "") for key in ("outline", "capture", "capture_later")}
        later = self.prompts.text("stop_before", run.lang, capture_later=given["capture_later"])
        index = str(run.options.get("index") or 1)
        return {**super()._values(run), **given, "index": index, "later": later if given["capture_later"] else ""}


class WriteFromScratch(_Writer):
    """Agent that writes an outline and then each of its sections.

    The result has one message for the outline and one for each section; its text contains only the sections. Outlines
    may be in English or Chinese, with or without numbers. If the outline contains no sections, the run ends after it.

    With `knowledge`, the model first writes a summary. The outline is based on the summary, and the sections on the
    full material. Limits apply to the text as a whole, except for the turn limit, which applies to each part.
    """

    resumable = True

    async def events(self, run: Run) -> AsyncIterator[Event]:
        work, material = _Work(run, self.name or type(self).__name__), str(run.options.get("knowledge") or "")
        async with closing(self._parts(work, material)) as events:
            async for event in events:
                yield event
        yield RunFinished(work.reason or "finished", tuple(work.messages), work.spent.usage)

    async def _parts(self, work: _Work, material: str) -> AsyncIterator[Event]:
        summary = Answered()
        if material:
            prompt = self.prompts.text("summary", work.run.lang, knowledge=material)
            asked = BasicAgent(llm=self.llm, name="summarizer", host=self.host)
            async with closing(work.below(asked, prompt, summary)) as events:
                async for event in events:
                    yield event
        if work.reason is None:
            outliner = self._made(OutlineWriting, "outliner")
            async with closing(work.part(outliner, {"knowledge": summary.text or material})) as events:
                async for event in events:
                    yield event
        async with closing(self._sections(work, text_of_answer(work.messages), material)) as events:
            async for event in events:
                yield event

    async def _sections(self, work: _Work, outline: str, material: str) -> AsyncIterator[Event]:
        sections, writer = sections_of(outline), self._made(ExpandWriting, "writer")
        for index, (capture, later) in enumerate(zip(sections, (*sections[1:], ""), strict=False), start=1):
            if work.reason is not None:
                return
            about = {"outline": outline, "index": index, "capture": capture, "capture_later": later}
            work.end_paragraph()
            async with closing(work.part(writer, {"knowledge": material, **about})) as events:
                async for event in events:
                    yield event

    def _made(self, kind: type[_Writer], name: str) -> _Writer:
        made = kind(llm=self.llm, name=name, host=self.host)
        made.prompts, made.shows_files = self.prompts, self.shows_files
        return made


class _Work:
    """The parts of a text, written in sequence within one run."""

    def __init__(self, run: Run, label: str) -> None:
        self.run = run
        self._label = label
        self.messages: list[Message] = []
        self.spent: Spent = run.start.spent
        self.reason: StopReason | None = None

    async def below(self, agent: Agent, prompt: str, answered: Answered) -> AsyncIterator[Event]:
        """Ask for an intermediate text that does not become part of the result."""
        parent = ParentRun(self.run, self.spent)
        try:
            config = self.run.caller_config
            asking = ask_below(agent, prompt, parent, answered, lang=self.run.lang, config=config)
            async with closing(asking) as events:
                async for event in events:
                    yield event
        except Interrupted:
            self.reason = self.run.interruption
        if answered.stop_reason not in ("finished", "empty_reply"):
            self.reason = answered.stop_reason
        self.spent = parent.spent

    def end_paragraph(self) -> None:
        """Terminate the last paragraph so that the next part starts a new one."""
        last = self.messages[-1]
        self.messages[-1] = last.replace(content=f"{last.get_text_content().rstrip()}\n\n")

    async def part(self, writer: Agent, options: dict[str, Any]) -> AsyncIterator[Event]:
        """Write one part, yielding the events."""
        if reached := ParentRun(self.run, self.spent).reached(0):
            self.reason = reached
            return
        yield HandedOff(self._label, writer.name or "")
        self._label = writer.name or ""
        spent = replace(self.spent, turns=0) if self.messages else self.spent
        part = replace(run_as(writer, self.run, self.run.messages, spent), options=options)
        end = RunFinished("finished", (), Usage())
        async with closing(writer.events(part)) as events:
            async for event in events:
                if isinstance(event, RunFinished):
                    end = event
                else:
                    self.spent = self.spent.plus(event)
                    yield event
        self.messages += end.messages
        if end.stop_reason != "finished":
            self.reason = end.stop_reason
