"""What this package offers. It is imported to describe, so it imports the standard library and the API only."""

from __future__ import annotations

from jackfield.plugins import CommandSpec, hook


@hook.commands
def commands() -> list[CommandSpec]:
    """The command."""
    return [
        CommandSpec(
            name="new",
            target="jackfield_new.command:main",
            summary="Make a working plugin, with tests, and workflows that test and publish it.",
            effects=frozenset({"files"}),
        )
    ]
