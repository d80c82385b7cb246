"""Turn a conversation's last question into a standalone search query, by rule or with a model."""

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
_NOT_TRANSLATED = "the question was not translated into the documents' language"
_FAILED = "the question was not rewritten: also searching for words from earlier turns"


class QuestionRewriter:
    """Rewrites follow-up questions as standalone search queries.

    Args:
        rewriting: The rewriting method.
        agent: The agent that rewrites questions. Required only if the method is `model`.
        prompts: The prompts `standalone` and `translate`.
    """

    def __init__(self, rewriting: Rewriting, agent: Agent | None, prompts: Prompts) -> None:
        self.rewriting = rewriting
        self._agent = agent
        self._prompts = prompts

    async def rewrite(
        self, question: str, earlier: Sequence[Exchange], parent: ParentRun, query: Query
    ) -> AsyncIterator[RunEvent | PluginEvent]:
        """Rewrite a question and store the result in `query`, yielding the events.

        Without earlier turns, the question stays unchanged and no model is called. If the model fails, words of earlier
        turns are added instead.
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
        """Return True if the model may translate the question and the documents use a different script."""
        scripts: frozenset[str] = getattr(found, "scripts", frozenset())
        return (
            self.rewriting == "model"
            and self._agent is not None
            and bool(getattr(found, "shown", ()))
            and bool(scripts)
            and scripts.isdisjoint(scripts_of(question))
        )

    async def translate(self, found: object, parent: ParentRun, query: Query) -> AsyncIterator[RunEvent | PluginEvent]:
        """Translate the query into the documents' language and append the translation, yielding the events."""
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
    """Return the exchanges before the last question, oldest first."""
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
