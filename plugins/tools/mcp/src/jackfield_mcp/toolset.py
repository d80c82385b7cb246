"""The set of tools `mcp`: the offers of configured servers."""

from __future__ import annotations

import asyncio
import logging
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import Field

from jackfield import sync
from jackfield.config import ComponentSettings, Config, PathText
from jackfield.errors import ConfigError, ToolServiceError
from jackfield.plugins import default_host
from jackfield.runs import RunResources
from jackfield.tools import ToolChanges, ToolContext, ToolEntry, Toolset
from jackfield_mcp.expanding import Variables
from jackfield_mcp.listing import Keeper, Listing
from jackfield_mcp.servers import ServerConfig, parse_servers, read_file
from jackfield_mcp.session import Session
from jackfield_mcp.tools import tools_of

_log = logging.getLogger(__name__)

_SHAPES = ("mcpServers", "servers")


class MCPConfig(Config):
    """The servers, in one of the forms that programs use."""

    mcpServers: ComponentSettings | None = Field(  # noqa: N815 - the name that other programs use
        default=None, description="The servers by name, as Qwen-Agent, Claude, Cursor and others have them"
    )
    servers: ComponentSettings | None = Field(default=None, description="The same, as VS Code has it")
    inputs: tuple[Mapping[str, Any], ...] = Field(default=(), description="Values that VS Code asks a person for")
    input_values: ComponentSettings = Field(default_factory=dict, description="The values of `${input:id}`, by id")
    file: PathText | None = Field(default=None, description="A file that has the servers, such as mcp.json")
    cache_folder: PathText | None = Field(
        default=None,
        description="The folder of the cached tool lists; jackfield/mcp below $XDG_CACHE_HOME, or ~/.cache, if unset",
    )


class MCPServers(Toolset):
    """The tools of MCP servers.

    Each run starts the servers that it calls, and ends them with itself. In a `with` (or `async with`), they live as
    long as that, and all agents that have this set share them.
    """

    name = "mcp"
    config_class = MCPConfig
    config: MCPConfig

    def __init__(self, cfg: MCPConfig | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        shapes = [one for one in (*_SHAPES, "file") if getattr(self.config, one) is not None]
        if len(shapes) != 1:
            raise ConfigError("mcp: write the servers as one of 'mcpServers', 'servers' or 'file'")
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] | None = None  # while it is open; used from any loop
        self._parts: list[ServerTools] | None = None

    def fixed_tools(self) -> Sequence[ToolEntry]:
        """Return the tools of servers known from an earlier start, and a set for each other server."""
        if self._parts is None:
            keeper = Keeper(self.config.cache_folder)
            servers = parse_servers(self._given(), variables=self._variables())
            self._parts = [ServerTools(name, server, keeper, self) for name, server in servers.items()]
        return self._parts

    async def tools_of_run(self, context: ToolContext) -> Sequence[ToolEntry]:  # noqa: ARG002 - they are fixed
        """Return the same tools."""
        return self.fixed_tools()

    def shared(self, key: str, make: Callable[[], Session]) -> Session | None:
        """Return the session that all runs share while the set is open; None if each run has its own."""
        with self._lock:
            if self._sessions is None:
                return None
            if key not in self._sessions:
                self._sessions[key] = make()
            return self._sessions[key]

    async def aclose(self) -> None:
        """End the servers that this set owns."""
        with self._lock:
            sessions, self._sessions = self._sessions or {}, None
        await asyncio.gather(*(session.aclose() for session in sessions.values()))

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        with self._lock:
            if self._sessions is not None:
                raise ConfigError("this set of MCP servers is open already: give it to all agents that share it")
            self._sessions = {}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sync.run(self.aclose())

    def _given(self) -> dict[str, Any]:
        config = self.config
        configuration = read_file(config.file) if config.file is not None else {}
        for shape in _SHAPES:
            if getattr(config, shape) is not None:
                configuration = {shape: getattr(config, shape), "inputs": config.inputs}
        return {**configuration, "input_values": config.input_values}

    def _variables(self) -> Variables:
        folder = Path(self.config.file).expanduser().absolute().parent if self.config.file else None
        return Variables(secret=(self.host or default_host()).settings.secret, folder=folder)


class _Known:
    """The list of a server as this process knows it, shared by all copies of the set.

    Attributes:
        listing: The latest list; None if none is known.
        changes: Counts the changes of the list.
        sessions: The sessions that runs have opened for themselves.
    """

    def __init__(self) -> None:
        self.listing: Listing | None = None
        self.changes = ToolChanges()
        self.sessions: weakref.WeakKeyDictionary[RunResources, Session] = weakref.WeakKeyDictionary()

    def reported(self) -> None:
        """Count a change that is listed when the next turn begins."""
        self.changes.report()

    def listed(self, listing: Listing) -> None:
        """Take a list, which may differ from the earlier one."""
        earlier, self.listing = self.listing, listing
        if earlier is not None and listing != earlier:
            self.changes.report()


class ServerTools(Toolset):
    """The tools of one server.

    A run begins with the cached list, and starts no server for it. When the server lists its tools during the run, or
    reports that they changed, the run gets the new ones with its next turn.

    Attributes:
        server: The way to reach it.
    """

    def __init__(self, name: str, server: ServerConfig, keeper: Keeper, owner: MCPServers) -> None:
        super().__init__()
        self.name = name
        self.server = server
        self._identity = server.identity()
        self._keeper = keeper
        self._owner = owner
        self._known = _Known()
        self.changes = self._known.changes

    def fixed_tools(self) -> Sequence[ToolEntry] | None:
        """Return the tools if they are known from an earlier start."""
        listing = self._keeper.load(self._identity)
        if listing is None:
            return None
        self._known.listed(listing)
        return tools_of(self, listing) or None  # without tools, each run asks again

    async def tools_of_run(self, context: ToolContext) -> Sequence[ToolEntry]:
        """Return the tools of the running server, or the cached ones if it is not running. An unknown server is
        started."""
        session = self._owner.shared(self._identity, self._made) or self._known.sessions.get(context.resources)
        if session is not None and session.is_connected():
            try:
                return tools_of(self, await session.listing())
            except ToolServiceError:
                _log.warning("MCP server %r cannot be listed: its kept tools are used", self.name, exc_info=True)
        listing = await sync.in_worker(self._keeper.load, self._identity)
        if listing is not None:
            return tools_of(self, listing)
        context.report(f"connecting to MCP server {self.name!r}")
        return tools_of(self, await (await self.session(context)).listing())

    async def session(self, context: ToolContext) -> Session:
        """Return the session of a run, or of the set while that is open."""
        shared = self._owner.shared(self._identity, self._made)
        if shared is not None:
            shared.watch(self._known)
            return shared
        session = await context.resources.get(f"mcp:{self._identity}", self._opened)
        session.watch(self._known)
        self._known.sessions[context.resources] = session
        return session

    async def _opened(self) -> Session:
        return self._made()

    def _made(self) -> Session:
        return Session(self.name, self.server, self._keeper, self._owner.host or default_host())
