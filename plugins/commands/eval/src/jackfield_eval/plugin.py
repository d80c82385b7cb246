"""The components of this package. Listing plugins imports this module, so it imports nothing but the plugin API."""

from __future__ import annotations

from jackfield.plugins import CommandSpec, hook


@hook.commands
def commands() -> list[CommandSpec]:
    """Return the `eval` command."""
    return [
        CommandSpec(
            name="eval",
            target="jackfield_eval.command:main",
            summary="Evaluate agents on test cases, and compare the results with the last run.",
            effects=frozenset({"files", "network"}),
        )
    ]
