"""Descriptor of the command. Listing plugins imports this module, so it imports the plugin API only."""

from __future__ import annotations

from jackfield.plugins import CommandSpec, hook


@hook.commands
def commands() -> list[CommandSpec]:
    """Return the command."""
    return [
        CommandSpec(
            name="new",
            target="jackfield_new.command:main",
            summary="Create a working plugin, with tests and workflows that test and publish it.",
            effects=frozenset({"files"}),
        )
    ]
