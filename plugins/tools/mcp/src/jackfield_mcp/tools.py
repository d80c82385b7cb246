"""The tools that an agent gets: one per server tool, plus two each for resources and prompts."""

from __future__ import annotations

import hashlib
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from jackfield.errors import ToolServiceError
from jackfield.plugins import Texts
from jackfield.runs import RunResources
from jackfield.tools import BaseTool, ToolContext, ToolResult, says_if_not_awaited
from jackfield_mcp.listing import Definition, Listing, read_pages
from jackfield_mcp.servers import ServerConfig

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT
    from mcp_types import CallToolResult, GetPromptResult, Prompt, ReadResourceResult, Resource, ResourceTemplate

    from jackfield_mcp.session import OpenServer, Session

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_MOST_IN_NAME = 64
_MOST_LISTED = 500
_LIST_RESOURCES: Texts = {
    "en": "List the server's resources: URI, name, type.",
    "zh": "列出服务器的资源：URI、名称、类型。",
}
_READ_RESOURCE: Texts = {"en": "Read one of the server's resources by URI.", "zh": "按 URI 读取服务器的资源。"}
_LIST_PROMPTS: Texts = {
    "en": "List the server's prompts: name, description, arguments.",
    "zh": "列出服务器的提示词：名称、说明、参数。",
}
_GET_PROMPT: Texts = {
    "en": "Get one of the server's prompts by name, with its arguments filled in.",
    "zh": "按名称获取服务器的提示词，并填入参数。",
}
_RESOURCE_PARAMETERS: Mapping[str, object] = {
    "type": "object",
    "properties": {"uri": {"type": "string", "description": "URI of the resource, as returned by list_resources"}},
    "required": ["uri"],
}
_PROMPT_PARAMETERS: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "Name of the prompt, as returned by list_prompts"},
        "arguments": {
            "type": "object",
            "description": "Arguments of the prompt, by name",
            "additionalProperties": {"type": "string"},
        },
    },
    "required": ["name"],
}


class Source(Protocol):
    """Provides the session for a server's tools."""

    name: str
    server: ServerConfig

    async def session(self, context: ToolContext) -> Session:
        """Return the session for a run. Callers must not close it."""


def tools_of(source: Source, listing: Listing) -> list[BaseTool]:
    """Return a server's tools for an agent, with unique names."""
    server, tools = source.server, dict[str, BaseTool]()
    for definition in listing.tools:
        if server.offers(definition.name):
            name = name_of(source.name, definition.name, tools)
            tools[name] = MCPTool(name, definition, source, is_approved=listing.is_approved(definition))
    for kind in _kinds_for(server, listing):
        name = name_of(source.name, kind.own_name)
        if server.offers(kind.own_name) and name not in tools:  # a server's own tool of this name takes precedence
            tools[name] = kind(name, source)
    return list(tools.values())


def _kinds_for(server: ServerConfig, listing: Listing) -> list[type[_ServerTool]]:
    """Return the tool classes for a server's resources and prompts."""
    kinds: list[type[_ServerTool]] = []
    if listing.resources and server.resources:
        kinds += [ListResources, ReadResource]
    if listing.prompts and server.prompts:
        kinds += [ListPrompts, GetPrompt]
    return kinds


def name_of(server: str, tool: str, taken: Mapping[str, object] | None = None) -> str:
    """Return a tool name in the form `server-tool` that every provider accepts.

    If the name is too long or already taken, its end is replaced by a hash of the tool's full name.
    """
    name = _NOT_IN_NAMES.sub("_", f"{server}-{tool}")
    if len(name) > _MOST_IN_NAME or name in (taken or {}):
        sign = hashlib.sha256(tool.encode("utf-8", "replace")).hexdigest()[:8]
        name = f"{name[: _MOST_IN_NAME - 9]}-{sign}"
    return name


