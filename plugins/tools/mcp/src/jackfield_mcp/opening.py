"""Open a connection to a server, trying transports in order."""

from __future__ import annotations

from typing import Any

from jackfield_mcp.servers import ServerConfig


async def ways(name: str, server: ServerConfig) -> list[tuple[Any, Any]]:
    """Return the connections to try, in order. For a URL without a type, streamable HTTP comes before SSE."""
    if server.command:
        from jackfield_mcp.stdio import ServerProcess

        process = ServerProcess(server)
        return [(process, process.streams())]
    from jackfield_mcp.remote import RemoteServer

    auth = None
    if server.oauth is not None:
        from jackfield_mcp.access import auth_of

        auth = auth_of(name, server)
    connections = []
    for transport in ("http", "sse") if server.transport == "auto" else (server.transport,):
        remote = RemoteServer(server, auth)
        connections.append((remote, remote.streams(transport)))
    return connections
