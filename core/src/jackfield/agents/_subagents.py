"""Agents that work for another agent, either as a nested run within its limits or as a tool."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from jackfield._fitting import check_argument, check_seconds
from jackfield.agents import _asking as asking
from jackfield.errors import ConfigError, InDoubtError, ToolServiceError
from jackfield.events import ApprovalNeeded, RunEvent, RunFinished
from jackfield.jsontext import dumps
from jackfield.messages import USER, FunctionCall, Message, Messages
from jackfield.results import ResultFold, RunResult
from jackfield.runs._run import AgentLike, ParentRun, Run
from jackfield.streams import closing
from jackfield.tools._base import BaseTool, ToolContext, ToolResult
from jackfield.tools._rules import Decision
from jackfield.tools._schema import check_tool_name, tool_name_for

_ALL_EFFECTS = frozenset({"files", "network", "processes"})
_PARAMETERS: Mapping[str, object] = {
    "type": "object",
    "properties": {"request": {"type": "string", "description": "The task, with all the context needed to do it."}},
    "required": ["request"],
}


def run_below(
    agent: AgentLike, messages: Messages, parent: ParentRun | None, **options: Any
) -> AsyncIterator[RunEvent]:
    """Run an agent on behalf of a parent run and yield its events. Usage counts against the limits of both runs.

    Args:
        agent: The agent to run.
        messages: The question, or a conversation.
        parent: The parent run, which waits for this one, or None for an independent run.
        options: Options for `Agent.astream`. Decisions about pending calls are forwarded without `resume`.

    Raises:
        ToolServiceError: The agent is already part of this chain of runs and would call itself endlessly, or its calls
            need approval. If the calls need approval, a recorded parent run pauses as well.
        JackfieldError: The run failed.
    """
    if parent is None:
        return agent.astream(messages, **options)
    return _asked(agent, messages, parent, options, name=agent.name or type(agent).__name__)


async def _asked(
    agent: AgentLike, messages: Messages, parent: ParentRun, options: Mapping[str, object], *, name: str
) -> AsyncIterator[RunEvent]:
    if any(agent is busy for busy in _agents_at_work(parent)):
        raise ToolServiceError(
            f"Agent {agent.name or type(agent).__name__} is already working on this and waiting for you: continue "
            "without it, or say what you need"
        )
    context = parent.run.context
    own: dict[str, Any] = {"resources": context.resources, "deps": context.deps, "approve": approve_of(parent.run)}
    call_id, depth = parent.call_id, parent.depth + 1
    if call_id:
        own["resume"] = _answers(parent, call_id)
    needed: ApprovalNeeded | None = None
    try:
        async with closing(agent.astream(messages, parent=parent, **{**own, **options})) as events:
            async for event in events:
                if event.depth == depth:
                    parent.count(event)
                    if isinstance(event.event, ApprovalNeeded):
                        needed = event.event
                    elif isinstance(event.event, RunFinished) and event.event.stop_reason != "approval_needed":
                        needed = None
                yield event
    except InDoubtError as error:
        _wait_in_doubt(parent, name, error)
        raise
    if needed is None:
        return
    if call_id and parent.run.record is not None:
        parent.waiting[call_id] = _as_below(needed, name, call_id)
    calls = ", ".join(sorted({call.name for call in needed.calls}))
    raise ToolServiceError(
        f"Agent {name} could not continue: its calls to {calls} need approval, but no approver is available"
    )


def _wait_in_doubt(parent: ParentRun, name: str, error: InDoubtError) -> None:
    """Make the parent run ask for approval before an interrupted subagent starts over."""
    call_id = parent.call_id
    if call_id and error.call_id == call_id and not error.is_denied:
        # A record accepts approval only for a call that it contains.
        call = parent.calls.get(call_id) or FunctionCall(name, dumps({"request": error.question}))
        parent.waiting[call_id] = ApprovalNeeded((call,), (call_id,), (call_id,), ("",))


def _agents_at_work(parent: ParentRun | None) -> Iterator[object]:
    while parent is not None:
        yield parent.run.agent
        yield from parent.run.path
        parent = parent.run.parent


def approve_of(run: Run) -> Callable[..., Any] | None:
    """Return the function that approves or denies the run's calls."""
    return run.approve or (run.agent.approve if run.agent else None)


