"""What this package offers. It is imported to describe it, so it imports only the standard library and the API."""

from __future__ import annotations

from jackfield.plugins import CommandSpec, hook


@hook.commands
def commands() -> list[CommandSpec]:
    """The commands that ask agents."""
    return [
        CommandSpec(
            name="run",
            target="jackfield_terminal.running:main",
            summary="Ask an agent one thing.",
            effects=frozenset({"files", "network"}),
        ),
        CommandSpec(
            name="chat",
            target="jackfield_terminal.chatting:main",
            summary="Talk with an agent.",
            effects=frozenset({"files", "network"}),
        ),
        CommandSpec(
            name="runs",
            target="jackfield_terminal.recorded:main",
            summary="List recorded runs of agents, and go on with them.",
            effects=frozenset({"files", "network"}),
        ),
    ]
