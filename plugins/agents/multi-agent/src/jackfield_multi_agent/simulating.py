"""Simulate conversations between a user and an assistant."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from typing import Any, Unpack

from jackfield.agents import (
    Agent,
    AgentOptions,
    BasicAgent,
    Event,
    ParentRun,
    Run,
    Spent,
    ToolEntry,
    open_calls,
    run_as,
)
from jackfield.config import LLMConfig
from jackfield.errors import ConfigError
from jackfield.events import HandedOff, PluginEvent, ResponseReplaced, RunFinished, StopReason
from jackfield.messages import ASSISTANT, SYSTEM, USER, Message, Usage, with_system_text
from jackfield.models import BaseChatModel
from jackfield.results import text_of_answer
from jackfield.streams import Interrupted, closing
from jackfield_agent_parts import Answered, GivenPrompts, Prompts, ask_below, list_in
from jackfield_multi_agent.files import PROMPTS
from jackfield_multi_agent.hub import MultiAgentHub, check_agents

STOP = "<|STOP|>"
NO_QUESTIONS = "jackfield-multi-agent.no_questions"
SEED = 42
_OTHER = {USER: ASSISTANT, ASSISTANT: USER}


class HumanSimulator(Agent):
    """Agent that plays the user: it answers with one of the questions its model proposes, or with `<|STOP|>`.

    If the model does not return a JSON list of strings, the dialogue stops, and an event reports the reason.

    Args:
        function_list, llm, name, description: See `Agent`. Tools are never called.
        system_message: The user's persona and goal, added to the format instructions.
        seed: The seed for choosing among the questions.
        prompts: Prompts that override those in this package's `prompts.toml`.
        options: See `Agent`.
    """

    resumable = True

    def __init__(
        self,
        function_list: Iterable[ToolEntry] | None = None,
        llm: str | Mapping[str, Any] | LLMConfig | BaseChatModel | None = None,
        system_message: str | None = "",
        name: str | None = "user",
        description: str | None = None,
        *,
        seed: int = SEED,
        prompts: GivenPrompts = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        super().__init__(function_list, llm, system_message, name, description, **options)
        self._prompts = Prompts.read(PROMPTS, prompts)
        self._seed = seed
        self._asked = BasicAgent(llm=self.llm, name=self.name, host=self.host)

    async def events(self, run: Run) -> AsyncIterator[Event]:
        asked = with_system_text(run.messages, self._prompts.text("human", run.lang), first=False)
        parent, answered = ParentRun(run, run.start.spent), Answered()
        try:
            async with closing(
                ask_below(self._asked, asked, parent, answered, lang=run.lang, config=run.caller_config)
            ) as events:
                async for event in events:
                    yield event
        except Interrupted:
            yield RunFinished(run.interruption, (), parent.spent.usage)
            return
        try:
            questions = _questions(answered.text)
        except ValueError as error:
            yield PluginEvent(NO_QUESTIONS, {"answer": answered.text[:200], "note": str(error)})
            questions = []
        chance = random.Random(f"{self._seed} {len(run.messages)}")  # noqa: S311 - the same for the same dialogue
        message = Message(ASSISTANT, chance.choice(questions) if questions else STOP, name=self.name)
        yield ResponseReplaced((message,))
        yield RunFinished("finished", (message,), parent.spent.usage)


def _questions(text: str) -> list[str]:
    return [question.strip() for question in list_in(text) if isinstance(question, str) and question.strip()]


class DialogueSimulator(MultiAgentHub, Agent):
    """Agent that runs a dialogue between a simulated user and an assistant, each seeing the other as its user.

    The dialogue ends when the user says `<|STOP|>`, or after `max_round` questions. Limits apply to the dialogue as a
    whole, except for the turn limit, which applies to each answer.

    Args:
        user_agent: The agent that asks, such as a `HumanSimulator`.
        assistant_agent: The agent that answers.
        max_round: The maximum number of questions.
        function_list, llm, system_message, name, description, options: See `Agent`. The simulator itself uses no model.

    Raises:
        ConfigError: An agent is missing or unnamed, both have the same name, or `max_round` is less than 1.
    """

    resumable = True

    def __init__(
        self,
        user_agent: Agent | None = None,
        assistant_agent: Agent | None = None,
        max_round: int = 5,
        *,
        function_list: Iterable[ToolEntry] | None = None,
        llm: str | Mapping[str, Any] | LLMConfig | BaseChatModel | None = None,
        system_message: str | None = "",
        name: str | None = None,
        description: str | None = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        if user_agent is None or assistant_agent is None:
            raise ConfigError("a dialogue needs user_agent= and assistant_agent=")
        if max_round < 1:
            raise ConfigError(f"max_round must be at least 1, got {max_round}")
        super().__init__(function_list, llm, system_message, name, description, **options)
        self.agents = check_agents((user_agent, assistant_agent), "a dialogue")
        self.max_round = max_round

    async def events(self, run: Run) -> AsyncIterator[Event]:
        dialogue, label = _Dialogue(run, run.start.spent), self.name or type(self).__name__
        start = 1 if _is_asked(run.messages) else 0
        for name, agent in islice(
            cycle(zip(self.agent_names, self.agents, strict=True)), start, start + 2 * self.max_round
        ):
            yield HandedOff(label, name)
            label = name
            async with closing(dialogue.speech(agent, asks=agent is self.agents[0])) as events:
                async for event in events:
                    yield event
            yield ResponseReplaced(tuple(dialogue.said))
            if dialogue.reason is not None:
                break
        yield RunFinished(dialogue.reason or "finished", tuple(dialogue.said), dialogue.spent.usage)


@dataclass(slots=True)
class _Dialogue:
    """The dialogue so far.

    Attributes:
        spent: The combined usage of both agents.
        reason: Why the dialogue ended, or None if it continues.
    """

    run: Run
    spent: Spent
    said: list[Message] = field(default_factory=list)
    reason: StopReason | None = None

    async def speech(self, agent: Agent, *, asks: bool) -> AsyncIterator[Event]:
        """Let the user (`asks`) or the assistant speak, and yield the events."""
        seen = (*self.run.messages, *self.said)
        part = run_as(agent, self.run, _swapped(seen) if asks else seen, replace(self.spent, turns=0))
        end = RunFinished("finished", (), Usage())
        async with closing(agent.events(part)) as events:
            async for event in events:
                if isinstance(event, RunFinished):
                    end = event
                else:
                    self.spent = self.spent.plus(event)
                    yield event
        self.run = replace(self.run, resume=False, answers={})  # both concern only pending calls
        text = text_of_answer(end.messages)
        self.said += [Message(USER, text, name=agent.name)] if asks else end.messages
        self.reason = self._reason(end, text)

    def _reason(self, end: RunFinished, text: str) -> StopReason | None:
        if end.stop_reason != "finished":
            return end.stop_reason
        return ParentRun(self.run, self.spent).reached(0) or ("finished" if STOP in text else None)


def _is_asked(messages: Sequence[Message]) -> bool:
    """Return True if it is the assistant's turn."""
    return bool(open_calls(messages) or (messages and messages[-1].role == USER))


def _swapped(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the dialogue from the user's point of view, with the two roles swapped."""
    swapped = [Message(_OTHER[message.role], message.get_text_content()) for message in messages if _is_said(message)]
    system = [message for message in messages if message.role == SYSTEM]
    if not swapped or swapped[-1].role == ASSISTANT:
        swapped.append(Message(USER, "…"))
    return (*system, *swapped)


def _is_said(message: Message) -> bool:
    return message.role in _OTHER and not message.function_call and bool(message.get_text_content())