class _ServerTool(BaseTool):
    """Base class of tools that call a server."""

    own_name = ""
    params_as_text = False
    schema_is_checked = True  # when it was listed

    def __init__(self, name: str, source: Source) -> None:
        self.name = name
        server = source.server
        super().__init__(server.safety)
        self.source = source
        # A process may do anything the user can, whatever the configuration says.
        self.effects = frozenset({"network", "files", "processes"} if server.command else {"network"})
        if server.call_timeout_s is not None:
            # Its own time-out fires first, with the name of the server.
            self.timeout_s = server.connect_timeout_s + server.list_timeout_s + server.call_timeout_s + 1

    @says_if_not_awaited
    async def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> ToolResult:
        """Call the tool on the server, connecting first if necessary.

        Raises:
            ToolServiceError: The tool or the server failed.
        """
        arguments = self.parse_arguments(params) if isinstance(params, str) else dict(params)
        if context is not None:
            return await self._call_server(await self.source.session(context), arguments, context)
        async with RunResources() as own:  # connections opened for the call are closed after it
            alone: ToolContext = ToolContext(resources=own)
            return await self._call_server(await self.source.session(alone), arguments, alone)

    @abstractmethod
    async def _call_server(self, session: Session, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Call the server, and return the result."""

    @property
    def _what(self) -> str:
        return f"the call to {self.name!r}"


class ChangedError(ToolServiceError):
    """The tool has changed since it was approved. `tool` is its current definition."""

    def __init__(self, server: str, tool: Definition) -> None:
        super().__init__(
            f"MCP server {server!r} has changed its tool {tool.name!r} since it was approved, so nothing was done: "
            f"a person must approve the changed tool",
            code="changed",
        )
        self.tool = tool


class MCPTool(_ServerTool):
    """A server's tool.

    Attributes:
        definition: The tool as the server described it when the agent was built.
    """

    def __init__(self, name: str, definition: Definition, source: Source, *, is_approved: bool = True) -> None:
        self.parameters = definition.parameters
        self.description = definition.description or definition.name
        super().__init__(name, source)
        self.definition = definition
        self.needs_approval = not is_approved

    async def _call_server(self, session: Session, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        from jackfield_mcp.results import of_call

        # The user who approved this call approved the tool as it was described then.
        accepted = self.definition.digest() if self.needs_approval else ""
        try:
            result = await self._sent(session, arguments, context, accepted)
        except ChangedError as changed:
            tool = changed.tool
            shown = {"changed_tool": tool.name, "description": tool.description, "parameters": tool.parameters}
            if not await context.ask(shown):
                raise
            result = await self._sent(session, arguments, context, tool.digest())
        return of_call(result, self.source.name)

    async def _sent(
        self, session: Session, arguments: dict[str, Any], context: ToolContext, accepted: str
    ) -> CallToolResult:
        from jackfield_mcp.tasks import call_as_task

        name = self.definition.name

        async def work(peer: OpenServer) -> CallToolResult:
            if name not in peer.callable:
                await self._check(session, peer, accepted)
            if self.definition.as_task:
                result = await call_as_task(
                    peer.client, name, arguments, progress=_reporting(context), report=context.report
                )
            else:
                result = await peer.client.call_tool(name, arguments, progress_callback=_reporting(context))
            if not result.is_error:
                misfits = await peer.way.entries.misfits_of_output(name, result.structured_content)
                if misfits:
                    raise RuntimeError(f"the result does not match the output schema: {'; '.join(misfits)}")
            return result

        return await session.do(
            work,
            what=self._what,
            timeout_s=self.source.server.call_timeout_s,
            asker=context,
        )

    async def _check(self, session: Session, peer: OpenServer, accepted: str) -> None:
        """Check that the tool still exists and is approved as it is now.

        Raises:
            ChangedError: The tool has changed since it was approved.
            ToolServiceError: The server no longer has the tool.
        """
        listing = await session.listing_of(peer)
        tool = listing.tool(self.definition.name)
        if tool is None:
            raise ToolServiceError(f"MCP server {session.name!r} no longer offers the tool {self.definition.name!r}")
        if not listing.is_approved(tool):
            if tool.digest() != accepted:
                raise ChangedError(session.name, tool)
            await session.approve(peer, tool)
        if peer.listing is not None:  # otherwise the server has reported another change, so the next call checks again
            peer.callable.add(tool.name)


def _reporting(context: ToolContext) -> ProgressFnT:
    """Return a callback that forwards the server's progress to the run."""

    async def report(progress: float, total: float | None, message: str | None) -> None:
        done = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
        context.report(f"{done}: {message}" if message else done)

    return report


class ListResources(_ServerTool):
    """Lists a server's resources."""

    own_name = "list_resources"
    description = _LIST_RESOURCES
    read_only = True

    async def _call_server(self, session: Session, arguments: dict[str, Any], context: ToolContext) -> ToolResult:  # noqa: ARG002
        async def work(peer: OpenServer) -> tuple[list[str], bool]:
            client = peer.client
            resources, has_all = await read_pages(
                lambda cursor: client.list_resources(cursor=cursor),
                lambda page: [_line(resource.uri, resource) for resource in page.resources],
                most=_MOST_LISTED,
            )
            templates, has_all_templates = await read_pages(
                lambda cursor: client.list_resource_templates(cursor=cursor),
                lambda page: [_line(template.uri_template, template) for template in page.resource_templates],
                most=_MOST_LISTED,
            )
            return [*resources, *templates], has_all and has_all_templates

        lines = await session.do(work, what=self._what, timeout_s=self.source.server.list_timeout_s, again=True)
        return _listing(*lines, "The server has no resources.", session.name)


class ReadResource(_ServerTool):
    """Reads one of a server's resources."""

    own_name = "read_resource"
    description = _READ_RESOURCE
    parameters = _RESOURCE_PARAMETERS
    read_only = True

    async def _call_server(self, session: Session, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        from jackfield_mcp.results import of_resource

        async def work(peer: OpenServer) -> ReadResourceResult:
            return await peer.client.read_resource(arguments["uri"])

        limit = self.source.server.call_timeout_s
        return of_resource(
            await session.do(work, what=self._what, timeout_s=limit, again=True, asker=context), session.name
        )


class ListPrompts(_ServerTool):
    """Lists a server's prompts."""

    own_name = "list_prompts"
    description = _LIST_PROMPTS
    read_only = True

    async def _call_server(self, session: Session, arguments: dict[str, Any], context: ToolContext) -> ToolResult:  # noqa: ARG002
        async def work(peer: OpenServer) -> tuple[list[str], bool]:
            client = peer.client
            return await read_pages(
                lambda cursor: client.list_prompts(cursor=cursor),
                lambda page: [_prompt_line(prompt) for prompt in page.prompts],
                most=_MOST_LISTED,
            )

        lines = await session.do(work, what=self._what, timeout_s=self.source.server.list_timeout_s, again=True)
        return _listing(*lines, "The server has no prompts.", session.name)


class GetPrompt(_ServerTool):
    """Returns one of a server's prompts with its arguments filled in."""

    own_name = "get_prompt"
    description = _GET_PROMPT
    parameters = _PROMPT_PARAMETERS
    read_only = True

    async def _call_server(self, session: Session, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        from jackfield_mcp.results import of_prompt

        async def work(peer: OpenServer) -> GetPromptResult:
            return await peer.client.get_prompt(arguments["name"], arguments.get("arguments"))

        limit = self.source.server.call_timeout_s
        return of_prompt(
            await session.do(work, what=self._what, timeout_s=limit, again=True, asker=context), session.name
        )


def _line(uri: str, resource: Resource | ResourceTemplate) -> str:
    kind = f" ({resource.mime_type})" if resource.mime_type else ""
    return f"{uri}: {resource.title or resource.name}{kind}"


def _prompt_line(prompt: Prompt) -> str:
    arguments = [f"{one.name}{'' if one.required else ' (optional)'}" for one in prompt.arguments or ()]
    description = f": {prompt.description}" if prompt.description else ""
    named = ", ".join(arguments)
    return f"{prompt.name}{description}{f' [arguments: {named}]' if named else ''}"


def _listing(lines: Sequence[str], has_all: bool, nothing: str, server: str) -> ToolResult:
    more = len(lines) - _MOST_LISTED
    rest = []
    if not has_all:
        rest = ["… and more, not listed"]
    elif more > 0:
        rest = [f"… and {more} more"]
    return ToolResult("\n".join([*lines[:_MOST_LISTED], *rest]) or nothing, {"server": server})
