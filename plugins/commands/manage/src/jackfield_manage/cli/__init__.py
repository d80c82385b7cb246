"""Implement the commands: their options and output."""

from __future__ import annotations

from jackfield.cli import Parser


def parsers() -> dict[str, Parser]:
    """Return the argument parser of each command."""
    from jackfield_manage.cli import pipeline, plugins, requirements, trust

    return {
        "plugins": plugins.parser(),
        "pipeline": pipeline.parser(),
        "requirements": requirements.parser(),
        "trust": trust.parser(),
    }