def effects_of(agent: AgentLike) -> frozenset[str]:
    """Return the effects of an agent's tools, or all effects if a toolset does not declare its effects."""
    of_sets = [_ALL_EFFECTS if one.effects is None else one.effects for one in getattr(agent, "toolsets", ())]
    tools: Mapping[str, BaseTool] = getattr(agent, "function_map", {})
    members: Sequence[AgentLike] = getattr(agent, "agents", ())
    return frozenset().union(*of_sets, *(one.safety().effects for one in tools.values()), *map(effects_of, members))


def reachable_agents(agent: AgentLike) -> list[AgentLike]:
    """Return an agent and all agents that it can call or hand over to, without duplicates."""
    reachable: dict[int, AgentLike] = {}
    pending = [agent]
    while pending:
        one = pending.pop(0)
        if id(one) in reachable:
            continue
        reachable[id(one)] = one
        tools: Mapping[str, BaseTool] = getattr(one, "function_map", {})
        pending += [tool.agent for tool in tools.values() if isinstance(tool, AgentTool)]
        pending += [handoff.agent for handoff in getattr(one, "handoffs", ())]
        pending += getattr(one, "agents", ())
    return list(reachable.values())


class AgentTool(BaseTool):
    """Tool that runs an agent; see `Agent.as_tool`."""

    parameters = _PARAMETERS

    def __init__(
        self, agent: AgentLike, *, name: str | None = None, description: str | None = None, timeout_s: float | None
    ) -> None:
        label = f"agent {agent.name or type(agent).__name__!r}"
        check_argument("name", name, str | None, "a string")
        check_argument("description", description, str | None, "a string")
        check_seconds("timeout_s", timeout_s, optional=True)
        self.name = name or (tool_name_for(agent.name) if agent.name else "")
        self.description = description or agent.description
        if not self.name:
            raise ConfigError(f"{label} needs a name to be used as a tool: pass name=")
        if not self.description:
            raise ConfigError(
                f"{label} needs a description to be used as a tool: the description tells the model when to call it"
            )
        check_tool_name(self.name)
        if agent.name and self.name != agent.name and name is None:
            self.description = f"{agent.name}: {self.description}"
        self.timeout_s = timeout_s
        self.effects = effects_of(agent)
        # A failed call may have had effects, so it is not idempotent.
        self.resumable = agent.resumable
        self.agent = agent
        super().__init__()

    async def call(self, params: str | Mapping[str, object], *, context: ToolContext | None = None) -> ToolResult:
        """Run the agent with the request as its question."""
        question = (Message(USER, str(self.parse_arguments(params)["request"])),)
        parent = None if context is None else context.run
        if context is None or not isinstance(parent, ParentRun):
            return _result_of(self.name, await asking.aask(self.agent, question))
        return await self._call_in_run(parent, question)

    async def _call_in_run(self, parent: ParentRun, question: tuple[Message, ...]) -> ToolResult:
        fold, emit = ResultFold(question), parent.pass_up()
        async with closing(_asked(self.agent, question, parent, {}, name=self.name)) as events:
            async for event in events:
                emit(event)
                fold.feed(event)
        return _result_of(self.name, fold.result(str))


def _answers(parent: ParentRun, call_id: str) -> dict[str, Decision]:
    """Return the decisions about the subagent's calls, keyed by call id in the subagent's run."""
    prefix = f"{call_id}/"
    return {one.removeprefix(prefix): said for one, said in parent.answers.items() if one.startswith(prefix)}


def _as_below(needed: ApprovalNeeded, name: str, call_id: str) -> ApprovalNeeded:
    """Return a subagent's pending approvals with the ids and agent names that the parent run reports."""
    deeper = needed.agents or ("",) * len(needed.calls)
    return ApprovalNeeded(
        needed.calls,
        tuple(f"{call_id}/{one}" for one in needed.call_ids),
        tuple(f"{call_id}/{one}" for one in needed.in_doubt),
        tuple(f"{name}/{agent}" if agent else name for agent in deeper),
    )


def _result_of(name: str, result: RunResult[str]) -> ToolResult:
    """Convert a subagent's result to text for the calling agent.

    Raises:
        ToolServiceError: The subagent gave no answer.
    """
    if result.waiting:
        waiting = ", ".join(sorted({call.name for call in result.waiting.values()}))
        raise ToolServiceError(
            f"Agent {name} could not continue: its calls to {waiting} need approval, but no approver is available"
        )
    early = "" if result.stop_reason == "finished" else f"(Agent {name} stopped early: {result.stop_reason}.)"
    if not result.text.strip():
        raise ToolServiceError(early or f"Agent {name} gave no answer")
    return ToolResult(f"{result.text}\n\n{early}" if early else result.text)
