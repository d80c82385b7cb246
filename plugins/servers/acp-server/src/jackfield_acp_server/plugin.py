"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import ServerSpec, hook


@hook.servers
def servers() -> list[ServerSpec]:
    """Return the face `acp`."""
    return [
        ServerSpec(
            name="acp",
            target="jackfield_acp_server.face:AcpServer",
            summary="Serves agents to editors that speak the Agent Client Protocol, over standard input.",
            stdio=True,
        )
    ]
