"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any, ClassVar

import pytest

from jackfield_testkit.suites import PluginSuite, StoreSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-sqlite-store"


class TestStore(StoreSuite):
    component = "jackfield-sqlite-store/sqlite"
    config: ClassVar[Mapping[str, Any]] = {"path": "runs.sqlite", "timeout_s": 1.0}

    @pytest.fixture
    def limits(self) -> Mapping[str, Any]:
        return {"max_mb": 0.02}

    @pytest.fixture
    def outage(self) -> Callable[[], AbstractContextManager[None]]:
        @contextmanager
        def locked() -> Iterator[None]:
            with closing(sqlite3.connect("runs.sqlite", isolation_level=None, check_same_thread=False)) as other:
                other.execute("BEGIN IMMEDIATE")
                yield
                other.execute("ROLLBACK")

        return locked
