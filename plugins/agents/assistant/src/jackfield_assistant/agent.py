"""Answer from documents by putting relevant passages into the system message."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Unpack, cast

from jackfield import sync
from jackfield.agents import AgentOptions, Deps, Event, FnCallAgent, ParentRun, Run, RunOptions, ToolEntry
from jackfield.config import Lang, LLMConfig
from jackfield.events import PluginEvent, RunFinished, TurnFinished
from jackfield.messages import USER, ContentItem, Message, with_system_text
from jackfield.models import BaseChatModel
from jackfield.results import text_of_answer
from jackfield.streams import Interrupted, closing
from jackfield.tools import FunctionSchema
from jackfield_agent_parts import GivenPrompts
from jackfield_assistant.citing import Numbered, check_marks, number_chunks, number_texts
from jackfield_assistant.knowledge import knowledge_block, listed_passages
from jackfield_assistant.memory import RETRIEVED, Memory, Recalled, question_in
from jackfield_documents import RAGConfig

__all__ = ["CITED", "RETRIEVED", "Assistant", "AssistantRunOptions", "DocQAAgent"]

CITED = "jackfield-assistant.cited"
"""Name of the event that reports an answer's `citations`, `dropped` marks with reasons, and `warnings`."""


class AssistantRunOptions(RunOptions, total=False):
    """Run options of an `Assistant`."""

    knowledge: object
    """Text to use instead of the files, either plain or as a JSON list of `{"url": …, "text": […]}`."""


class Assistant(FnCallAgent[Deps]):
    """Agent that answers from its own files and those of the conversation, and calls tools like `FnCallAgent`.

    Before each run, its `memory` retrieves passages relevant to the last question and appends them to the system
    message, numbered and grouped by source. The model is asked to cite each passage it uses with a mark (`[1]`), and to
    put quotations in quotation marks. Once the answer is complete, the marks are checked, and the event
    `jackfield-assistant.cited` reports the citations (`result.citations`) and any incorrect marks. Structured answers
    (`output=`) have no marks.

    Unreadable files are named in the `jackfield-assistant.retrieved` event, and the remaining files are used. The run
    fails only if the agent has files of its own and none of them can be read. Tools receive all files.

    A run accepts one option of its own, `knowledge`: text to use instead of the files, either plain or as a JSON list
    of `{"url": …, "text": […]}`.

    Args:
        function_list, llm, system_message, name, description: See `Agent`.
        rag_cfg: How to split and search documents, with the keys of `RAGConfig`. With a `rag_keygen_strategy`, the
            model first extracts keywords from the question.
        prompts: Prompts that override those in this package's `prompts.toml`.
        citations: Ask the model to cite passages, and check its marks.
        options: See `Agent`. `files` are the documents: files, directories, globs (`docs/**/*.md`) and indexes on disk
            (`index:NAME`; see `jackfield index`).
    """

    run_options: ClassVar[type] = AssistantRunOptions
    resumable = True
    answers_by_tool = True
    reads_files = True

    def __init__(
        self,
        function_list: Iterable[ToolEntry] | None = None,
        llm: str | Mapping[str, Any] | LLMConfig | BaseChatModel | None = None,
        system_message: str | None = "",
        name: str | None = None,
        description: str | None = None,
        *,
        rag_cfg: RAGConfig | Mapping[str, object] | None = None,
        prompts: GivenPrompts = None,
        citations: bool = True,
        **options: Unpack[AgentOptions],
    ) -> None:
        super().__init__(function_list, llm, system_message, name, description, **options)
        self.citations = citations
        self.memory = Memory(llm=self.llm, files=self.files, rag_cfg=rag_cfg, prompts=prompts, host=self.host)
        self.rag_cfg = self.memory.rag_cfg

    async def events(self, run: Run) -> AsyncIterator[Event]:
        recalled, parent = Recalled(), ParentRun(run, run.start.spent)
        if "knowledge" in run.options:
            shown = self._show_knowledge(run, run.options["knowledge"])
        else:
            try:
                async with closing(self._recalling(run, parent, recalled)) as events:
                    async for event in events:
                        yield event
            except Interrupted:
                yield RunFinished(run.interruption, (), parent.spent.usage)
                return
            shown = self._show_recalled(run, recalled)
        asked = _with_question(run.messages, recalled.question) if recalled.question else run.messages
        messages = with_system_text(asked, self._knowing(shown.block, run.lang), first=False)
        informed = replace(run, messages=messages, start=run.start.after(parent.spent))
        async with closing(self._answering(informed)) as events:
            async for event in events:
                if isinstance(event, TurnFinished) and shown.numbered:
                    # Before the event, so that the citations are known when the answer is complete.
                    report = await _report_marks(event, shown.numbered, question_in(asked))
                    if report is not None:
                        yield report
                yield event

    def _show_recalled(self, run: Run, recalled: Recalled) -> _Shown:
        listed = [*recalled.findings, *recalled.passages]
        if not self._cites(run) or not recalled.passages:
            return _Shown(knowledge_block(listed, run.lang, note=recalled.note))
        if recalled.chunks:
            passages, numbered = number_chunks(recalled.chunks)
        else:
            passages, numbered = number_texts(recalled.passages)
        return _Shown(
            self._block_with_marks([*recalled.findings, *passages], numbered, run.lang, recalled.note), numbered
        )

    def _show_knowledge(self, run: Run, knowledge: object) -> _Shown:
        listed = listed_passages(knowledge)
        if not listed or not self._cites(run):
            return _Shown(knowledge_block(cast("str | Sequence[Mapping[str, Any]]", knowledge), run.lang))
        passages, numbered = number_texts(listed)
        return _Shown(self._block_with_marks(passages, numbered, run.lang), numbered)

    def _cites(self, run: Run) -> bool:
        return self.citations and not run.ends_in_data

    def _block_with_marks(
        self, passages: Sequence[Mapping[str, Any]], numbered: Sequence[Numbered], lang: Lang, note: str = ""
    ) -> str:
        request = self.memory.prompts.text("cite", lang, mark=f"[{numbered[0].mark}]")
        return knowledge_block(passages, lang, note="\n\n".join(part for part in (request, note) if part))

    def _recalling(self, run: Run, parent: ParentRun, recalled: Recalled) -> AsyncIterator[Event]:
        return self.memory.recall(run, parent, recalled)

    def _knowing(self, block: str, lang: Lang) -> str:  # noqa: ARG002 - subclasses use it
        """Return the text that presents the passages in the system message."""
        return block

    def _answering(self, run: Run) -> AsyncIterator[Event]:
        return super().events(run)


