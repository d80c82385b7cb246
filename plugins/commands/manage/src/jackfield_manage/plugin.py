"""Descriptors of the commands. Listing plugins imports this module, so it imports the plugin API only."""

from __future__ import annotations

from jackfield.plugins import CommandSpec, hook


@hook.commands
def commands() -> list[CommandSpec]:
    """Return the commands that manage an installation."""
    return [
        CommandSpec(
            name="plugins",
            target="jackfield_manage.cli.plugins:main",
            summary="List, check, install and configure plugins.",
            effects=frozenset({"files", "processes"}),
        ),
        CommandSpec(
            name="pipeline",
            target="jackfield_manage.cli.pipeline:main",
            summary="Show the processors around an agent's model, and why in this order.",
        ),
        CommandSpec(
            name="requirements",
            target="jackfield_manage.cli.requirements:main",
            summary="List the packages that an agent needs, for pip install -r.",
        ),
        CommandSpec(
            name="trust",
            target="jackfield_manage.cli.trust:main",
            summary="Show the effects of a project's file, and allow them.",
            effects=frozenset({"files"}),
        ),
        CommandSpec(
            name="news",
            target="jackfield_manage.cli.news:main",
            summary="Report new plugins, and ask if they may load.",
            effects=frozenset({"files"}),
        ),
    ]
