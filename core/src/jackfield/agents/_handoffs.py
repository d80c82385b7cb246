"""Hand-offs, in which another agent takes over the conversation and continues the same run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jackfield._runstate import RunState, Spent
from jackfield.agents._subagents import approve_of, effects_of
from jackfield.config import GenerateConfig, checked_list
from jackfield.errors import ConfigError, ToolServiceError
from jackfield.events import HandedOff, RunFinished
from jackfield.messages import SYSTEM, USER, Message, with_system_text
from jackfield.runs._calls import open_calls
from jackfield.runs._run import AgentLike, Event, Handoff, ParentRun, Part, Run
from jackfield.streams import closing
from jackfield.tools._base import BaseTool, ToolContext, ToolResult
from jackfield.tools._schema import check_tool_name, tool_name_for


def check_handoffs(entries: Iterable[AgentLike | Handoff], owner: AgentLike) -> tuple[Handoff, ...]:
    """Validate an agent's hand-offs, fill in their tool names, and return them.

    Raises:
        ConfigError: A target has no name or description, is the agent itself, or has the same name as the agent.
    """
    listed = checked_list(entries, "handoffs", "agents")
    return tuple(_checked(entry if isinstance(entry, Handoff) else Handoff(entry), owner) for entry in listed)


def _checked(handoff: Handoff, owner: AgentLike) -> Handoff:
    target = handoff.agent
    if not hasattr(target, "astream"):
        raise ConfigError(f"handoffs must be agents, got {type(target).__name__}")
    if not (target.name and target.description):
        raise ConfigError(
            f"agent {target.name or type(target).__name__!r} must have a name and a description to be a handoff target"
        )
    if target.name == owner.name:
        raise ConfigError(f"agent {target.name!r} cannot hand off to itself or to an agent with the same name")
    if not callable(handoff.history) and handoff.history not in ("all", "question"):
        raise ConfigError(f"a handoff's history must be 'all', 'question' or a function, got {handoff.history!r}")
    tool_name = handoff.tool_name or tool_name_for(target.name, prefix="transfer_to_")
    check_tool_name(tool_name)
    return replace(handoff, tool_name=tool_name)


def transfer_tools(handoffs: Sequence[Handoff]) -> list[BaseTool]:
    """Return the tools with which a model hands over the conversation."""
    return [_TransferTool(handoff) for handoff in handoffs]


class _TransferTool(BaseTool):
    """Tool that hands over the conversation after all calls of the turn have finished."""

    read_only = True

    def __init__(self, handoff: Handoff) -> None:
        self._handoff = handoff
        self.name = handoff.tool_name
        self.effects = effects_of(handoff.agent)
        self.description = {
            "en": f"Hands the conversation over to {handoff.agent.name}. {handoff.agent.description}",
            "zh": f"把对话交给 {handoff.agent.name}。{handoff.agent.description}",
        }
        super().__init__()

    async def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> ToolResult:  # noqa: ARG002
        """Claim the hand-off for this turn.

        Raises:
            ToolServiceError: The target has already taken part in the conversation, another hand-off is in progress, or
                there is no run.
        """
        parent = None if context is None else context.run
        if not isinstance(parent, ParentRun):
            raise ToolServiceError("a conversation can only be handed over during an agent's run")
        run, target = parent.run, self._handoff.agent
        if any(target is earlier for earlier in (*run.path, run.agent)):
            raise ToolServiceError(
                f"{target.name} has already had this conversation and handed it over: answer yourself, or hand it "
                "over to another agent."
            )
        if earlier := parent.claim_handoff(target.name or ""):
            raise ToolServiceError(f"The conversation is already being handed over to {earlier}.")
        return ToolResult(f"{target.name} has the conversation now.", {Handoff.METADATA_KEY: target.name})


def find_handoff(agent: AgentLike, name: str) -> Handoff:
    """Return the agent's hand-off to the agent called `name`.

    Raises:
        ConfigError: The agent has no such hand-off, because its hand-offs have changed since the run was recorded.
    """
    for handoff in agent.handoffs:
        if handoff.agent.name == name:
            return handoff
    raise ConfigError(
        f"the run was handed off to agent {name!r}, which is no longer a handoff target of "
        f"{agent.name or 'the agent'!r}"
    )


def handoff_at_start(agent: AgentLike, run: Run) -> Handoff | None:
    """Return the hand-off with which a run of `agent` continues, or None if there is none.

    An interrupted run continues with the agent that held the conversation. A paused run continues with the next agent
    on the path to the agent whose calls are pending.

    Raises:
        ConfigError: The recorded agent is not one of the agent's handoffs.
    """
    if run.later_parts and run.later_parts[0].by_handoff:
        return find_handoff(agent, run.later_parts[0].agent)
    if run.resume and open_calls(run.messages):
        caller = None
        for message in reversed(run.messages):
            if message.function_call:
                caller = message.name
                break
        known = {id(one) for one in (*run.path, agent)}
        for handoff in agent.handoffs:
            if caller in _names_behind(handoff.agent, known):
                return handoff
    if run.start.handoff_to:  # the hand-off follows the open calls
        find_handoff(agent, run.start.handoff_to)
    return None


async def hand_over(run: Run, state: RunState, handoff: Handoff) -> AsyncIterator[Event]:
    """Hand over the run and yield its remaining events.

    Args:
        run: The run of the agent that hands over.
        state: The current state of that run.
        handoff: The hand-off: the agent that takes over, and the part of the conversation that it receives.
    """
    agent, before = run.agent, state.made
    yield HandedOff("" if agent is None else agent.name or type(agent).__name__, handoff.agent.name or "")
    history = (*run.asked, *before)
    path = run.path if agent is None else (*run.path, agent)
    part = replace(run_as(handoff.agent, run, _seen(handoff, history), state.spent), asked=history, path=path)
    async with closing(handoff.agent.events(part)) as events:
        async for event in events:
            yield replace(event, messages=(*before, *event.messages)) if isinstance(event, RunFinished) else event


def _names_behind(agent: AgentLike, known: set[int]) -> Iterator[str | None]:
    if id(agent) not in known:
        known.add(id(agent))
        yield agent.name
        for handoff in agent.handoffs:
            yield from _names_behind(handoff.agent, known)


def run_as(agent: AgentLike, run: Run, messages: Sequence[Message], spent: Spent) -> Run:
    """Return a run in which `agent` continues another agent's run.

    The new run has the same id, limits, deadline, resources, `approve`, `ask` and `config`. The new run's events follow
    a `HandedOff` event in the original run, and its `RunFinished` event covers only the new agent's part.

    Args:
        agent: The agent that takes over, with its own system message, tools and model.
        run: The run to continue.
        messages: The messages that the agent receives.
        spent: The run's usage so far.

    Raises:
        ConfigError: The run was interrupted during another agent's turn, or this agent cannot resume it.
    """
    history = with_system_text(messages, agent.system_message, first=True)
    part = agent.make_run(
        history,
        run.lang,
        resources=run.context.resources,
        cancel=run.cancel,
        deps=run.context.deps,
        config=run.caller_config,
    )
    lang = None if run.config is None else run.config.lang
    part = replace(
        part,
        id=run.id,
        asked=tuple(messages),
        limits=run.limits,
        config=(part.config or GenerateConfig()).merged({"lang": lang}) if lang else part.config,
        approve=approve_of(run) or agent.approve,
        ask=run.ask,
        rules=run.rules_below,
        resume=run.resume,
        answers=run.answers,
        parent=run.parent,
        start=RunState(spent=spent),
        later_parts=run.later_parts,
        ends_in_data=run.ends_in_data,
        context=replace(part.context, run_id=run.id),
        ends_at=run.ends_at,
        record=run.record,
        tally=run.tally,
        observers=run.observers,
    )
    return _resume_part(agent, part, run.later_parts.pop(0)) if run.later_parts else part


def _resume_part(agent: AgentLike, run: Run, part: Part) -> Run:
    """Return a run that continues where the agent's part was interrupted."""
    _check_part(agent, part.agent, has_begun=bool(part.start.made))
    spent = run.start.spent
    turns = max(spent.turns, part.start.spent.turns)
    start = part.start.after(Spent(turns, spent.tool_calls, spent.usage))
    return replace(run, resume=True, answers=part.answers, start=start)


def _check_part(agent: AgentLike, name: str, *, has_begun: bool) -> None:
    """Raise ConfigError if `agent` cannot continue the part recorded for the agent called `name`."""
    label = agent.name or type(agent).__name__
    if name != label:
        raise ConfigError(
            f"the run was interrupted at agent {name!r}, but would resume at {label!r}: resume the run with the "
            "agents it was started with"
        )
    if has_begun and not agent.resumable:
        raise ConfigError(
            f"agent {label!r}, which has the conversation, cannot resume a run: doing so would repeat finished steps"
        )


def _seen(handoff: Handoff, history: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the part of the conversation that the next agent receives."""
    if handoff.history == "all":
        return history
    return tuple(_question_in(history) if handoff.history == "question" else handoff.history(history))


def _question_in(history: Sequence[Message]) -> list[Message]:
    asked = [message for message in history if message.role == USER]
    return [*(message for message in history if message.role == SYSTEM), *asked[-1:]]
