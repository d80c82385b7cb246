"""Provide the fake server as a pytest fixture, and block the network in every test.

Usage in `conftest.py`: `pytest_plugins = ["jackfield_testkit.fixtures"]`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from jackfield_testkit.network import MARK, blocked, is_live, offline
from jackfield_testkit.server import FakeOpenAI


def pytest_configure(config: pytest.Config) -> None:
    """Register the `live` marker."""
    config.addinivalue_line("markers", f"{MARK}: the test may access other machines, for example to call a real model")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Block the network for module and session fixtures as well, which run before the test's own fixtures."""
    if is_live(item):
        return (yield)
    with blocked(item.nodeid):
        return (yield)


@pytest.fixture(autouse=True)
def _stay_on_this_machine(request: pytest.FixtureRequest) -> Iterator[None]:
    with offline(request.node):
        yield


@pytest.fixture
def fake_openai() -> Iterator[FakeOpenAI]:
    """Yield a running server with an empty script, for this test only."""
    with FakeOpenAI() as server:
        yield server
