"""What this package offers. It is imported to describe, so it imports the standard library and the API only."""

from __future__ import annotations

from jackfield.plugins import CommandSpec, hook


@hook.commands
def commands() -> list[CommandSpec]:
    """The commands about an installation."""
    return [
        CommandSpec(
            name="plugins",
            target="jackfield_manage.cli.plugins:main",
            summary="What is installed, whether it works, and what may load.",
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
            summary="Show a project's file, and let it do more than forbid.",
            effects=frozenset({"files"}),
        ),
        CommandSpec(
            name="news",
            target="jackfield_manage.cli.news:main",
            summary="Report new plugins, and ask whether they may load.",
            effects=frozenset({"files"}),
        ),
    ]
