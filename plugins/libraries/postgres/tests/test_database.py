"""Addresses and connections, at a real server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from jackfield.errors import ConfigError, ToolServiceError
from jackfield_postgres import Address, Database, alone_in
from tests.support.postgresql import running_postgresql


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with running_postgresql() as dsn:
        yield dsn


def test_an_address_shows_no_password() -> None:
    address = Address.parse("postgresql://ada:hush@db.example.org:5433/notes")
    assert str(address) == "db.example.org:5433/notes"
    assert "hush" not in repr(address)


@pytest.mark.parametrize(
    "dsn", ["mysql://a@b/c", "postgresql:///only-a-name", "postgresql://a@b/c?colour=red", "postgresql://a:b@[c"]
)
def test_what_is_no_address_is_refused_without_being_shown(dsn: str) -> None:
    with pytest.raises(ConfigError, match="the DSN") as caught:
        Address.parse(dsn)
    assert dsn not in str(caught.value)


def test_settings_hold_for_each_connection(dsn: str) -> None:
    database = Database(dsn, timeout_s=60, settings="SET application_name = 'clerk'")
    assert database.ask("SHOW application_name") == [["clerk"]]
    database.close()


def test_a_transaction_that_fails_leaves_nothing(dsn: str) -> None:
    database = Database(dsn, timeout_s=60)
    with suppress(ToolServiceError), database.use() as connection, connection.transaction():
        connection.run("CREATE TABLE half (n integer)")
        connection.run("SELECT 1 / 0")
    assert database.ask("SELECT count(*) FROM pg_class WHERE relname = 'half'") == [[0]]
    database.close()


def test_of_two_that_want_to_be_alone_one_waits(dsn: str) -> None:
    database = Database(dsn, timeout_s=60)
    order: list[str] = []

    def second() -> None:
        with database.use() as connection, alone_in(connection, "house"):
            order.append("second")

    with database.use() as connection, alone_in(connection, "house"):
        thread = threading.Thread(target=second)
        thread.start()
        connection.run("SELECT pg_sleep(0)")
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    database.close()
