"""Handle conversations too long for a model by searching earlier messages like a document."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from jackfield import sync
from jackfield.agents import BasicAgent, Event, ParentRun, Run
from jackfield.messages import ASSISTANT, SYSTEM, USER, Message
from jackfield.streams import closing
from jackfield_agent_parts import Answered, ask_below
from jackfield_assistant.agent import Assistant, AssistantRunOptions
from jackfield_assistant.memory import Recalled, question_in

LONG_CHARS = 1000
SEEN = 2


class DialogueRunOptions(AssistantRunOptions, total=False):
    """Run options of a `DialogueRetrievalAgent`."""

    session_id: str
    """Name of the file that stores the earlier conversation."""


class DialogueRetrievalAgent(Assistant):
    """Agent that answers from the latest exchange and from relevant passages of the earlier conversation.

    The earlier conversation is written to a text file and searched as a document. Each session has one file, below
    `dialogues` in the agent's workspace. A question longer than 1000 characters is written there as well: the model
    first condenses it to one sentence, and then answers that sentence.

    A run accepts `session_id`, the file's name without `.txt`. By default, the name is derived from the first question.

    Args: See `Assistant`.
    """

    run_options: ClassVar[type] = DialogueRunOptions

    async def _recalling(self, run: Run, parent: ParentRun, recalled: Recalled) -> AsyncIterator[Event]:
        question, lines = question_in(run.messages), self._lines(run)
        if len(question) > LONG_CHARS:
            lines.append(question)
            asked, answered = BasicAgent(llm=self.llm, name="reader", host=self.host), Answered()
            beginning, end = question[:LONG_CHARS], question[-LONG_CHARS:]
            prompt = self.memory.prompts.text("long_question", run.lang, beginning=beginning, end=end)
            async with closing(ask_below(asked, prompt, parent, answered, lang=run.lang)) as answering:
                async for placed in answering:
                    yield placed
            question = recalled.question = answered.text.strip() or f"{beginning}\n…\n{end}"
        files = run.context.files
        if lines:
            preparation = run.prepare(lambda _: sync.in_worker(self._written, run, lines))
            async with closing(preparation.events()) as progress:
                async for step in progress:
                    yield step
            files = (*files, str(preparation.result))
        context = replace(run.context, files=files)
        searching = replace(run, messages=(Message(USER, question),), context=context)
        async with closing(self.memory.recall(searching, parent, recalled)) as events:
            async for event in events:
                yield event

    def _answering(self, run: Run) -> AsyncIterator[Event]:
        start = _recent(run.messages)
        system = (message for message in run.messages[:start] if message.role == SYSTEM)
        return super()._answering(replace(run, messages=(*system, *run.messages[start:])))

    def _lines(self, run: Run) -> list[str]:
        names = {USER: "dialogue_user", ASSISTANT: "dialogue_assistant"}
        return [
            self.memory.prompts.text(names[message.role], run.lang, text=text)
            for message in run.messages[: _recent(run.messages)]
            if message.role in names and not message.function_call and (text := message.get_text_content().strip())
        ]

    def _written(self, run: Run, lines: Sequence[str]) -> Path:
        session = str(run.options.get("session_id") or hashlib.sha256(lines[0].encode()).hexdigest()[:16])
        path = run.context.workspace.resolve(f"dialogues/{session}.txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")
        return path


def _recent(messages: Sequence[Message]) -> int:
    """Return the index of the second-to-last question, where the model's view starts; 0 if there is none."""
    questions = [index for index, message in enumerate(messages) if message.role == USER]
    return questions[-SEEN] if len(questions) >= SEEN else 0
