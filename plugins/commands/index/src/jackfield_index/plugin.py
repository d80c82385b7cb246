"""What this distribution offers. It is imported to describe, so it imports the standard library and the API only."""

from __future__ import annotations

from jackfield.plugins import CommandSpec, hook


@hook.commands
def commands() -> list[CommandSpec]:
    """The command."""
    return [
        CommandSpec(
            name="index",
            target="jackfield_index.command:main",
            summary="Keep documents in an index on disk, and search it.",
            effects=frozenset({"files", "network"}),
        )
    ]
