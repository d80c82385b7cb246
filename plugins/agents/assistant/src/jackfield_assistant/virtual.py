"""Let a model search documents on demand, with all passages collected in the system message."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Unpack

from jackfield import ChatRequest
from jackfield.agents import AgentOptions, Event, ParentRun, Run, ToolEntry
from jackfield.config import LLMConfig
from jackfield.events import PluginEvent
from jackfield.messages import FUNCTION, Message, basename_of, with_system_text
from jackfield.models import BaseChatModel
from jackfield.processors import Phase, Preprocessor
from jackfield.tools import ToolContext, Toolset
from jackfield_agent_parts import GivenPrompts, Prompts
from jackfield_assistant.agent import Assistant
from jackfield_assistant.knowledge import knowledge_block
from jackfield_assistant.memory import PROMPTS, Recalled, documents_of
from jackfield_counting.estimating import estimate_tokens
from jackfield_documents import RAGConfig

RETRIEVAL = "retrieval"


class VirtualMemoryAgent(Assistant):
    """Agent whose model searches with the `retrieval` tool, and whose system message collects the passages found.

    The system message holds the most recent passages, up to `max_ref_token`; the model can search for older ones again.
    In the result's history, passages stay where they were found.

    Args: See `Assistant`. `rag_cfg` configures the tool; keyword strategies and question rewriting are ignored, since
    the model writes the query.
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
        **options: Unpack[AgentOptions],
    ) -> None:
        config = RAGConfig.parse(rag_cfg)
        ignored = ("rag_keygen_strategy", "question_rewriting")  # the tool refuses those that need a model
        given = {key: getattr(config, key) for key in config.model_fields_set if key not in ignored}
        paged = Paged(Paging(Prompts.read(PROMPTS, prompts), config.max_ref_token))
        tools = [{**given, "name": RETRIEVAL}, *(function_list or ()), paged]
        super().__init__(tools, llm, system_message, name, description, rag_cfg=config, prompts=prompts, **options)

    async def _recalling(self, run: Run, parent: ParentRun, recalled: Recalled) -> AsyncIterator[Event]:  # noqa: ARG002
        nothing: tuple[Event, ...] = ()  # the model decides when to search, and for what
        for event in nothing:
            yield event

    def _answering(self, run: Run) -> AsyncIterator[Event]:
        names = ", ".join(map(basename_of, documents_of(run)))
        listed = self.memory.prompts.text("documents", run.lang, names=names) if names else ""
        return super()._answering(replace(run, messages=with_system_text(run.messages, listed, first=False)))


@dataclass(frozen=True, slots=True)
class _Found:
    """A result of the retrieval tool, split into passages and other text."""

    passages: tuple[Mapping[str, Any], ...]
    notes: str

    @property
    def tokens(self) -> int:
        return sum(estimate_tokens(str(text)) for passage in self.passages for text in passage["text"])


class Paging(Preprocessor):
    """Preprocessor that moves passages from tool results into the system message.

    Args:
        prompts: The prompts `moved_up` and `moved_out`, which replace the passages in tool results.
        most: The maximum number of passage tokens in the system message. The last result is always included.
    """

    name: ClassVar[str] = "paging"
    phase: ClassVar[Phase] = "input"

    def __init__(self, prompts: Prompts, most: int) -> None:
        super().__init__()
        self._prompts = prompts
        self._most = most

    def prepare(self, request: ChatRequest) -> ChatRequest:
        """Move the request's passages into its system message; without passages, return the request unchanged."""
        found = {place: result for place, message in enumerate(request.messages) if (result := found_in(message))}
        if not found:
            return request
        shown = self._newest(found)
        messages = list(request.messages)
        for place, result in found.items():
            text = self._prompts.text("moved_up" if place in shown else "moved_out", request.lang)
            messages[place] = messages[place].replace(content=f"{text}\n\n{result.notes}".strip())
        block = knowledge_block(_joined(found[place] for place in shown), request.lang)
        return replace(request, messages=with_system_text(tuple(messages), block, first=False))

    def _newest(self, found: Mapping[int, _Found]) -> list[int]:
        """Return the positions of the newest results that fit, oldest first."""
        shown: list[int] = []
        left = self._most
        for place in sorted(found, reverse=True):
            left -= found[place].tokens
            if left < 0 and shown:
                break
            shown.insert(0, place)
        return shown


class Paged(Toolset):
    """Toolset without tools that adds the `Paging` processor to each run's model."""

    name = "paged_retrieval"
    effects = ()

    def __init__(self, paging: Paging) -> None:
        super().__init__()
        self._paging = paging

    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:  # noqa: ARG002
        """Return no tools."""
        return ()

    def processor_of_run(self, context: ToolContext[Any], reported: Sequence[PluginEvent]) -> Paging:  # noqa: ARG002
        """Return the processor, which is stateless and shared by all runs."""
        return self._paging


def found_in(message: Message) -> _Found | None:
    """Return the passages in a result of the retrieval tool, or None if there are none, for example after an error."""
    if message.role != FUNCTION or message.name != RETRIEVAL:
        return None
    text = message.get_text_content()
    try:
        listed, end = json.JSONDecoder().raw_decode(text)
    except ValueError:  # the result only has text for the model
        return None
    # A truncated list ends in a string that says so.
    passages = tuple(filter(_is_passage, listed)) if isinstance(listed, list) else ()
    return _Found(passages, text[end:].strip()) if passages else None


def _is_passage(entry: object) -> bool:
    match entry:
        case {"url": _, "text": [*_]}:
            return True
    return False


def _joined(results: Iterable[_Found]) -> list[Mapping[str, Any]]:
    """Merge the passages of several results by source, without duplicates."""
    texts: dict[str, dict[str, None]] = {}
    for result in results:
        for passage in result.passages:
            texts.setdefault(str(passage["url"]), {}).update(dict.fromkeys(map(str, passage["text"])))
    return [{"url": url, "text": list(found)} for url, found in texts.items()]
