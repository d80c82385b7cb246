"""Choose the next speaker in a group chat."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack, get_args

from jackfield.agents import Agent, AgentOptions, BasicAgent, Event, ParentRun, Run, ToolEntry
from jackfield.config import LLMConfig
from jackfield.errors import ConfigError
from jackfield.events import PluginEvent, ResponseReplaced, RunFinished
from jackfield.messages import ASSISTANT, Message
from jackfield.models import BaseChatModel
from jackfield.streams import Interrupted, closing
from jackfield.suggestions import suggest
from jackfield_agent_parts import Answered, GivenPrompts, Prompts, ask_below
from jackfield_multi_agent.files import PROMPTS
from jackfield_multi_agent.hub import MultiAgentHub, check_agents, described
from jackfield_multi_agent.transcript import STOP, Transcript, named

Method = Literal["auto", "round_robin", "random", "manual"]
METHODS: tuple[Method, ...] = get_args(Method)
NOBODY_NAMED = "jackfield-multi-agent.nobody_named"


@dataclass(slots=True)
class Chosen:
    """The next speaker, set as the events are consumed; None if the conversation is over."""

    name: str | None = None


def checked_method(method: str) -> Method:
    """Validate the name of a selection method.

    Raises:
        ConfigError: There is no method with this name.
    """
    for known in METHODS:
        if method == known:
            return known
    raise ConfigError(f"unknown agent_selection_method {method!r}{suggest(method, METHODS)}")


def after(name: str, names: Sequence[str]) -> str:
    """Return the name that follows `name`, or the first name if `name` is not among them."""
    return names[(names.index(name) + 1) % len(names)] if name in names else names[0]


def another(name: str, names: Sequence[str], chance: random.Random) -> str:
    """Return a random name other than `name`."""
    return chance.choice([other for other in names if other != name] or list(names))


class GroupChatAutoRouter(MultiAgentHub, Agent):
    """Agent that answers with the name of the next speaker, or with `[STOP]`.

    If the model does not name exactly one agent, the next one in order is chosen, and an event reports the fallback.

    Args:
        function_list, llm, system_message, name, description: See `Agent`. Tools are never called.
        agents: The agents in the conversation.
        background: The topic of the conversation.
        prompts: Prompts that override those in this package's `prompts.toml`.
        options: See `Agent`.

    Raises:
        ConfigError: There are no agents, or an agent's name is missing or not unique.
    """

    resumable = True

    def __init__(
        self,
        function_list: Iterable[ToolEntry] | None = None,
        llm: str | Mapping[str, Any] | LLMConfig | BaseChatModel | None = None,
        system_message: str | None = "",
        name: str | None = "host",
        description: str | None = None,
        *,
        agents: Iterable[Agent] = (),
        background: str = "",
        prompts: GivenPrompts = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        super().__init__(function_list, llm, system_message, name, description, **options)
        self.agents = check_agents(agents, "a group chat")
        self.background = background
        self._prompts = Prompts.read(PROMPTS, prompts)
        self._asked = BasicAgent(llm=self.llm, name=self.name, host=self.host)

    async def events(self, run: Run) -> AsyncIterator[Event]:
        chosen, parent = Chosen(), ParentRun(run, run.start.spent)
        try:
            async with closing(self.choose(Transcript(self.agent_names, run.messages), parent, chosen)) as events:
                async for event in events:
                    yield event
        except Interrupted:
            yield RunFinished(run.interruption, (), parent.spent.usage)
            return
        message = Message(ASSISTANT, chosen.name or STOP, name=self.name)
        yield ResponseReplaced((message,))
        yield RunFinished("finished", (message,), parent.spent.usage)

    async def choose(self, transcript: Transcript, parent: ParentRun, chosen: Chosen) -> AsyncIterator[Event]:
        """Ask the model for the next speaker and store the name in `chosen`, yielding the events."""
        lines = "\n".join(transcript.lines)
        prompt = self._prompts.text(
            "host", parent.run.lang, background=self.background, agents=described(self.agents), transcript=lines
        )
        answered = Answered()
        config = parent.run.caller_config if parent.run.agent is self else None
        async with closing(ask_below(self._asked, prompt, parent, answered, config=config)) as events:
            async for event in events:
                yield event
        if STOP in answered.text:
            return
        chosen.name = named(answered.text, self.agent_names)
        if chosen.name is None:
            chosen.name = after(transcript.last_speaker, self.agent_names)
            note = f"the host named no speaker, so {chosen.name} is next"
            yield PluginEvent(NOBODY_NAMED, {"answer": answered.text[:200], "note": note})
