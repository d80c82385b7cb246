"""The fake server as a pytest fixture. In a `conftest.py`: `pytest_plugins = ["jackfield_testkit.fixtures"]`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jackfield_testkit.server import FakeOpenAI


@pytest.fixture
def fake_openai() -> Iterator[FakeOpenAI]:
    """A running server with an empty script, of this test alone."""
    with FakeOpenAI() as server:
        yield server
