"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import CommandSpec, hook


@hook.commands
def commands() -> list[CommandSpec]:
    """Return the `serve` command."""
    return [
        CommandSpec(
            name="serve",
            target="jackfield_serve.command:main",
            summary="Serve agents over HTTP or standard input.",
        )
    ]
