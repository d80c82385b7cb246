"""The commands: what they take, and what they print."""

from __future__ import annotations

from jackfield.cli import Parser


def parsers() -> dict[str, Parser]:
    """What each of the commands takes, by its name."""
    from jackfield_manage.cli import chains, plugins, trust

    return {
        "plugins": plugins.parser(),
        "pipeline": chains.pipeline_parser(),
        "requirements": chains.requirements_parser(),
        "trust": trust.parser(),
    }
