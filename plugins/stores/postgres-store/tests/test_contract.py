"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any

import pytest

from jackfield_postgres import Database
from jackfield_testkit.suites import PluginSuite, StoreSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-postgres-store"


class TestStore(StoreSuite):
    component = "jackfield-postgres-store/postgres"

    @pytest.fixture
    def settings(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**settings, "timeout_s": 5}

    @pytest.fixture
    def outage(self, settings: Mapping[str, Any]) -> Callable[[], AbstractContextManager[None]]:
        @contextmanager
        def locked() -> Iterator[None]:
            other = Database(settings["dsn"], timeout_s=60)
            with closing(other.connect()) as connection:
                # It waits for what is being written, and lock_timeout is short in a store whose server must be quick.
                connection.run(f"BEGIN; LOCK TABLE {settings['db_schema']}.jackfield_runs IN EXCLUSIVE MODE")
                yield
                connection.run("ROLLBACK")

        return locked
