"""The `mcp` toolset: the tools of configured MCP servers."""

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
    """Server configurations, in any of the formats of other programs."""

    mcpServers: ComponentSettings | None = Field(  # noqa: N815 - the name that other programs use
        default=None, description="Servers by name, in the format of Qwen-Agent, Claude, Cursor and others"
    )
    servers: ComponentSettings | None = Field(default=None, description="Servers by name, in the format of VS Code")
    inputs: tuple[Mapping[str, Any], ...] = Field(default=(), description="Inputs that VS Code prompts the user for")
    input_values: ComponentSettings = Field(default_factory=dict, description="Values of `${input:id}`, by id")
    file: PathText | None = Field(default=None, description="File with the servers, such as mcp.json")
    cache_folder: PathText | None = Field(
        default=None,
        description="Folder for cached tool lists; by default, jackfield/mcp in $XDG_CACHE_HOME or ~/.cache",
    )


class MCPServers(Toolset):
    """The tools of MCP servers.

    By default, each run starts the servers it calls and ends them when it ends. Inside a `with` or `async with` block,
    the servers run until the block ends, and all agents that use this toolset share them.
    """

    name = "mcp"
    config_class = MCPConfig
    config: MCPConfig

    def __init__(self, cfg: MCPConfig | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        shapes = [one for one in (*_SHAPES, "file") if getattr(self.config, one) is not None]
        if len(shapes) != 1:
            raise ConfigError("mcp: specify the servers with exactly one of 'mcpServers', 'servers' and 'file'")
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] | None = None  # while it is open; used from any loop
        self._parts: list[ServerTools] | None = None

    def fixed_tools(self) -> Sequence[ToolEntry]:
        """Return a toolset for each server."""
        if self._parts is None:
            keeper = Keeper(self.config.cache_folder)
            servers = parse_servers(self._given(), variables=self._variables())
            self._parts = [ServerTools(name, server, keeper, self) for name, server in servers.items()]
        return self._parts

    async def tools_of_run(self, context: ToolContext) -> Sequence[ToolEntry]:  # noqa: ARG002 - they are fixed
        """Return the toolset of each server, the same for every run."""
        return self.fixed_tools()

    def shared(self, key: str, make: Callable[[], Session]) -> Session | None:
        """Return the session shared by all runs while the toolset is open, or None if each run has its own."""
        with self._lock:
            if self._sessions is None:
                return None
            if key not in self._sessions:
                self._sessions[key] = make()
            return self._sessions[key]

    async def aclose(self) -> None:
        """End the servers that this toolset owns."""
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
                raise ConfigError(
                    "these MCP servers are already open: pass the same toolset to all agents that share them"
                )
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
    """A server's listing as known to this process, shared by all copies of the toolset.

    Attributes:
        listing: The latest listing, or None if there is none.
        changes: Counts changes to the listing.
        sessions: The sessions that individual runs have opened.
    """

    def __init__(self) -> None:
        self.listing: Listing | None = None
        self.changes = ToolChanges()
        self.sessions: weakref.WeakKeyDictionary[RunResources, Session] = weakref.WeakKeyDictionary()

    def reported(self) -> None:
        """Count a reported change. The tools are listed again before the next turn."""
        self.changes.report()

    def listed(self, listing: Listing) -> None:
        """Store a listing, and count a change if it differs from the previous one."""
        earlier, self.listing = self.listing, listing
        if earlier is not None and listing != earlier:
            self.changes.report()


class ServerTools(Toolset):
    """The tools of a single server.

    A run begins with the cached listing and does not start the server for it. When the server is listed during the run
    or reports a change, the new tools are available from the next turn.

    Attributes:
        server: The server's configuration.
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
        """Return the cached tools, or None if the server has not been listed before."""
        listing = self._keeper.load(self._identity)
        if listing is None:
            return None
        self._known.listed(listing)
        return tools_of(self, listing) or None  # without tools, each run asks again

    async def tools_of_run(self, context: ToolContext) -> Sequence[ToolEntry]:
        """Return the tools of the connected server, or else the cached ones.

        A server without a cached listing is started.
        """
        session = self._owner.shared(self._identity, self._made) or self._known.sessions.get(context.resources)
        if session is not None and session.is_connected():
            try:
                return tools_of(self, await session.listing())
            except ToolServiceError:
                _log.warning("cannot list the tools of MCP server %r; using the cached list", self.name, exc_info=True)
        listing = await sync.in_worker(self._keeper.load, self._identity)
        if listing is not None:
            return tools_of(self, listing)
        context.report(f"connecting to MCP server {self.name!r}")
        return tools_of(self, await (await self.session(context)).listing())

    async def session(self, context: ToolContext) -> Session:
        """Return the toolset's shared session while the toolset is open, otherwise the run's own session."""
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
