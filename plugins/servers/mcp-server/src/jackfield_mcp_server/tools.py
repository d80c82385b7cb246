"""Offer agents as tools: each call starts a run, follows it to its end, and returns the answer."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    Tool,
    ToolAnnotations,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from jackfield.errors import ConfigError, JackfieldError
from jackfield.events import PluginEvent, ToolFinished
from jackfield.jsontext import dumps
from jackfield.messages import FunctionCall, Message
from jackfield.results import Source, sources_in
from jackfield.servers import owner_of
from jackfield.streams import closing
from jackfield_mcp_server.errors import errors_of_protocol
from jackfield_mcp_server.progress import Progress
from jackfield_mcp_server.questions import Asker, PersonsAnswer, read_answers, requests_of
from jackfield_mcp_server.resources import Passages
from jackfield_mcp_server.results import OUTPUT_SCHEMA, refused_arguments, result_of, result_of_call
from jackfield_serving import QUESTION, NotWaitingError, Serving, ToolInfo

_Context = ServerRequestContext[Any, Any]
_INPUT_SCHEMA = {
    "type": "object",
    "properties": {
        "message": {"type": "string", "description": "The question or task, with everything needed to understand it."},
        "conversation": {
            "type": "string",
            "description": "The `conversation` of an earlier answer, to continue it. Omit to start a new conversation.",
        },
    },
    "required": ["message"],
    "additionalProperties": False,
}


@dataclass(slots=True, kw_only=True)
class _Call:
    """A tool call and the run that answers it.

    Attributes:
        run_id, owner: The run's id and owner.
        progress: Reports the run's progress.
        asker: Asks the client.
        number: The number of the last event read.
        seen: The number of the last event reported to the client.
        sources: The sources shown to the agent.
        passages: The passages cited by the answer.
        notes: Notes to append to the answer.
        tool: The tool that the client calls directly, or None if it asks the agent.
        is_failed: True if this direct call failed.
    """

    run_id: str
    owner: str
    progress: Progress
    asker: Asker
    number: int = 0
    seen: int = 0
    sources: list[Source] = field(default_factory=list)
    passages: Passages = field(default_factory=Passages)
    notes: list[str] = field(default_factory=list)
    tool: DirectTool | None = None
    is_failed: bool = False


@dataclass(frozen=True, slots=True)
class DirectTool:
    """An agent's tool that clients can call directly."""

    agent: str
    tool: ToolInfo


def direct_tools(serving: Serving) -> dict[str, DirectTool]:
    """Return the tools of all agents, by the names that clients use.

    Raises:
        ConfigError: A tool and an agent have the same name.
    """
    is_alone = len(serving.agents) == 1
    tools = {
        tool.name if is_alone else f"{agent}__{tool.name}": DirectTool(agent, tool)
        for agent in serving.agents
        for tool in serving.tools(agent)
    }
    if clash := tools.keys() & serving.agents.keys():
        raise ConfigError(f"an agent and a tool are both named {min(clash)!r}: rename the agent")
    return tools


