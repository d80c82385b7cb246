"""What this distribution offers. It is imported to describe, so it imports the standard library and the API only."""

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
            target="jackfield_manage.cli.chains:pipeline_main",
            summary="Show the processors around an agent's model, and why in this order.",
        ),
        CommandSpec(
            name="requirements",
            target="jackfield_manage.cli.chains:requirements_main",
            summary="List the distributions that an agent needs, for pip install -r.",
        ),
        CommandSpec(
            name="trust",
            target="jackfield_manage.cli.trust:main",
            summary="Let a project's file do more than forbid, after it was shown.",
            effects=frozenset({"files"}),
        ),
        CommandSpec(
            name="news",
            target="jackfield_manage.cli.newcomers:main",
            summary="Tell what is new among the plugins, and ask whether it may load.",
            effects=frozenset({"files"}),
        ),
    ]
