"""A real PostgreSQL server, one for all tests of this folder; each test has a schema of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.support.postgresql import running_postgresql

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def dsn() -> Iterator[str]:
    """Where the server is."""
    with running_postgresql() as dsn:
        yield dsn


@pytest.fixture
def settings(dsn: str) -> Mapping[str, Any]:
    """The settings of a store of the test's own."""
    return {"dsn": dsn, "db_schema": f"test_{next(_numbers)}", "connections": 4}