class AgentTools:
    """Request handlers for tools.

    Args:
        serving: The agents and their runs.
        direct: The agents' tools that are offered individually, by the names that clients use.
    """

    def __init__(self, serving: Serving, direct: Mapping[str, DirectTool]) -> None:
        self._serving, self._direct = serving, direct

    @property
    def names(self) -> list[str]:
        """The names of all tools."""
        return [*self._serving.agents, *self._direct]

    async def list_tools(self, context: _Context, params: PaginatedRequestParams | None) -> ListToolsResult:  # noqa: ARG002
        """Return the agents, followed by the tools that are offered individually."""
        tools = [
            Tool(
                name=name,
                description=agent.description or f"Asks the agent {name}.",
                input_schema=_INPUT_SCHEMA,
                output_schema=OUTPUT_SCHEMA,
            )
            for name, agent in self._serving.agents.items()
        ]
        tools += [
            Tool(
                name=name,
                description=direct.tool.description,
                input_schema=dict(direct.tool.parameters),
                annotations=ToolAnnotations(read_only_hint=direct.tool.read_only),
            )
            for name, direct in self._direct.items()
        ]
        return ListToolsResult(tools=tools)

    async def call_tool(self, context: _Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        """Ask an agent, or call one of its tools directly. Cancelling the request cancels the run.

        In protocol versions since 2026-07-28, a call that needs answers from the client returns its questions. The
        client repeats the call with the answers, and the same run continues.

        Raises:
            MCPError: There is no tool with this name, or the service refuses the run.
        """
        direct = self._direct.get(params.name)
        if direct is None and params.name not in self._serving.agents:
            raise MCPError(INVALID_PARAMS, f"unknown tool {params.name!r}: list the tools to find valid names")
        request = context.request
        owner = owner_of(request.scope) if isinstance(request, Request) else ""
        call = _Call(run_id="", owner=owner, progress=Progress(context.session, params.name), asker=Asker(context))
        call.tool = direct
        is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        with errors_of_protocol():
            if params.request_state is not None:
                call.run_id, call.seen = _read_state(params.request_state)
                if params.input_responses:
                    await self._answer(call, read_answers(params.input_responses))
                async with self._cancelling(call):
                    return await self._follow(call, is_modern=is_modern)
            arguments = params.arguments or {}
            if direct is None and (reason := refused_arguments(arguments)):
                return CallToolResult(content=reason, is_error=True)
            call.run_id = uuid.uuid4().hex
            async with self._cancelling(call):
                await self._start(call, params.name, arguments)
                return await self._follow(call, is_modern=is_modern)

    async def _start(self, call: _Call, name: str, arguments: Mapping[str, Any]) -> None:
        if call.tool is None:
            agent, question, wanted = name, arguments["message"], None
        else:
            agent, wanted = call.tool.agent, FunctionCall(call.tool.tool.name, dumps(arguments))
            question = f"Call {wanted.name} with {wanted.arguments}"
        await self._serving.start(
            agent,
            [Message("user", question)],
            run_id=call.run_id,
            owner=call.owner,
            continues=arguments.get("conversation", "") if wanted is None else "",
            takes_questions=call.asker.can_ask,
            call=wanted,
        )

    async def _follow(self, call: _Call, *, is_modern: bool) -> CallToolResult | InputRequiredResult:
        while True:
            await self._read_events(call)
            run = await self._serving.run(call.run_id, owner=call.owner)
            if run.phase == "ended":
                if call.tool is not None:
                    return result_of_call(run, call.sources, call.notes, is_failed=call.is_failed)
                return result_of(run, call.sources, call.notes, call.passages.links(run.run_id))
            if not run.waiting:
                continue  # another client has answered it
            if is_modern and call.asker.can_ask:
                state = f"{call.run_id}.{call.number}"
                return InputRequiredResult(input_requests=requests_of(run.waiting), request_state=state)
            answers, refused = await call.asker.ask(run.waiting)
            call.notes += refused
            await self._answer(call, answers)

    async def _read_events(self, call: _Call) -> None:
        """Read a run's events until it ends, pauses or asks a question."""
        events = self._serving.attach(call.run_id, after=call.number, owner=call.owner)
        async with closing(events):
            async for number, event in events:
                call.number = number
                inner = event.event
                call.passages.feed(event)
                if isinstance(inner, ToolFinished):
                    call.sources += sources_in(inner.metadata)
                    call.is_failed = bool(inner.error) if event.depth == 0 else call.is_failed
                elif isinstance(inner, PluginEvent):
                    call.sources += sources_in(inner.data)
                if number > call.seen:
                    await call.progress.report(event)
                    if isinstance(inner, PluginEvent) and inner.name == QUESTION:
                        return

    async def _answer(self, call: _Call, answers: Mapping[str, PersonsAnswer]) -> None:
        """Answer a run's questions, unless another client was faster. Without answers, cancel the run."""
        if not answers:
            await self._serving.cancel(call.run_id, owner=call.owner)
            return
        try:
            await self._serving.answer(call.run_id, answers, owner=call.owner)
        except NotWaitingError:  # some answers are to questions that are not pending
            run = await self._serving.run(call.run_id, owner=call.owner)
            wanted = {one.call_id: answers[one.call_id] for one in run.waiting if one.call_id in answers}
            if wanted:
                with suppress(NotWaitingError):
                    await self._serving.answer(call.run_id, wanted, owner=call.owner)

    @asynccontextmanager
    async def _cancelling(self, call: _Call) -> AsyncIterator[None]:
        """Cancel the run if the request fails or is cancelled."""
        try:
            yield
        except BaseException:
            with anyio.CancelScope(shield=True), suppress(JackfieldError):
                await self._serving.cancel(call.run_id, owner=call.owner)
            raise


def _read_state(state: str) -> tuple[str, int]:
    """Return the run id and event number from the state of a repeated call.

    Raises:
        MCPError: The state was not issued by this face.
    """
    run_id, _, number = state.rpartition(".")
    if not run_id or not number.isdecimal() or len(number) > 20:
        raise MCPError(INVALID_PARAMS, "requestState was not issued by this server: start the call again")
    return run_id, int(number)
