"""Serve agents as tools of an MCP server: the face `mcp`."""

from __future__ import annotations

import re
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from typing import Any, ClassVar, cast

from mcp.server.lowlevel import Server as ProtocolServer
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import Field
from starlette.routing import Route, Router

from jackfield.config import Config
from jackfield.errors import ConfigError
from jackfield.servers import ASGIApp, HttpServer, Refusal, ServingLike, StdioServer, write_json
from jackfield_mcp_server.errors import error_data
from jackfield_mcp_server.pipes import open_pipes
from jackfield_mcp_server.prompts import AgentPrompts
from jackfield_mcp_server.requests import CheckedRequests
from jackfield_mcp_server.resources import AgentResources
from jackfield_mcp_server.tools import AgentTools, direct_tools
from jackfield_serving import Serving

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_MAX_BODY_BYTES = 1 << 40  # in effect unlimited, because the HTTP server has its own limit


class McpServerConfig(Config):
    """Settings of the face `mcp`."""

    sessions: bool = Field(
        default=True,
        description="Keep sessions for clients with a protocol version before 2026-07-28. Such clients need a "
        "session to "
        "answer approvals and to cancel calls. Set to false to serve them from several processes",
    )
    tools: bool = Field(
        default=False,
        description="Also offer the agents' tools individually: as TOOL with a single agent, otherwise as AGENT__TOOL. "
        "Approvals apply to them as well",
    )
    documents: bool = Field(
        default=False,
        description="Offer the agents' documents as resources. Clients can then read whole documents, not only the "
        "passages that answers cite",
    )
    idle_s: float = Field(
        default=1800.0, gt=0, description="Time after which a session without requests ends, in seconds"
    )


class McpServer(HttpServer, StdioServer):
    """Face that serves each agent as a tool to any MCP host."""

    name: ClassVar[str] = "mcp"
    config_class = McpServerConfig
    config: McpServerConfig
    paths = ("/mcp",)
    _manager: StreamableHTTPSessionManager | None = None

    def __init__(self, cfg: Config | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        self.one_process = "sessions=false" if self.config.sessions else ""

    def app(self, serving: ServingLike) -> ASGIApp:
        """Return the ASGI application."""
        self._manager = StreamableHTTPSessionManager(
            _protocol_server(cast(Serving, serving), self.config),
            stateless=not self.config.sessions,
            session_idle_timeout=self.config.idle_s,
            max_request_body_size=_MAX_BODY_BYTES,
            # Hosts and origins were checked before the request reached the face.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        requests = CheckedRequests(self._manager.handle_request)
        return Router([Route("/mcp", requests, methods=["GET", "POST", "DELETE"])], redirect_slashes=False)

    def running(self) -> AbstractAsyncContextManager[None]:
        """Return the context manager within which the application can open sessions."""
        assert self._manager is not None  # noqa: S101 - the application is made first
        return self._manager.run()

    def refusal(self, refusal: Refusal) -> tuple[str, bytes]:
        """Return a JSON-RPC error as a content type and a body."""
        error = error_data(refusal).model_dump(exclude_none=True)
        return "application/json", write_json({"jsonrpc": "2.0", "id": None, "error": error})

    async def talk(self, serving: ServingLike, reader: StreamReader, writer: StreamWriter) -> None:
        """Serve one client until it disconnects, then cancel its unfinished calls."""
        server = _protocol_server(cast(Serving, serving), self.config)
        async with open_pipes(reader, writer) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())


def _protocol_server(serving: Serving, config: McpServerConfig) -> ProtocolServer[None]:
    tools = AgentTools(serving, direct_tools(serving) if config.tools else {})
    resources, prompts = AgentResources(serving, has_documents=config.documents), AgentPrompts(serving)
    for name in tools.names:
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{name!r} is not a valid MCP tool name: use 1 to 128 letters, digits, '_', '-' or '.'")
    return ProtocolServer(
        "jackfield",
        version=version("jackfield-mcp-server"),
        lifespan=_no_lifespan,
        on_list_tools=tools.list_tools,
        on_call_tool=tools.call_tool,
        on_list_resources=resources.list_resources,
        on_list_resource_templates=resources.list_templates,
        on_read_resource=resources.read,
        on_list_prompts=prompts.list_prompts if prompts else None,
        on_get_prompt=prompts.get_prompt if prompts else None,
    )


@asynccontextmanager
async def _no_lifespan(_: object) -> AsyncIterator[None]:
    yield
