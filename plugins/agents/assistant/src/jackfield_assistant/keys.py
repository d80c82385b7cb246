"""Choose the search query: the question itself, or keywords that a model extracts from it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jackfield.agents import Agent, ParentRun
from jackfield.errors import ModelServiceError
from jackfield.events import PluginEvent, PreparationProgress, RunEvent
from jackfield.plugins import Plugins
from jackfield.streams import closing
from jackfield.tools import acall_tool
from jackfield_agent_parts import Answered, Prompts, ask_below, object_in
from jackfield_documents.rag_config import KeygenStrategy

PLAIN_QUESTION = "jackfield-assistant.plain_question"
VOCABULARY = "extract_doc_vocabulary"
_NO_KEYWORDS = "no keywords were generated: searching for the question as it is"


@dataclass(slots=True)
class Query:
    """The search query, updated as the events are consumed."""

    text: str


class QueryMaker:
    """Turns questions into search queries, with as many model requests as the strategy needs.

    Args:
        strategy: The keyword strategy.
        agent: The agent that extracts keywords. Optional if the strategy is `none`.
        prompts: The prompts `keywords`, `keywords_with_words` and `split`.
        host: The plugin host that provides the vocabulary tool.

    Raises:
        PluginError: The strategy needs the vocabulary tool, which is not installed.
    """

    def __init__(self, strategy: KeygenStrategy, agent: Agent | None, prompts: Prompts, host: Plugins) -> None:
        self.strategy = strategy
        self._agent = agent
        self._prompts = prompts
        self._host = host
        self._knows_words = self.strategy.endswith("WithKnowledge")
        if self._knows_words:
            host.find("tool", VOCABULARY)

    async def query(
        self, question: str, files: Sequence[str], parent: ParentRun, made: Query
    ) -> AsyncIterator[RunEvent | PluginEvent | PreparationProgress]:
        """Extract keywords from the question and add them to `made`, yielding the events.

        If the model fails or gives an unusable answer, the query is the question itself, and an event reports the
        reason.
        """
        agent, lang = self._agent, parent.run.lang
        if self.strategy == "none" or agent is None:
            return
        answers: dict[str, Mapping[str, Any]] = {}
        if self.strategy.startswith("SplitQuery"):
            prompt = self._prompts.text("split", lang, question=question)
            async with closing(ask_for_object(agent, prompt, parent, answers, failed=_NO_KEYWORDS)) as events:
                async for event in events:
                    yield event
            information = " ".join(_words(answers.get("", {}), "information"))
            question = information if 0 < len(information) < len(question) else question
        if self._knows_words:
            preparation = parent.run.prepare(lambda _: self._words_of(files, question, parent))
            async with closing(preparation.events()) as progress:
                async for step in progress:
                    yield step
            words = preparation.result
            prompt = self._prompts.text("keywords_with_words", lang, words=words, question=question)
        else:
            prompt = self._prompts.text("keywords", lang, question=question)
        answers.clear()
        async with closing(ask_for_object(agent, prompt, parent, answers, failed=_NO_KEYWORDS)) as events:
            async for event in events:
                yield event
        found = answers.get("", {})
        # A single string works for every searcher, including semantic ones.
        made.text = " ".join(dict.fromkeys([question, *_words(found, "keywords_zh"), *_words(found, "keywords_en")]))

    async def _words_of(self, files: Sequence[str], question: str, parent: ParentRun) -> str:
        arguments = {"files": list(files), "query": question}
        words = await acall_tool(VOCABULARY, arguments, context=parent.run.context, host=self._host)
        return str(getattr(words, "content", words))


async def ask_for_object(
    agent: Agent, prompt: str, parent: ParentRun, answers: dict[str, Mapping[str, Any]], *, failed: str
) -> AsyncIterator[RunEvent | PluginEvent]:
    """Ask for a JSON object and store it in `answers[""]`, yielding the events.

    If the model fails or does not answer with an object, nothing is stored, and an event reports `failed` and the
    reason.
    """
    answered = Answered()
    try:
        async with closing(ask_below(agent, prompt, parent, answered, lang=parent.run.lang)) as events:
            async for event in events:
                yield event
        answers[""] = object_in(answered.text)
    except (ModelServiceError, ValueError) as error:
        yield PluginEvent(PLAIN_QUESTION, {"note": f"{failed}: {error}"})


def _words(found: Mapping[str, Any], key: str) -> list[str]:
    listed = found.get(key)
    return (
        [word.strip() for word in listed if isinstance(word, str) and word.strip()] if isinstance(listed, list) else []
    )
