"""The components of this package. Listing plugins imports this module, so it imports nothing but the plugin API."""

from __future__ import annotations

from jackfield.plugins import CommandSpec, hook


@hook.commands
def commands() -> list[CommandSpec]:
    """Return the `new` command."""
    return [
        CommandSpec(
            name="new",
            target="jackfield_new.command:main",
            summary="Create a working plugin, with tests and workflows that test and publish it.",
            effects=frozenset({"files"}),
        )
    ]
