"""List what a server offers, cache the list between starts, and record which tools are approved.

Each server configuration has a cache file, so building an agent starts no server. When a server is first listed, all of
its tools count as approved, because the author of the configuration chose the server. A tool that is changed or added
later needs human approval before it is called.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from jackfield import sync
from jackfield.errors import ConfigError, ToolServiceError
from jackfield.privatefiles import write_private
from jackfield.tools import check_tool_schema
from jackfield_mcp.servers import ServerConfig

if TYPE_CHECKING:
    from mcp import Client, MCPError
    from mcp_types import ListToolsResult, Tool

    from jackfield_mcp.wire import Entries

_log = logging.getLogger(__name__)

_FORMAT = 3
_MOST_DESCRIPTION = 16_000  # characters; anything longer is not a description
_MOST_PAGES = 1_000  # of one list
_MOST_ENTRIES = 10_000


@dataclass(frozen=True, slots=True)
class Definition:
    """A tool as its server describes it.

    Attributes:
        name: The server's name for the tool.
        description: The description for the model.
        parameters: The JSON schema of the arguments.
        hints: The server's annotations, such as `read_only_hint`.
        as_task: True if the server accepts calls of the tool only as tasks.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    hints: Mapping[str, Any] = field(default_factory=dict)
    as_task: bool = False

    def digest(self) -> str:
        """Return a digest of the name, description, parameters and hints."""
        parts = [self.name, self.description, self.parameters, self.hints]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything a server offers.

    Attributes:
        tools: The tools, in the server's order.
        resources, prompts: True if the server has any.
        approved: The digest of each approved tool, by name.
        left_out: The reason why an entry cannot be used, by entry.
    """

    tools: tuple[Definition, ...] = ()
    resources: bool = False
    prompts: bool = False
    approved: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    def tool(self, name: str) -> Definition | None:
        """Return the tool with this name, or None."""
        return next((tool for tool in self.tools if tool.name == name), None)

    def is_approved(self, tool: Definition) -> bool:
        """Return True if the tool is unchanged since its approval."""
        return self.approved.get(tool.name) == tool.digest()

    def following(self, earlier: Listing | None) -> Listing:
        """Return a copy with the approvals of an earlier listing. Without one, all tools are approved."""
        if earlier is None:
            return replace(self, approved={tool.name: tool.digest() for tool in self.tools})
        return replace(self, approved=earlier.approved)

    def approving(self, tool: Definition) -> Listing:
        """Return a copy in which the tool is approved as it is now."""
        return replace(self, approved={**self.approved, tool.name: tool.digest()})


def sound(name: str, description: object, parameters: object, hints: Mapping[str, Any]) -> Definition:
    """Return a tool definition in a form that models accept.

    Raises:
        ConfigError: The tool's schema is invalid.
    """
    schema = {"type": "object", **_table(parameters)}
    required = [entry for entry in schema.get("required") or () if isinstance(entry, str)]
    # JSON Schema allows requiring a property without describing it; models need both.
    schema["properties"] = {**{name: {} for name in required}, **_table(schema.get("properties"))}
    schema["required"] = required
    check_tool_schema(name, schema)
    text = str(description or "")[:_MOST_DESCRIPTION].encode(errors="replace").decode()
    return Definition(name, text, schema, hints)


def _table(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


class Keeper:
    """Stores server listings in a folder.

    Args:
        folder: The folder. Defaults to `jackfield/mcp` in `$XDG_CACHE_HOME`, or in `~/.cache`.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self._folder = Path(folder).expanduser() if folder else None

    @property
    def folder(self) -> Path:
        """The folder of the cache files."""
        if self._folder is not None:
            return self._folder
        base = os.environ.get("XDG_CACHE_HOME")
        return (Path(base) if base else Path.home() / ".cache").absolute() / "jackfield" / "mcp"

    def load(self, identity: str) -> Listing | None:
        """Return a server's cached listing, or None if it is missing or damaged."""
        try:
            cached = json.loads(self._path(identity).read_bytes())
            if cached["format"] != _FORMAT or cached["server"] != identity:
                return None
            tools = tuple(
                Definition(one["name"], one["description"], one["parameters"], one["hints"], one["as_task"] is True)
                for one in cached["tools"]
            )
            has_resources, has_prompts = cached["resources"] is True, cached["prompts"] is True
            listing = Listing(tools, has_resources, has_prompts, dict(cached["approved"]), dict(cached["left_out"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            _log.warning("cannot read the cached tool list of an MCP server; listing the tools again", exc_info=True)
            return None
        return listing

    def save(self, identity: str, listing: Listing) -> None:
        """Store a server's listing in a file that only the current user may read. A failure is logged, not raised."""
        tools = [
            {
                "name": one.name,
                "description": one.description,
                "parameters": one.parameters,
                "hints": one.hints,
                "as_task": one.as_task,
            }
            for one in listing.tools
        ]
        content = {
            "format": _FORMAT,
            "server": identity,
            "tools": tools,
            "resources": listing.resources,
            "prompts": listing.prompts,
            "approved": listing.approved,
            "left_out": listing.left_out,
        }
        try:
            write_private(self._path(identity), json.dumps(content))
        except OSError:
            _log.warning(
                "cannot cache the tool list of an MCP server; it will be requested at each start", exc_info=True
            )

    def _path(self, identity: str) -> Path:
        return self.folder / f"{identity[:40]}.json"


class _Page(Protocol):
    """A page of a list, as returned by the SDK."""

    @property
    def next_cursor(self) -> str | None:
        """The cursor of the next page. None or '' on the last page."""
        ...


P = TypeVar("P", bound=_Page)
T = TypeVar("T")


async def read_pages(
    fetch: Callable[[str | None], Awaitable[P]], entries_of: Callable[[P], Iterable[T]], *, most: int
) -> tuple[list[T], bool]:
    """Read all pages of a list, in the server's order.

    Args:
        fetch: Fetches the page at a cursor. None is the first page.
        entries_of: Returns the entries of a page.
        most: The number of entries after which no further page is read. The last page is not cut.

    Returns:
        The entries, and True if the list was read to its end. A repeated cursor counts as the end, because the server
            would otherwise repeat its pages forever.
    """
    entries: list[T] = []
    cursors: set[str] = set()
    cursor: str | None = None
    while True:
        page = await fetch(cursor)
        entries += entries_of(page)
        cursor = page.next_cursor or None
        if cursor is None or cursor in cursors:
            return entries, True
        if len(entries) > most or len(cursors) >= _MOST_PAGES:
            return entries, False
        cursors.add(cursor)


async def list_server(client: Client, name: str, server: ServerConfig, left_out: Entries) -> Listing:
    """List everything a server offers.

    Unusable tools are left out. The reasons are logged and included in the listing.

    Raises:
        ToolServiceError: The server offers more tools than `max_tools`.
    """
    from jackfield_mcp.tasks import supports_tasks

    left_out.left_out.clear()
    has_tasks = supports_tasks(client)
    tools: dict[str, Definition] = {}

    def add(page: ListToolsResult) -> None:
        for tool in page.tools:
            if not server.offers(tool.name):
                continue
            if fault := _add_tool(tool, tools, has_tasks=has_tasks):
                left_out.leave_out("tool", tool.name, fault)
            if len(tools) > server.max_tools:
                raise ToolServiceError(
                    f"MCP server {name!r} offers more than {server.max_tools} tools: list the ones you need in "
                    f"'include', such as ['read_*']"
                )

    async def fetch(cursor: str | None) -> ListToolsResult:
        page = await client.list_tools(cursor=cursor)
        await sync.in_worker(add, page)  # a schema of 10,000 values takes a second to check
        return page

    if client.server_capabilities.tools is not None:
        _, is_whole = await read_pages(fetch, lambda page: page.tools, most=_MOST_ENTRIES)
        await sync.in_worker(left_out.check_output_schemas)
        if not is_whole:
            left_out.leave_out_rest("tools", f"the list has more than {_MOST_ENTRIES:,} entries or too many pages")
    resources, prompts = await _has_resources(client), await _has_prompts(client)
    for entry, fault in left_out.left_out.items():
        _log.warning("MCP server %r: skipped the %s: %s", name, entry, fault)
    return Listing(tuple(tools.values()), resources, prompts, left_out=dict(left_out.left_out))


def _add_tool(tool: Tool, tools: dict[str, Definition], *, has_tasks: bool) -> str:
    """Add a tool's definition. If the tool is unusable, return the reason instead."""
    from jackfield_mcp.wire import MOST_LEVELS, TOO_DEEP

    if tool.name in tools:
        return "another tool has the same name"
    as_task = tool.execution is not None and tool.execution.task_support == "required"
    if as_task and not has_tasks:
        return "it can only be called as a task, but the server does not support tasks"
    hints = tool.annotations.model_dump(exclude_none=True) if tool.annotations else {}
    try:
        if TOO_DEEP in json.dumps(tool.input_schema):
            return f"its schema is nested more than {MOST_LEVELS} levels deep"
        definition = replace(sound(tool.name, tool.description, tool.input_schema, hints), as_task=as_task)
        definition.digest()
    except ConfigError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - whatever code that walks through a foreign schema raises
        return f"its schema cannot be read: {type(error).__name__}: {error}"
    tools[tool.name] = definition
    return ""


async def _has_resources(client: Client) -> bool:
    """Return True if there is at least one resource or template. Many servers announce resources but have none."""
    from mcp import MCPError

    if client.server_capabilities.resources is None:
        return False
    try:
        if (await client.list_resources()).resources:
            return True
        return bool((await client.list_resource_templates()).resource_templates)
    except MCPError as error:
        return _refused(error)


async def _has_prompts(client: Client) -> bool:
    from mcp import MCPError

    if client.server_capabilities.prompts is None:
        return False
    try:
        return bool((await client.list_prompts()).prompts)
    except MCPError as error:
        return _refused(error)


def _refused(error: MCPError) -> bool:
    """Treat a refusal as an empty list, but re-raise a lost connection."""
    if error.message == "Connection closed":
        raise error
    return False