@dataclass(frozen=True, slots=True)
class _Shown:
    """A run's knowledge block and the numbered passages in it."""

    block: str
    numbered: Sequence[Numbered] = ()


async def _report_marks(event: TurnFinished, numbered: Sequence[Numbered], question: str) -> PluginEvent | None:
    """Return an event that reports the marks in a complete answer, or None if there are no marks."""
    answer = text_of_answer(event.messages)  # '' if calls follow the answer
    if not any(bracket in answer for bracket in "[【"):
        return None
    checked = await sync.in_worker(check_marks, answer, numbered, question=question)
    return PluginEvent(CITED, checked.report()) if checked.citations or checked.dropped else None


def _with_question(messages: Sequence[Message], question: str) -> list[Message]:
    """Replace the text of the last question, and retain its attachments."""
    last = max(index for index, message in enumerate(messages) if message.role == USER)
    attached = [item for item in messages[last].items if item.text is None]
    content = [ContentItem(text=question), *attached] if attached else question
    asked = messages[last].model_copy(update={"content": content})
    return [*messages[:last], asked, *messages[last + 1 :]]


class DocQAAgent(Assistant):
    """Agent that answers from documents alone, in one turn and without tools, like Qwen-Agent's `BasicDocQA`.

    Args:
        function_list: Ignored.
        llm, system_message, name, description, rag_cfg, prompts, citations, options: See `Assistant`.
    """

    supports_handoff: ClassVar[bool] = False

    def _knowing(self, block: str, lang: Lang) -> str:
        return self.memory.prompts.text("doc_qa", lang, knowledge=block) if block else ""

    def _answering(self, run: Run) -> AsyncIterator[Event]:
        functions: tuple[FunctionSchema, ...] = ()
        return self.make_loop(functions=functions).events(run)
