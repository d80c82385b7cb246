"""An agent that hands each conversation to the one that fits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from typing import Any, Unpack

from jackfield.agents import Agent, AgentOptions, Event, FnCallAgent, Handoff, Run, ToolEntry
from jackfield.config import LLMConfig
from jackfield.messages import with_system_text
from jackfield.models import BaseChatModel
from jackfield_agent_parts import GivenPrompts, Prompts
from jackfield_multi_agent.files import PROMPTS
from jackfield_multi_agent.hub import MultiAgentHub, check_agents, described


class Router(MultiAgentHub, FnCallAgent):
    """Hands the conversation over to the agent that fits the question, or answers itself.

    The model chooses by a tool call, so no word of an answer is mistaken for a choice; a name that there is not is an
    error that it reads. All that holds for hand-offs holds here.

    Args:
        function_list, llm, system_message, name, description: As for every agent.
        agents: The agents to choose from, each with a name and a description.
        prompts: Texts in place of those in `prompts.toml` of this package.
        options: As for every agent; `handoffs` may name further agents, with the history that they see.

    Raises:
        ConfigError: There are no agents, or one has no name, no description, or the name of another.
    """

    resumable = True

    def __init__(
        self,
        function_list: Iterable[ToolEntry] | None = None,
        llm: str | Mapping[str, Any] | LLMConfig | BaseChatModel | None = None,
        system_message: str | None = "",
        name: str | None = None,
        description: str | None = None,
        *,
        agents: Iterable[Agent] = (),
        prompts: GivenPrompts = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        handoffs = options.get("handoffs", ())
        targets = [entry.agent if isinstance(entry, Handoff) else entry for entry in handoffs]
        self.agents = check_agents([*agents, *targets], "a router")
        options = {**options, "handoffs": [*agents, *handoffs]}
        super().__init__(function_list, llm, system_message, name, description, **options)
        self._prompts = Prompts.read(PROMPTS, prompts)

    def events(self, run: Run) -> AsyncIterator[Event]:
        told = self._prompts.text("router", run.lang, agents=described(self.agents))
        return super().events(replace(run, messages=with_system_text(run.messages, told, first=False)))
