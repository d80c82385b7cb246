"""Turn the last question of a conversation into a text to search for: by its words, or by the model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from jackfield.agents import Agent, ParentRun
from jackfield.events import PluginEvent, RunEvent
from jackfield.messages import ASSISTANT, USER, Message
from jackfield.streams import closing
from jackfield_agent_parts import Prompts
from jackfield_assistant.keys import Query, ask_for_object
from jackfield_documents import scripts_of
from jackfield_documents.followups import Exchange, search_text
from jackfield_documents.rag_config import Rewriting

_SHOWN_EXCHANGES = 3
_SHOWN_CHARS = 1000
_SAMPLE_CHARS = 500
_NOT_TRANSLATED = "the question was not translated into the language of the documents"
_FAILED = "the question was not rewritten, words of earlier turns are searched for as well"


class QuestionRewriter:
    """Rewrites a question of a conversation so that it can be searched for.

    Args:
        rewriting: The method.
        agent: The agent that is asked; only `model` needs one.
        prompts: `standalone`.
    """

    def __init__(self, rewriting: Rewriting, agent: Agent | None, prompts: Prompts) -> None:
        self.rewriting = rewriting
        self._agent = agent
        self._prompts = prompts

    async def rewrite(
        self, question: str, earlier: Sequence[Exchange], parent: ParentRun, query: Query
    ) -> AsyncIterator[RunEvent | PluginEvent]:
        """Rewrite a question, and yield the events; `query` receives the text to search for.

        Without earlier turns, the question stays as it is, and no model is asked. If the model fails, the words of
        earlier turns are used.
        """
        if self.rewriting == "none" or not earlier:
            return
        query.text = search_text(question, earlier)
        if self.rewriting == "words" or self._agent is None:
            return
        lang = parent.run.lang
        prompt = self._prompts.text("standalone", lang, conversation=_as_text(earlier), question=question)
        answers: dict[str, Mapping[str, Any]] = {}
        async with closing(ask_for_object(self._agent, prompt, parent, answers, failed=_FAILED)) as events:
            async for event in events:
                yield event
        rewritten = answers.get("", {}).get("question")
        if isinstance(rewritten, str) and rewritten.strip():
            query.text = rewritten.strip()

    def may_translate(self, question: str, found: object) -> bool:
        """Return True if the model may be asked to translate a question, and the documents are in another script."""
        scripts: frozenset[str] = getattr(found, "scripts", frozenset())
        return (
            self.rewriting == "model"
            and self._agent is not None
            and bool(getattr(found, "shown", ()))
            and bool(scripts)
            and scripts.isdisjoint(scripts_of(question))
        )

    async def translate(self, found: object, parent: ParentRun, query: Query) -> AsyncIterator[RunEvent | PluginEvent]:
        """Have the model translate the search text into the language of the documents, and add that to `query`."""
        if self._agent is None:
            return
        lang = parent.run.lang
        texts = (text for passage in getattr(found, "passages", ()) for text in passage["text"])
        sample = next(texts, "")[:_SAMPLE_CHARS]
        prompt = self._prompts.text("translate", lang, sample=sample, question=query.text)
        answers: dict[str, Mapping[str, Any]] = {}
        async with closing(ask_for_object(self._agent, prompt, parent, answers, failed=_NOT_TRANSLATED)) as events:
            async for event in events:
                yield event
        translated = answers.get("", {}).get("question")
        if isinstance(translated, str) and translated.strip():
            query.text = f"{query.text}\n{translated.strip()}"


def earlier_exchanges(messages: Sequence[Message]) -> list[Exchange]:
    """Return the questions and answers before the last question, oldest first."""
    exchanges: list[Exchange] = []
    for message in messages:
        text = message.get_text_content().strip()
        if message.role == USER:
            exchanges.append(Exchange(text))
        elif message.role == ASSISTANT and exchanges and text and not message.function_call:
            exchanges[-1] = Exchange(exchanges[-1].question, text)
    return [exchange for exchange in exchanges[:-1] if exchange.question]


def _as_text(earlier: Sequence[Exchange]) -> str:
    lines = [text for one in earlier[-_SHOWN_EXCHANGES:] for text in (one.question, one.answer) if text]
    return "\n\n".join(text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]} …" for text in lines)
