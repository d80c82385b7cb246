"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import ServerSpec, hook


@hook.servers
def servers() -> list[ServerSpec]:
    """Return the face `a2a`."""
    return [
        ServerSpec(
            name="a2a",
            target="jackfield_a2a.face:A2AServer",
            config="jackfield_a2a.face:A2AServerConfig",
            summary="Serves agents to other agents over A2A, with cards, tasks, streams and approvals.",
        )
    ]
