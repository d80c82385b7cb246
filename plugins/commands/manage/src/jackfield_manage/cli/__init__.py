"""The commands: what they take, and what they print."""

from __future__ import annotations

from jackfield.cli import Parser


def parsers() -> dict[str, Parser]:
    """What each of the commands takes, by its name."""
    from jackfield_manage.cli import pipeline, plugins, requirements, trust

    return {
        "plugins": plugins.parser(),
        "pipeline": pipeline.parser(),
        "requirements": requirements.parser(),
        "trust": trust.parser(),
    }
