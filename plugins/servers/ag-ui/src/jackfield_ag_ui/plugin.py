"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import ServerSpec, hook


@hook.servers
def servers() -> list[ServerSpec]:
    """Return the face `ag-ui`."""
    return [
        ServerSpec(
            name="ag-ui",
            target="jackfield_ag_ui.face:AGUIServer",
            config="jackfield_ag_ui.face:AGUIServerConfig",
            summary="Serves agents to AG-UI front ends, with tool calls, nested agents, state and approvals.",
        )
    ]
