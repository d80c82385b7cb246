"""Run a conversation between several agents and people."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Unpack

from jackfield import create_agent
from jackfield.agents import Agent, AgentOptions, Event, ParentRun, Run, RunOptions, Spent, ToolEntry, run_as
from jackfield.config import LLMConfig, checked_list
from jackfield.errors import ConfigError
from jackfield.events import HandedOff, PluginEvent, RunFinished, StopReason
from jackfield.messages import SYSTEM, USER, Message, Usage
from jackfield.models import BaseChatModel
from jackfield.results import text_of_answer
from jackfield.streams import Interrupted, closing
from jackfield.suggestions import suggest
from jackfield_agent_parts import GivenPrompts, Prompts
from jackfield_multi_agent.choosing import Chosen, GroupChatAutoRouter, after, another, checked_method
from jackfield_multi_agent.files import PROMPTS
from jackfield_multi_agent.hub import MultiAgentHub, check_agents, described
from jackfield_multi_agent.transcript import STOP, Transcript, caller_of_open_calls, mentioned
from jackfield_multi_agent.user import INPUT_NEEDED, UserAgent, is_cancelled

_AGENT_KEYS = ("name", "description", "instructions", "knowledge_files", "selected_tools", "is_human")
_GROUP_KEYS = ("background", "agents")


class GroupChatRunOptions(RunOptions, total=False):
    """Run options of a `GroupChat`."""

    max_round: int
    """Maximum number of speeches in this run."""

    need_batch_response: bool
    """False to end the run after one speech."""

    mentioned_agents_name: Sequence[str] | None
    """Names of the agents that speak first."""


class GroupChat(MultiAgentHub, Agent):
    """Agent that lets several agents talk to each other. A speech is all turns of one agent up to its answer.

    The next speaker is chosen by the model (`auto`), in order (`round_robin`), at random (`random`) or by the caller
    (`manual`). Agents mentioned as `@name` in the last question speak first, in that order.

    When it is a person's turn (`UserAgent`), or no speaker is chosen in manual mode, the run ends with `input_needed`
    and the `jackfield-multi-agent.input_needed` event. To continue, pass the history and the person's message, which
    needs no name. `[STOP]` or an empty answer also ends the run.

    Limits apply to the chat as a whole, except for the turn limit, which applies to each speech.

    A run accepts `max_round`, `need_batch_response=False` for a single speech, and `mentioned_agents_name`, the agents
    that speak first.

    Args:
        agents: The agents, or a dict `{"background", "agents": [{"name", "description", "instructions",
            "knowledge_files", "selected_tools", "is_human"}]}`.
        agent_selection_method: `auto`, `round_robin`, `random` or `manual`.
        llm: The model that chooses speakers, also used for agents defined in a dict.
        system_message, name, description, function_list: See `Agent`. Each agent sees the system message.
        background: The topic of the conversation, shown to all agents.
        max_round: The maximum number of speeches per run, unless the run sets its own.
        seed: The seed for `random`; runs with the same seed and agents have the same order.
        prompts: Prompts that override those in this package's `prompts.toml`.
        options: See `Agent`.

    Raises:
        ConfigError: There are no agents, an agent's name is missing or not unique, or `auto` has no model.
    """

    resumable = True
    run_options: ClassVar[type] = GroupChatRunOptions

    def __init__(
        self,
        agents: Iterable[Agent] | Mapping[str, Any] = (),
        agent_selection_method: str = "auto",
        llm: str | Mapping[str, Any] | LLMConfig | BaseChatModel | None = None,
        system_message: str | None = "",
        *,
        name: str | None = None,
        description: str | None = None,
        function_list: Iterable[ToolEntry] | None = None,
        background: str = "",
        max_round: int = 3,
        seed: int | None = None,
        prompts: GivenPrompts = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        super().__init__(function_list, llm, system_message, name, description, **options)
        if isinstance(agents, Mapping):
            background = background or str(agents.get("background") or "")
            agents = _made(agents, self)
        self.agents = check_agents(agents, "a group chat")
        self.background = background
        self.method = checked_method(agent_selection_method)
        self._way = self.method if len(self.agents) > 1 else "round_robin"
        self.max_round = _rounds(max_round)
        self.seed = seed
        self._prompts = Prompts.read(PROMPTS, prompts)
        if self._way == "auto" and self.llm is None:
            raise ConfigError("agent_selection_method 'auto' needs a model: pass llm=, or choose another method")
        self._host_agent = GroupChatAutoRouter(
            llm=self.llm, agents=self.agents, background=background, prompts=prompts, host=self.host
        )

    async def events(self, run: Run) -> AsyncIterator[Event]:
        chat = _Chat(self, run)
        label = self.name or type(self).__name__
        while chat.reason is None:
            chosen = Chosen()
            try:
                async with closing(chat.choosing(chosen)) as events:
                    async for event in events:
                        yield event
            except Interrupted:
                chat.stop(run.interruption)
            if chosen.name is not None:
                yield HandedOff(label, chosen.name)
                label = chosen.name
                async with closing(chat.speech(chosen.name)) as events:
                    async for event in events:
                        yield event
        yield RunFinished(chat.reason, tuple(chat.messages), chat.spent.usage)

    def first_speakers(self, run: Run) -> list[str]:
        """Return the agents that speak first: the one with pending calls, otherwise the mentioned ones.

        Raises:
            ConfigError: The run mentions an agent that is not in the group.
        """
        names = self._named_by(run)
        caller = caller_of_open_calls(run.messages)
        if caller is not None:
            return [caller if caller in self.agent_names else self.agent_names[0]]
        last = next((asked.get_text_content() for asked in reversed(run.messages) if asked.role == USER), "")
        return names or mentioned(last, self.agent_names)

    def _named_by(self, run: Run) -> list[str]:
        names = checked_list(run.options.get("mentioned_agents_name") or (), "mentioned_agents_name", "names")
        for name in names:
            if name not in self.agent_names:
                raise ConfigError(f"this group chat has no agent named {name!r}{suggest(name, self.agent_names)}")
        return list(names)

    async def choose(self, transcript: Transcript, parent: ParentRun, chosen: Chosen) -> AsyncIterator[Event]:
        """Choose the next speaker with the configured method, yielding the events."""
        if self._way == "auto":
            async with closing(self._host_agent.choose(transcript, parent, chosen)) as events:
                async for event in events:
                    yield event
        elif self._way == "round_robin":
            chosen.name = after(transcript.last_speaker, self.agent_names)
        else:
            # Derived only from the position in the run, so that resumed runs and runs with the same seed agree.
            seed = f"{parent.run.id if self.seed is None else self.seed} {parent.place}"
            chance = random.Random(seed)  # noqa: S311 - no security depends on it
            chosen.name = another(transcript.last_speaker, self.agent_names, chance)

    def messages_for(self, agent: Agent, transcript: Transcript, run: Run) -> Sequence[Message]:
        """Return the messages an agent sees before it speaks."""
        name, lang = agent.name or "", run.lang
        prompt = self._prompts.text(
            "member", lang, name=name, background=self.background, agents=described(self.agents)
        )
        system = Message(SYSTEM, "\n\n".join(part for part in (prompt, transcript.system_text) if part))
        return (system, *transcript.seen_by(name, self._prompts.text("your_turn", lang, name=name)))


class _Chat:
    """A single run of a group chat."""

    def __init__(self, group: GroupChat, run: Run) -> None:
        self._group = group
        self._run = run
        self._transcript = Transcript(group.agent_names, run.messages)
        self._first = group.first_speakers(run)
        self._agents = {agent.name or "": agent for agent in group.agents}
        one_speech = run.options.get("need_batch_response") is False
        self._left = 1 if one_speech else _rounds(run.options.get("max_round", group.max_round))
        self._speeches = 0
        self.messages: list[Message] = []
        self.spent: Spent = run.start.spent
        self.reason: StopReason | None = None

    def stop(self, reason: StopReason) -> None:
        """End the chat."""
        self.reason = reason

    async def choosing(self, chosen: Chosen) -> AsyncIterator[Event]:
        """Choose the next speaker, unless the chat is over or that speaker is a person who has just spoken."""
        parent = ParentRun(self._run, self.spent, f"speech {self._speeches + 1}")
        chosen.name = self._known(parent)
        if chosen.name is not None or self.reason is not None:
            return
        if self._group._way == "manual" and is_cancelled(self._run):
            self.stop("cancelled")
            return
        if self._group._way == "manual":
            yield PluginEvent(INPUT_NEEDED, {"agent": "", "choices": list(self._agents)})
            self.stop("input_needed")
            return
        async with closing(self._group.choose(self._transcript, parent, chosen)) as events:
            async for event in events:
                yield event
        self.spent = parent.spent
        if chosen.name is None:
            self.stop("finished")
        elif isinstance(self._agents[chosen.name], UserAgent) and self._has_said(chosen.name):
            chosen.name = None  # the choice depends on the conversation so far

    def _known(self, parent: ParentRun) -> str | None:
        """Return the next speaker if already determined, or None if one must be chosen or the chat is over."""
        spoke = self._run.later_parts[0].agent if self._run.later_parts else ""  # before the run was interrupted
        if not self._left:
            self.stop("finished")
        elif spoke in self._agents:
            self._first = self._first[self._first[:1] == [spoke] :]
            return spoke
        elif reached := parent.reached(0):
            self.stop(reached)
        elif self._first:
            return self._first.pop(0)
        return None

    def _has_said(self, name: str) -> bool:
        """Return True if the last message is an unnamed one from the person whose turn it is.

        Clients that do not know the people in a group send such messages.
        """
        *before, last = self._run.messages
        opens = all(message.role == SYSTEM for message in before)
        if self.messages or opens or last.role != USER or last.name:
            return False
        self._run = replace(self._run, messages=(*before, last.replace(name=name)))
        self._transcript = Transcript(self._group.agent_names, self._run.messages)
        return True

    async def speech(self, name: str) -> AsyncIterator[Event]:
        """Let an agent speak, and yield the events."""
        agent, self._left = self._agents[name], self._left - 1
        self._speeches += 1
        seen = self._group.messages_for(agent, self._transcript, self._run)
        # The turn limit is meant for one question, so it applies to each speech rather than the whole chat.
        spent = replace(self.spent, turns=0) if self.messages else self.spent
        part = run_as(agent, self._run, seen, spent)
        end = RunFinished("finished", (), Usage())
        async with closing(agent.events(part)) as events:
            async for event in events:
                if isinstance(event, RunFinished):
                    end = event
                else:
                    self.spent = self.spent.plus(event)
                    yield event
        for message in end.messages:
            self._transcript.add(message)
        self.messages += end.messages
        self._run = replace(self._run, resume=False, answers={})
        if end.stop_reason != "finished":
            self.stop(end.stop_reason)
        elif isinstance(agent, UserAgent) or STOP in text_of_answer(end.messages):
            self.stop("finished")


def _rounds(count: object) -> int:
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ConfigError(f"max_round must be a whole number, at least 1, got {count!r}")
    return count


def _made(config: Mapping[str, Any], group: GroupChat) -> list[Agent]:
    """Create the agents that a dict describes."""
    _check_keys(config, _GROUP_KEYS, "a group chat")
    entries = checked_list(config.get("agents") or (), "agents", "dicts")
    return [_member(entry, group) for entry in entries]


def _member(entry: object, group: GroupChat) -> Agent:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"an agent of a group chat must be a dict with 'name', got {type(entry).__name__}")
    _check_keys(entry, _AGENT_KEYS, "an agent of a group chat")
    name, description = entry.get("name"), entry.get("description")
    if entry.get("is_human"):
        return UserAgent(name=name, description=description, host=group.host)
    files = list(entry.get("knowledge_files") or ())
    return create_agent(
        "assistant" if files else "fncall",
        llm=group.llm,
        system_message=entry.get("instructions") or "",
        function_list=list(entry.get("selected_tools") or ()),
        host=group.host,
        name=name,
        description=description,
        files=files,
    )


def _check_keys(config: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    for key in config:
        if key not in known:
            raise ConfigError(f"{what} has no setting {key!r}{suggest(str(key), known)}")
