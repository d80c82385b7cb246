"""The components of this package. Listing plugins imports this module, so it imports nothing but the plugin API."""

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
            actions=(
                "list",
                "info",
                "search",
                "doctor",
                "enable",
                "disable",
                "install",
                "uninstall",
                "freeze",
                "sync",
                "why",
                "bisect",
            ),
            effects=frozenset({"files", "processes"}),
        ),
        CommandSpec(
            name="pipeline",
            target="jackfield_manage.cli.pipeline:main",
            summary="Show the processors around an agent's model, and the reasons for their order.",
        ),
        CommandSpec(
            name="requirements",
            target="jackfield_manage.cli.requirements:main",
            summary="List the packages that an agent needs, for pip install -r.",
        ),
        CommandSpec(
            name="trust",
            target="jackfield_manage.cli.trust:main",
            summary="Show the effects of a project's file and allow them.",
            effects=frozenset({"files"}),
        ),
        CommandSpec(
            name="keys",
            target="jackfield_manage.cli.keys:main",
            summary="Store API keys in the system keyring or a private file.",
            actions=("list", "set", "remove"),
            effects=frozenset({"files"}),
        ),
        CommandSpec(
            name="completion",
            target="jackfield_manage.cli.completion:main",
            summary="Print the completion script for bash, zsh or fish.",
        ),
        CommandSpec(
            name="news",
            target="jackfield_manage.cli.news:main",
            summary="Report new plugins and ask whether they may load.",
            effects=frozenset({"files"}),
        ),
    ]
