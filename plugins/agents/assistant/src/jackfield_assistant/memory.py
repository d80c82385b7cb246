"""Retrieve passages from documents, as a standalone agent or as a component of other agents."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Unpack, cast, runtime_checkable

from jackfield import sync
from jackfield.agents import Agent, AgentOptions, BasicAgent, Event, ParentRun, Run, ToolEntry
from jackfield.config import Lang, LLMConfig
from jackfield.errors import ConfigError, DocParserError
from jackfield.events import PluginEvent, PreparationProgress, ResponseReplaced, RunEvent, RunFinished
from jackfield.messages import ASSISTANT, USER, Message, basename_of
from jackfield.models import BaseChatModel
from jackfield.results import WARNINGS
from jackfield.retrieval import Chunk
from jackfield.runs import ReportProgress
from jackfield.streams import Interrupted, closing
from jackfield.tools import find_tool
from jackfield_agent_parts import GivenPrompts, Prompts
from jackfield_assistant.extent import extent_note, outline_heading
from jackfield_assistant.keys import Query, QueryMaker
from jackfield_assistant.rewriting import QuestionRewriter, earlier_exchanges
from jackfield_documents import RAGConfig, asks_for_whole

RETRIEVED = "jackfield-assistant.retrieved"
PROMPTS = Path(__file__).with_name("prompts.toml")
NAME = "memory"
NOTE = "note"
"""Key in `extra` of a `Memory` answer for the note that only excerpts are shown, or that nothing matches."""


class Retrieved(Protocol):
    """Result of the retrieval tool."""

    @property
    def passages(self) -> Sequence[Mapping[str, Any]]:
        """Passages by source, as `{"url": …, "text": [passage, …]}` in document order."""

    @property
    def errors(self) -> Sequence[DocParserError]:
        """Errors, one for each unreadable file."""


@runtime_checkable
class Described(Protocol):
    """Result of a retrieval tool that also returns metadata."""

    def metadata(self) -> Mapping[str, Any]:
        """Return `sources` (see `sources_in`), `hits`, `documents` (a number), `skipped` and `failures` (notes)."""


@runtime_checkable
class Chunked(Protocol):
    """Result of a retrieval tool that also returns chunks."""

    @property
    def chunks(self) -> Sequence[Chunk]:
        """The chunks that make up the passages, in order."""


class Retriever(Protocol):
    """The interface of the retrieval tool that agents use."""

    async def retrieve(self, query: str, files: Iterable[str], *, report: ReportProgress) -> Retrieved:
        """Find passages relevant to the query, and report progress while reading and indexing files."""


@dataclass(slots=True)
class Recalled:
    """The outcome of a retrieval, filled in as the events are consumed."""

    passages: Sequence[Mapping[str, Any]] = field(default_factory=list)
    chunks: Sequence[Chunk] = ()  # the chunks of the passages, if the retrieval tool returns them
    findings: Sequence[Mapping[str, Any]] = ()  # shown before the passages, without numbers
    result: Retrieved | None = None
    note: str = ""  # tells the model that it sees only excerpts, or that nothing matches
    question: str = ""  # replaces a last question that is too long


class Memory(Agent):
    """Agent that answers with passages relevant to the last question, as a JSON list of `{"url", "text": […]}`, or ''.

    If the passages are only excerpts of the documents, `extra["note"]` of the answer says so, for a model that reads
    them.

    For a follow-up question, the query also contains words of earlier turns. A model is needed only if
    `rag_keygen_strategy` extracts keywords from the question or `question_rewriting` is `model`.

    Args:
        function_list, llm, system_message, name, description: See `Agent`. Tools are never called.
        rag_cfg: How to split and search documents, with the keys of `RAGConfig`.
        prompts: Prompts that override those in this package's `prompts.toml`.
        options: See `Agent`. `files` are the documents, in addition to those of the conversation.

    Raises:
        ConfigError: A strategy needs a model and there is none, or `index_path` has no embedding model.
    """

    resumable = True
    reads_files = True

    def __init__(
        self,
        function_list: Iterable[ToolEntry] | None = None,
        llm: str | Mapping[str, Any] | LLMConfig | BaseChatModel | None = None,
        system_message: str | None = "",
        name: str | None = NAME,
        description: str | None = None,
        *,
        rag_cfg: RAGConfig | Mapping[str, object] | None = None,
        prompts: GivenPrompts = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        super().__init__(function_list, llm, system_message, name, description, **options)
        self.rag_cfg = RAGConfig.parse(rag_cfg)
        if self.rag_cfg.index_path is not None:
            self.rag_cfg.with_included_model(self.host)  # fails here, rather than at the first question
        given = {key: getattr(self.rag_cfg, key) for key in self.rag_cfg.model_fields_set}
        given.pop("rag_keygen_strategy", None)
        given.pop("question_rewriting", None)
        strategy, rewriting = self.rag_cfg.rag_keygen_strategy, self.rag_cfg.question_rewriting
        if strategy != "none" and self.llm is None:
            raise ConfigError(f"rag_keygen_strategy {strategy!r} needs a model: pass llm='backend:model'")
        if rewriting == "model" and self.llm is None:
            raise ConfigError("question_rewriting 'model' needs a model: pass llm='backend:model'")
        self.prompts = Prompts.read(PROMPTS, prompts)
        asked = None if self.llm is None else BasicAgent(llm=self.llm, name="keywords", host=self.host)
        self._queries = QueryMaker(strategy, asked, self.prompts, self.host)
        self._rewriter = QuestionRewriter(rewriting, asked, self.prompts)
        self._retrieval = find_tool({"name": "retrieval", **given}, self.host)

    async def events(self, run: Run) -> AsyncIterator[Event]:
        recalled, parent = Recalled(), ParentRun(run, run.start.spent)
        try:
            async with closing(self.recall(run, parent, recalled)) as events:
                async for event in events:
                    yield event
        except Interrupted:
            yield RunFinished(run.interruption, (), parent.spent.usage)
            return
        text = json.dumps(list(recalled.passages), ensure_ascii=False, indent=4) if recalled.passages else ""
        message = Message(ASSISTANT, text, name=self.name, extra={NOTE: recalled.note} if recalled.note else None)
        yield ResponseReplaced((message,))
        yield RunFinished("finished", (message,), parent.spent.usage)

    async def recall(self, run: Run, parent: ParentRun, recalled: Recalled, *, also: str = "") -> AsyncIterator[Event]:
        """Search for passages relevant to the last question, yielding the events.

        Args:
            run: The run whose messages and files are searched.
            parent: The run charged with the usage.
            recalled: Receives the passages.
            also: Text to add to the search query.

        Raises:
            DocParserError: The agent has files of its own, and no document could be read.
        """
        files, question = documents_of(run), question_in(run.messages)
        if not files or not question.strip():
            return
        query = Query(question)
        if not asks_for_whole(question, names=files):
            async with closing(self._search_text(run, files, parent, query)) as rewriting:
                async for step in rewriting:
                    yield step
        async with closing(self._retrieve(run, f"{query.text} {also}".strip(), files, recalled)) as progress:
            async for part in progress:
                yield part
        found = cast(Retrieved, recalled.result)
        if self._rewriter.may_translate(question, found):
            async with closing(self._rewriter.translate(found, parent, query)) as translating:
                async for step in translating:
                    yield step
            async with closing(self._retrieve(run, f"{query.text} {also}".strip(), files, recalled)) as progress:
                async for part in progress:
                    yield part
            found = cast(Retrieved, recalled.result)
        event = _event(found, query="" if query.text == question else query.text)
        yield event
        documents = event.data.get("documents", len(files) - len(found.errors))
        # Tools may still be able to use a file of the conversation.
        if self.files and not documents and event.data.get("note"):
            raise DocParserError(f"none of the documents could be read: {event.data['note']}")
        recalled.passages = found.passages
        recalled.chunks = found.chunks if isinstance(found, Chunked) else ()
        recalled.note = extent_note(event.data, run.lang)
        recalled.findings = _outlines_in(found, run.lang)

    async def _search_text(
        self, run: Run, files: Sequence[str], parent: ParentRun, query: Query
    ) -> AsyncIterator[RunEvent | PluginEvent | PreparationProgress]:
        """Rewrite the query and add keywords, yielding the events of any model requests."""
        earlier = earlier_exchanges(run.messages)
        async with closing(self._rewriter.rewrite(query.text, earlier, parent, query)) as rewriting:
            async for step in rewriting:
                yield step
        async with closing(self._queries.query(query.text, files, parent, query)) as keywords:
            async for event in keywords:
                yield event

    async def _retrieve(
        self, run: Run, text: str, files: Sequence[str], recalled: Recalled
    ) -> AsyncIterator[PreparationProgress]:
        async def retrieve(report: ReportProgress) -> Retrieved:
            retriever = cast(Retriever, await sync.shared_in_worker(self._retrieval.load))
            return await retriever.retrieve(text, files, report=report)

        preparation = run.prepare(retrieve)
        async with closing(preparation.events()) as progress:
            async for step in progress:
                yield step
        recalled.result = preparation.result


def documents_of(run: Run) -> tuple[str, ...]:
    """Return a run's files, except for images in the user's messages."""
    items = [item for message in run.messages if message.role == USER for item in message.items]
    pictures = {item.image for item in items} - {item.file for item in items}
    return tuple(file for file in run.context.files if file not in pictures)


def _outlines_in(found: Retrieved, lang: Lang) -> list[Mapping[str, Any]]:
    """Return document outlines as separate entries."""
    outlines = cast("Sequence[Mapping[str, Any]]", getattr(found, "outlines", ()))
    return [{"url": outline_heading(basename_of(str(one["url"])), lang), "text": one["text"]} for one in outlines]


def question_in(messages: Sequence[Message]) -> str:
    """Return the last question's text, or ''."""
    return next((m.get_text_content() for m in reversed(messages) if m.role == USER), "")


def _source(passage: Mapping[str, Any]) -> str | dict[str, str]:
    name = basename_of(str(passage["url"]))
    return {"location": name, "part": str(passage["part"])} if passage.get("part") else name


def _event(found: Retrieved, *, query: str) -> PluginEvent:
    problems = [str(error) for error in found.errors]
    data: dict[str, object] = {
        "sources": [_source(passage) for passage in found.passages],
        "passages": sum(len(passage["text"]) for passage in found.passages),
        "errors": problems,
        WARNINGS: problems,
    }
    if isinstance(found, Described):
        data.update(found.metadata())
    if query:
        data["query"] = query
    for part in ("skipped", "failures"):
        problems = [*problems, *cast("Sequence[str]", data.get(part, ()))]
    if problems:
        data["note"] = "; ".join(problems)
    return PluginEvent(RETRIEVED, data)
