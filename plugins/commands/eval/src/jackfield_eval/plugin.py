"""Descriptor of the command. Listing plugins imports this module, so it imports the plugin API only."""

from __future__ import annotations

from jackfield.plugins import CommandSpec, hook


@hook.commands
def commands() -> list[CommandSpec]:
    """Return the command."""
    return [
        CommandSpec(
            name="eval",
            target="jackfield_eval.command:main",
            summary="Evaluate agents on cases, and compare with the last run.",
            effects=frozenset({"files", "network"}),
        )
    ]
