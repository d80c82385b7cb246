"""Write from documents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Unpack

from jackfield import create_agent
from jackfield.agents import Agent, AgentOptions, Event, ParentRun, Run, RunOptions, ToolEntry
from jackfield.config import LLMConfig
from jackfield.events import RunFinished
from jackfield.models import BaseChatModel
from jackfield.streams import Interrupted, closing
from jackfield_agent_parts import Answered, GivenPrompts, ask_below
from jackfield_writing.writers import ContinueWriting, WriteFromScratch


class ArticleRunOptions(RunOptions, total=False):
    """Run options of an `ArticleAgent`."""

    full_article: bool
    """True to write a complete text from an outline."""


class ArticleAgent(Agent):
    """Agent that writes from its own files and those of the conversation: it continues a text or writes a new one.

    The model sees relevant passages, up to `max_ref_token` of `rag_cfg`, and the names of the files.

    A run accepts `full_article=True` to write a complete text from an outline.

    Args:
        function_list, llm, system_message, name, description: See `Agent`. Tools are never called.
        rag_cfg: How to split and search documents; the `memory` agent retrieves the passages.
        prompts: Prompts that override those in this package's `prompts.toml`.
        options: See `Agent`. `files` are the documents.

    Raises:
        PluginError: The `memory` agent (`jackfield-assistant`) is not installed.
    """

    resumable = True
    reads_files = True
    run_options: ClassVar[type] = ArticleRunOptions

    def __init__(
        self,
        function_list: Iterable[ToolEntry] | None = None,
        llm: str | Mapping[str, Any] | LLMConfig | BaseChatModel | None = None,
        system_message: str | None = "",
        name: str | None = None,
        description: str | None = None,
        *,
        rag_cfg: Mapping[str, Any] | None = None,
        prompts: GivenPrompts = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        super().__init__(function_list, llm, system_message, name, description, **options)
        self.memory = create_agent("memory", llm=self.llm, files=self.files, rag_cfg=rag_cfg, host=self.host)
        self._short = ContinueWriting(llm=self.llm, name=self.name, prompts=prompts, host=self.host)
        self._long = WriteFromScratch(llm=self.llm, name=self.name, prompts=prompts, host=self.host)
        self._short.shows_files = self._long.shows_files = False

    async def events(self, run: Run) -> AsyncIterator[Event]:
        parent, answered = ParentRun(run, run.start.spent), Answered()
        looking = ask_below(self.memory, run.asked or run.messages, parent, answered, lang=run.lang)
        try:
            async with closing(looking):
                async for event in looking:
                    yield event
        except Interrupted:
            yield RunFinished(run.interruption, (), parent.spent.usage)
            return
        writer = self._long if run.options.get("full_article") else self._short
        options = {"knowledge": answered.text_with_notes}
        part = replace(run, start=run.start.after(parent.spent), options=options)
        async with closing(writer.events(part)) as events:
            async for written in events:
                yield written
