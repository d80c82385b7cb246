"""What this package offers. It is imported to describe it, so it imports only the standard library and the API."""

from __future__ import annotations

from jackfield.plugins import CommandSpec, hook


@hook.commands
def commands() -> list[CommandSpec]:
    """The command."""
    return [
        CommandSpec(
            name="eval",
            target="jackfield_eval.command:main",
            summary="Evaluate agents on cases, and compare with the last run.",
            effects=frozenset({"files", "network"}),
        )
    ]
