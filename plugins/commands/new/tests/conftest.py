"""The template, and answers to its questions."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

import pytest

from jackfield_new.questions import Question, read_questions


@pytest.fixture(scope="session")
def template() -> Traversable:
    """The template as it travels with the distribution."""
    return files("jackfield_new") / "template"


@pytest.fixture(scope="session")
def questions(template: Traversable) -> list[Question]:
    """What it asks."""
    return read_questions(template)
