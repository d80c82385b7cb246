"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import CommandSpec, ServerSpec, hook


@hook.servers
def servers() -> list[ServerSpec]:
    """Return the face `web`."""
    return [
        ServerSpec(
            name="web",
            target="jackfield_web.face:WebServer",
            summary="Serves a web page for talking to agents, following their work, approving calls and finding "
            "conversations.",
        )
    ]


@hook.commands
def commands() -> list[CommandSpec]:
    """Return the `web` command."""
    return [
        CommandSpec(
            name="web",
            target="jackfield_web.command:main",
            summary="Talk to agents on a web page.",
        )
    ]
