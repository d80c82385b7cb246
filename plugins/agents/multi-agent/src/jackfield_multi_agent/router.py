"""Hand each conversation over to a suitable agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from typing import Any, Unpack

from jackfield import create_agent
from jackfield.agents import Agent, AgentOptions, Event, FnCallAgent, Handoff, ParentRun, Run, ToolEntry
from jackfield.config import LLMConfig
from jackfield.events import RunFinished
from jackfield.messages import with_system_text
from jackfield.models import BaseChatModel
from jackfield.streams import Interrupted, closing
from jackfield_agent_parts import Answered, GivenPrompts, Prompts, ask_below
from jackfield_multi_agent.files import PROMPTS
from jackfield_multi_agent.hub import MultiAgentHub, check_agents, described


class Router(MultiAgentHub, FnCallAgent):
    """Agent that hands the conversation over to the agent best suited to the question, or answers itself.

    The model chooses with a tool call, so no wording in an answer can be mistaken for a choice. An unknown name is
    returned to the model as an error. The usual handoff rules apply.

    Args:
        function_list, llm, system_message, name, description: See `Agent`.
        agents: The agents to choose from, each with a name and a description.
        rag_cfg: How to split and search the router's `files`; its agent `memory` retrieves passages for the question.
            If None, files are sent whole.
        prompts: Prompts that override those in this package's `prompts.toml`.
        options: See `Agent`. `handoffs` can add more agents and specify how much of the history each one sees.

    Raises:
        ConfigError: There are no agents, or an agent has no description, or its name is missing or not unique.
        PluginError: `rag_cfg` is set but the `memory` agent (`jackfield-assistant`) is not installed.
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
        rag_cfg: Mapping[str, Any] | None = None,
        prompts: GivenPrompts = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        handoffs = options.get("handoffs", ())
        targets = [entry.agent if isinstance(entry, Handoff) else entry for entry in handoffs]
        self.agents = check_agents([*agents, *targets], "a router")
        options = {**options, "handoffs": [*agents, *handoffs]}
        searched = options.pop("files", None) if rag_cfg is not None else None
        super().__init__(function_list, llm, system_message, name, description, **options)
        self.memory: Agent | None = None
        if rag_cfg is not None:
            self.memory = create_agent("memory", llm=self.llm, files=searched, rag_cfg=rag_cfg, host=self.host)
        self._prompts = Prompts.read(PROMPTS, prompts)

    async def events(self, run: Run) -> AsyncIterator[Event]:
        text = self._prompts.text("router", run.lang, agents=described(self.agents))
        if self.memory is not None:
            parent, answered = ParentRun(run, run.start.spent), Answered()
            try:
                async with closing(ask_below(self.memory, run.asked, parent, answered, lang=run.lang)) as searching:
                    async for placed in searching:
                        yield placed
            except Interrupted:
                yield RunFinished(run.interruption, (), parent.spent.usage)
                return
            if answered.text:
                knowledge = answered.text_with_notes
                text += "\n\n" + self._prompts.text("router_knowledge", run.lang, knowledge=knowledge)
            run = replace(run, start=run.start.after(parent.spent))
        messages = with_system_text(run.messages, text, first=False)
        async with closing(super().events(replace(run, messages=messages))) as events:
            async for event in events:
                yield event
