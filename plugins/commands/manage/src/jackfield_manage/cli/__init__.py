"""The commands: their options and their output."""

from __future__ import annotations

from jackfield.cli import Parser


def parsers() -> dict[str, Parser]:
    """Return the parser of each command."""
    from jackfield_manage.cli import pipeline, plugins, requirements, trust

    return {
        "plugins": plugins.parser(),
        "pipeline": pipeline.parser(),
        "requirements": requirements.parser(),
        "trust": trust.parser(),
    }
