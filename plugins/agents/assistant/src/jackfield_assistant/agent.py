"""An agent that answers from documents: it puts passages that fit the question into its system message."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Unpack, cast, runtime_checkable

from jackfield import sync
from jackfield.agents import AgentOptions, Event, FnCallAgent, Run, ToolEntry
from jackfield.config import LLMConfig
from jackfield.errors import DocParserError
from jackfield.events import PluginEvent
from jackfield.messages import USER, Message, basename_of, with_system_text
from jackfield.models import BaseChatModel
from jackfield.streams import closing
from jackfield.tools import find_tool
from jackfield_assistant.knowledge import knowledge_block
from jackfield_documents import RAGConfig

RETRIEVED = "jackfield-assistant.retrieved"


class Retrieved(Protocol):
    """What the retrieval tool finds: passages by source, and what could not be read."""

    @property
    def passages(self) -> Sequence[Mapping[str, Any]]:
        """`{"url": …, "text": [passage, …]}`, in document order."""

    @property
    def errors(self) -> Sequence[DocParserError]:
        """One for each file that could not be read."""


@runtime_checkable
class Described(Protocol):
    """What a retrieval tool finds that says more of it."""

    def metadata(self) -> Mapping[str, Any]:
        """`sources`, as `sources_in` reads them; `hits`, `documents` (how many); as notes `skipped` and `failures`."""


class Retriever(Protocol):
    """The part of the retrieval tool that an agent uses."""

    async def retrieve(self, query: str, files: Iterable[str]) -> Retrieved:
        """Find what fits the query."""


@dataclass(frozen=True, slots=True)
class _Knowledge:
    """What a run knows, and the event that tells of it."""

    block: str
    event: PluginEvent | None = None


class Assistant(FnCallAgent):
    """Answers from its own files and those of the conversation, and calls tools like `FnCallAgent`.

    Before each run, passages that fit the last question are retrieved and appended to the system message, each under
    its source. A file that cannot be read is named in the event `jackfield-assistant.retrieved`, and the others are
    used. The run fails only if the agent has files of its own and none of them can be read. Tools get all files.

    Args:
        function_list, llm, system_message, name, description: As for every agent.
        rag_cfg: How documents are cut and searched; the keys of `RAGConfig`.
        options: As for every agent; `files` are the documents: files, folders, patterns (`docs/**/*.md`), and indexes
            on disk (`index:NAME`; see `jackfield index`).

    A run takes one option of its own, `knowledge`: text to use instead of the files, either plain or as a JSON list
    of `{"url": …, "text": […]}`.
    """

    run_options: ClassVar[Collection[str]] = ("knowledge",)

    def __init__(
        self,
        function_list: Iterable[ToolEntry] | None = None,
        llm: str | Mapping[str, Any] | LLMConfig | BaseChatModel | None = None,
        system_message: str | None = "",
        name: str | None = None,
        description: str | None = None,
        *,
        rag_cfg: RAGConfig | Mapping[str, object] | None = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        super().__init__(function_list, llm, system_message, name, description, **options)
        self.rag_cfg = RAGConfig.parse(rag_cfg)
        settings = {key: getattr(self.rag_cfg, key) for key in self.rag_cfg.model_fields_set}
        self._retrieval = find_tool({"name": "retrieval", **settings}, self.host)

    async def _events(self, run: Run) -> AsyncIterator[Event]:
        knowledge = await self._knowledge(run)
        if knowledge.event:
            yield knowledge.event
        informed = replace(run, messages=with_system_text(run.messages, knowledge.block, first=False))
        async with closing(super()._events(informed)) as events:
            async for event in events:
                yield event

    async def _knowledge(self, run: Run) -> _Knowledge:
        if "knowledge" in run.options:
            return _Knowledge(knowledge_block(run.options["knowledge"], run.lang))
        files = _documents(run)
        query = _question(run.messages)
        if not files or not query:
            return _Knowledge("")
        retriever = cast(Retriever, await sync.shared_in_worker(self._retrieval.load))
        found = await retriever.retrieve(query, files)
        event = _event(found)
        documents = event.data.get("documents", len(files) - len(found.errors))
        # Of a file in the conversation, tools may make something all the same.
        if self.files and not documents and event.data.get("note"):
            raise DocParserError(f"no document could be read: {event.data['note']}")
        return _Knowledge(knowledge_block(found.passages, run.lang), event)


def _documents(run: Run) -> tuple[str, ...]:
    """The files of the run, but for those that the user sent as pictures."""
    items = [item for message in run.messages if message.role == USER for item in message.items]
    pictures = {item.image for item in items} - {item.file for item in items}
    return tuple(file for file in run.context.files if file not in pictures)


def _question(messages: tuple[Message, ...]) -> str:
    """The text of the last question."""
    return next((m.get_text_content() for m in reversed(messages) if m.role == USER), "")


def _event(found: Retrieved) -> PluginEvent:
    problems = [str(error) for error in found.errors]
    data: dict[str, object] = {
        "sources": [basename_of(str(passage["url"])) for passage in found.passages],
        "passages": sum(len(passage["text"]) for passage in found.passages),
        "errors": problems,
    }
    if isinstance(found, Described):
        data.update(found.metadata())
    for part in ("skipped", "failures"):
        problems = [*problems, *cast("Sequence[str]", data.get(part, ()))]
    if problems:
        data["note"] = "; ".join(problems)
    return PluginEvent(RETRIEVED, data)
