"""The components of this package. Listing plugins imports this module, so it imports nothing but the plugin API."""

from __future__ import annotations

from jackfield.plugins import CommandSpec, hook


@hook.commands
def commands() -> list[CommandSpec]:
    """Return the commands that run agents."""
    return [
        CommandSpec(
            name="run",
            target="jackfield_terminal.run:main",
            summary="Ask an agent one question.",
            effects=frozenset({"files", "network"}),
        ),
        CommandSpec(
            name="chat",
            target="jackfield_terminal.chat:main",
            summary="Talk with an agent.",
            effects=frozenset({"files", "network"}),
        ),
        CommandSpec(
            name="models",
            target="jackfield_terminal.models:main",
            summary="List the models of servers, and choose a default model and aliases.",
            actions=("list", "default", "alias"),
            effects=frozenset({"files", "network"}),
        ),
        CommandSpec(
            name="runs",
            target="jackfield_terminal.runs:main",
            summary="List, search, show, replay and resume recorded runs of agents.",
            actions=("list", "search", "show", "replay", "resume", "recover", "fork", "delete"),
            effects=frozenset({"files", "network"}),
        ),
    ]
