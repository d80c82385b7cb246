"""Answer questions over documents of any length by having a model read their parts in parallel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Unpack

from jackfield import sync
from jackfield.agents import Agent, AgentOptions, BasicAgent, Event, ParentRun, Run, ToolEntry
from jackfield.config import LLMConfig
from jackfield.errors import ConfigError, DocParserError, ModelServiceError
from jackfield.events import PluginEvent, PreparationProgress
from jackfield.messages import basename_of
from jackfield.models import BaseChatModel
from jackfield.retrieval import Chunk, Document
from jackfield.runs import ReportProgress
from jackfield.streams import closing
from jackfield_agent_parts import Answered, GivenPrompts, Prompts, ask_below, object_in
from jackfield_assistant.agent import DocQAAgent
from jackfield_assistant.memory import Recalled, documents_of, question_in
from jackfield_documents import DocumentReader, RAGConfig, chunk_document, expand

PROGRESS = "jackfield-assistant.parts_read"
PART_TOKENS = 1000
AT_ONCE = 16
ROUNDS = 4
RAG_CFG: Mapping[str, object] = {"max_ref_token": 4500, "parser_page_size": 300}


class ParallelDocQA(DocQAAgent):
    """Agent that asks a model about all parts of the documents in parallel, then answers from the findings.

    The findings are also the query of a search, whose passages the model sees as well. A part is skipped if its request
    fails or its answer cannot be parsed, and the `jackfield-assistant.parts_read` event names it. If every request
    fails, so does the run.

    Args:
        function_list: Ignored.
        llm, system_message, name, description, prompts, citations, options: See `Assistant`.
        rag_cfg: See `Assistant`. Passages are smaller by default, to leave room for the findings.
        part_tokens: The size of a part in tokens.
        at_once: The maximum number of parts read concurrently.
        rounds: How many times to read the parts if no part contains an answer, as in Qwen-Agent.

    Raises:
        ConfigError: `part_tokens`, `at_once` or `rounds` is less than 1.
    """

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
        part_tokens: int = PART_TOKENS,
        at_once: int = AT_ONCE,
        rounds: int = ROUNDS,
        **options: Unpack[AgentOptions],
    ) -> None:
        if min(part_tokens, at_once, rounds) < 1:
            got = f"{part_tokens}, {at_once} and {rounds}"
            raise ConfigError(f"part_tokens, at_once and rounds must be at least 1, got {got}")
        given = RAG_CFG if rag_cfg is None else rag_cfg
        super().__init__(
            function_list,
            llm,
            system_message,
            name,
            description,
            rag_cfg=given,
            prompts=prompts,
            citations=citations,
            **options,
        )
        self.part_tokens, self.at_once, self.rounds = part_tokens, at_once, rounds
        self._cut: tuple[Sequence[Document], list[Chunk]] = (), []
        self._reader: DocumentReader = self.rag_cfg.reader(self.host)
        self._reader_agent = BasicAgent(llm=self.llm, name="reader", host=self.host)

    async def _recalling(self, run: Run, parent: ParentRun, recalled: Recalled) -> AsyncIterator[Event]:
        preparation = run.prepare(lambda report: self._parts(run, report))
        async with closing(preparation.events()) as progress:
            async for step in progress:
                yield step
        parts, question = preparation.result, question_in(run.messages)
        answers: list[str] = []
        for _ in range(self.rounds if parts and question.strip() else 0):
            reading = _Reading(self._reader_agent, self.memory.prompts, parts, question, parent)
            async with closing(reading.events(self.at_once)) as events:
                async for event in events:
                    yield event
            answers = [reading.answers[index] for index in sorted(reading.answers)]
            if answers:
                break
        async with closing(self.memory.recall(run, parent, recalled, also=" ".join(answers))) as events:
            async for event in events:
                yield event
        if answers:
            heading = self.memory.prompts.text("found_in_parts", run.lang)
            recalled.findings = [*recalled.findings, {"url": heading, "text": answers}]

    async def _parts(self, run: Run, report: ReportProgress) -> list[Chunk]:
        expanded = await sync.in_worker(expand, list(documents_of(run)))
        read = await self._reader.read_all(
            (*expanded.files, *expanded.missing),
            on_progress=lambda done, total, name: report(PreparationProgress("reading files", done, total, name)),
        )
        if read.errors and not read.documents and self.files:
            raise DocParserError(f"none of the documents could be read: {'; '.join(map(str, read.errors.values()))}")
        documents = read.documents
        kept, parts = self._cut
        # The reader keeps the blocks of an unchanged file, so comparing is quick, whereas splitting takes longer.
        if kept != documents:
            parts = await sync.in_worker(self._parts_of, documents)
            self._cut = documents, parts
        return parts

    def _parts_of(self, documents: Sequence[Document]) -> list[Chunk]:
        return [
            chunk
            for document in documents
            for chunk in chunk_document(document, size_tokens=self.part_tokens, overlap_chars=0)
        ]


class _Reading:
    """One pass over the parts, with a limited number of concurrent requests.

    Attributes:
        answers: Findings that bear on the question, by the index of their part.
    """

    def __init__(
        self, agent: Agent, prompts: Prompts, parts: Sequence[Chunk], question: str, parent: ParentRun
    ) -> None:
        self._agent = agent
        self._prompts = prompts
        self._parts = parts
        self._question = question
        self._parent = parent
        self._events: asyncio.Queue[Event | Exception] = asyncio.Queue()
        self._done = 0
        self._failures: list[ModelServiceError] = []
        self.answers: dict[int, str] = {}

    async def events(self, at_once: int) -> AsyncIterator[Event]:
        """Read all parts and yield the events of the parallel requests.

        Raises:
            ModelServiceError: The model failed for every part.
        """
        waiting = iter(range(len(self._parts)))
        workers = [asyncio.create_task(self._work(waiting)) for _ in range(min(at_once, len(self._parts)))]
        try:
            while self._done < len(self._parts) or not self._events.empty():
                event = await self._events.get()
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        if self._parts and len(self._failures) == len(self._parts):
            raise self._failures[0]

    async def _work(self, waiting: Iterator[int]) -> None:
        try:
            for index in waiting:
                why = await self._read(index)
                self._done += 1
                self._events.put_nowait(self._progress(index, why))
        except Exception as error:  # noqa: BLE001 - raised again in the run
            self._events.put_nowait(error)

    async def _read(self, index: int) -> str:
        """Ask about one part; return the reason if it could not be read, otherwise ''."""
        text, lang = self._parts[index].text, self._parent.run.lang
        prompt = self._prompts.text("read_part", lang, part=text, question=self._question)
        answered = Answered()
        try:
            place = self._parent.at(f"part {index}")
            async for event in ask_below(self._agent, prompt, place, answered, lang=lang):
                self._events.put_nowait(event)
        except ModelServiceError as error:
            self._failures.append(error)
            return str(error)
        if answered.stop_reason not in ("finished", "empty_reply"):
            return f"the model stopped with {answered.stop_reason}"
        return self._note(index, answered.text)

    def _note(self, index: int, text: str) -> str:
        try:
            said = object_in(text)
        except ValueError as error:
            return str(error)
        if said.get("res") == "ans" and (content := str(said.get("content") or "").strip()):
            self.answers[index] = content
        return ""

    def _progress(self, index: int, why: str) -> PluginEvent:
        data: dict[str, object] = {"done": self._done, "of": len(self._parts)}
        if why:
            name = f"part {self._parts[index].index + 1} of {basename_of(self._parts[index].source)}"
            data |= {"part": name, "note": f"{name} was not read: {why}"}
        return PluginEvent(PROGRESS, data)
