"""The components of this package. Listing plugins imports this module, so it imports nothing but the plugin API."""

from __future__ import annotations

from jackfield.plugins import CommandSpec, hook


@hook.commands
def commands() -> list[CommandSpec]:
    """Return the `index` command."""
    return [
        CommandSpec(
            name="index",
            target="jackfield_index.command:main",
            summary="Keep documents in an index on disk, and search it.",
            actions=("build", "add", "remove", "set", "watch", "list", "info", "search"),
            effects=frozenset({"files", "network"}),
        )
    ]
