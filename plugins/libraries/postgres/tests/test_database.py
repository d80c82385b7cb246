"""Addresses and connections, at a real server."""

from __future__ import annotations

import json
import os
import socket
import ssl
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import quote

import pytest
from pg8000.exceptions import DatabaseError, InterfaceError

from jackfield.errors import ConfigError, ToolServiceError
from jackfield_postgres import Address, Database, LostConnectionError, alone_in, is_passing
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
    ("dsn", "expected"),
    [
        ("postgresql://ada:hu%40sh@db.example.org:5433/no%20tes", ("db.example.org", 5433, "no tes", "ada", "hu@sh")),
        ("postgres://a%2Fda@db.example.org/notes", ("db.example.org", 5432, "notes", "a/da", None)),
        ("postgresql://ada:@db.example.org", ("db.example.org", 5432, "ada", "ada", "")),
        ("postgresql://db.example.org/notes", ("db.example.org", 5432, "notes", "clerk", None)),
        ("postgresql://ada@db.example.org/notes?host=%2Frun%2Fpg", ("/run/pg", 5432, "notes", "ada", None)),
        ("postgresql://ada@%2Frun%2Fpg:5433/notes", ("/run/pg", 5433, "notes", "ada", None)),
    ],
    ids=["everything", "no password", "no database", "no user", "a folder of sockets", "a folder in place of a host"],
)
def test_each_part_of_an_address_is_decoded_or_has_its_default(
    dsn: str, expected: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER", "clerk")
    address = Address.parse(dsn)
    assert (address.host, address.port, address.database, address.user, address.password) == expected


def test_without_any_user_it_is_postgres(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("USER", raising=False)
    assert Address.parse("postgresql://db.example.org").user == "postgres"


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("disable", False),
        ("allow", None),
        ("prefer", None),
        ("require", (ssl.CERT_NONE, False)),
        ("verify-ca", (ssl.CERT_REQUIRED, False)),
        ("verify-full", (ssl.CERT_REQUIRED, True)),
    ],
)
def test_each_mode_of_tls_checks_what_its_name_says(mode: str, expected: object) -> None:
    context = Address.parse(f"postgresql://ada@db.example.org/notes?sslmode={mode}")._ssl()
    checked = (context.verify_mode, context.check_hostname) if isinstance(context, ssl.SSLContext) else context
    assert checked == expected


def test_the_certificates_of_the_address_are_used() -> None:
    address = Address.parse("postgresql://ada@b/c?sslmode=verify-full&sslrootcert=/srv/missing.pem")
    with pytest.raises(FileNotFoundError):
        address._ssl()


@pytest.mark.parametrize(
    ("code", "is_lost", "passes", "step"),
    [
        ("57P01", True, True, ""),
        ("57P02", True, True, ""),
        ("57P03", True, True, ""),
        ("25006", False, True, "connect to the primary"),
        ("40001", False, True, ""),
        ("40P01", False, True, ""),
        ("53000", False, True, ""),
        ("53100", False, True, "free some space"),
        ("53200", False, True, "max_locks_per_transaction"),
        ("53300", False, True, "raise max_connections"),
        ("53400", False, True, ""),
        ("55P03", False, True, "end its transaction"),
        ("57014", False, True, "raise the server's statement_timeout"),
        ("28P01", False, False, "wrong user or password"),
        ("28000", False, False, "pg_hba.conf"),
        ("3D000", False, False, "create it"),
        ("42501", False, False, "lacks a privilege"),
        ("42P01", False, False, "a table is missing"),
        ("42703", False, False, "changed by hand"),
        ("23505", False, False, ""),
    ],
)
def test_a_refusal_has_its_code_and_a_step_and_only_some_pass(
    code: str, is_lost: bool, passes: bool, step: str
) -> None:
    database = Database("postgresql://ada:hush%40hush-hush@db.example.org/notes", timeout_s=1)
    facts = {"C": code, "M": "no, hush@hush-hush", "D": "the row (42, private)"}
    start = r"^PostgreSQL at db\.example\.org:5432/notes: no, "
    with pytest.raises(ToolServiceError, match=start) as caught, database.translated():
        raise DatabaseError(facts)
    assert (isinstance(caught.value, LostConnectionError), is_passing(caught.value)) == (is_lost, passes)
    assert caught.value.code == code
    assert step in str(caught.value)
    assert str(caught.value).endswith(")") is bool(step)
    assert "hush@hush" not in str(caught.value)
    assert "private" not in str(caught.value)


def _caused_by(error: Exception) -> InterfaceError:
    caused = InterfaceError("the network")
    caused.__cause__ = error
    return caused


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (TimeoutError(), "did not respond in time"),
        (_caused_by(TimeoutError()), "did not respond in time"),
        (
            _caused_by(ConnectionResetError("reset by hush@hush-hush")),
            "cannot be reached, or the connection was lost (reset by ",
        ),
        (OSError("no route"), "cannot be reached, or the connection was lost (no route)"),
        (struct.error("too short"), "cannot be reached, or the connection was lost (too short)"),
        (BrokenPipeError(), "cannot be reached, or the connection was lost (BrokenPipeError)"),
    ],
    ids=["silent", "silent in the driver", "reset", "no route", "half an answer", "no text"],
)
def test_a_broken_connection_is_reported_without_the_password(error: Exception, text: str) -> None:
    database = Database("postgresql://ada:hush%40hush-hush@db.example.org/notes", timeout_s=1)
    with pytest.raises(LostConnectionError) as caught, database.translated():
        raise error
    assert text in str(caught.value)
    assert "hush@hush" not in str(caught.value)


@pytest.mark.parametrize(
    "dsn", ["mysql://a@b/c", "postgresql:///only-a-name", "postgresql://a@b/c?colour=red", "postgresql://a:b@[c"]
)
def test_what_is_no_address_is_refused_without_being_shown(dsn: str) -> None:
    with pytest.raises(ConfigError, match="the DSN") as caught:
        Address.parse(dsn)
    assert dsn not in str(caught.value)


@pytest.fixture
def short_folder() -> Iterator[str]:
    """A folder for sockets, whose paths are limited to a hundred bytes."""
    with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp") as folder:
        yield folder


def test_a_server_gets_what_the_address_says_at_the_socket_of_its_port(short_folder: str) -> None:
    server = socket.socket(socket.AF_UNIX)
    server.settimeout(60)
    server.bind(f"{short_folder}/.s.PGSQL.6543")
    server.listen()
    received: list[bytes] = []

    def read(connection: socket.socket, type_bytes: int) -> bytes:
        head = connection.recv(type_bytes + 4, socket.MSG_WAITALL)
        return connection.recv(int.from_bytes(head[type_bytes:]) - 4, socket.MSG_WAITALL)

    def refuse() -> None:
        connection, _ = server.accept()
        with connection:
            message = read(connection, 0)
            while len(message) == 4:  # it asks for encryption
                connection.sendall(b"N")
                message = read(connection, 0)
            connection.sendall(b"R" + struct.pack("!ii", 8, 3))  # the server wants the password as text
            received.extend([message, read(connection, 1)])

    thread = threading.Thread(target=refuse)
    thread.start()
    database = Database(
        f"postgresql://ada:hush%40hush-hush@{quote(short_folder, safe='')}:6543/notes?application_name=clerk",
        timeout_s=60,
    )
    with pytest.raises(LostConnectionError, match="cannot be reached") as caught:
        database.ask("SELECT 1")
    thread.join()
    server.close()
    start, password = received
    assert {b"user\0ada", b"database\0notes", b"application_name\0clerk"} <= _pairs(start[4:])
    assert password == b"hush@hush-hush\0"
    assert "hush@hush" not in str(caught.value)


def _pairs(data: bytes) -> set[bytes]:
    texts = data.rstrip(b"\0").split(b"\0")
    return {b"\0".join(pair) for pair in zip(texts[::2], texts[1::2], strict=True)}


def test_settings_hold_for_each_connection(dsn: str) -> None:
    database = Database(dsn, timeout_s=60, settings="SET application_name = 'clerk'")
    assert database.ask("SHOW application_name") == [["clerk"]]
    database.close()


def test_a_connection_that_refuses_its_settings_is_closed(dsn: str) -> None:
    refused = Database(f"{dsn}&application_name=refused", timeout_s=60, settings="SET no_such_setting = 1")
    with pytest.raises(ToolServiceError, match="no_such_setting") as caught:
        refused.ask("SELECT 1")
    database = Database(dsn, timeout_s=60)
    for _ in range(600):  # until the server has noticed
        if not database.ask("SELECT 1 FROM pg_stat_activity WHERE application_name = 'refused'"):
            break
        database.ask("SELECT 1 FROM pg_sleep(0.05)")
    else:
        pytest.fail(f"the connection is open as long as its error is kept: {caught.value}")
    database.close()


@pytest.mark.parametrize(("option", "name"), [("", "jackfield"), ("&application_name=clerk", "clerk")])
def test_the_server_sees_the_name_of_the_application(option: str, name: str, dsn: str) -> None:
    database = Database(dsn + option, timeout_s=60)
    assert database.ask("SHOW application_name") == [[name]]
    database.close()


PID = "SELECT pg_backend_pid()"


def test_a_connection_is_kept_unless_an_error_or_its_end_closes_it(dsn: str) -> None:
    database = Database(dsn, timeout_s=60)
    first = database.ask(PID)
    assert database.ask(PID) == first
    with suppress(ToolServiceError), database.use() as connection:
        connection.run("SELECT 1 / 0")
    second = database.ask(PID)
    assert second != first
    with database.use_for_long(timeout_s=60) as connection:
        third = connection.run(PID)
    assert third not in (first, second)
    assert database.ask(PID) == second, "one for slow statements is not kept"
    database.close()
    fourth = database.ask(PID)
    assert fourth not in (first, second, third)
    database.close()


def test_a_slow_statement_has_the_time_of_its_connection(dsn: str) -> None:
    database = Database(dsn, timeout_s=0.2)
    with database.use_for_long(timeout_s=60) as connection:
        assert connection.run("SELECT 1 FROM pg_sleep(0.5)") == [[1]]
    with pytest.raises(LostConnectionError):
        database.ask("SELECT 1 FROM pg_sleep(60)")


def test_a_question_is_repeated_if_the_server_has_ended_kept_connections(dsn: str) -> None:
    database, other = Database(dsn, timeout_s=60), Database(dsn, timeout_s=60)
    with database.use() as first, database.use() as second:
        pids = [first.run(PID)[0][0], second.run(PID)[0][0]]
    assert other.ask(f"SELECT count(pg_terminate_backend(pid)) FROM unnest(ARRAY{pids}) AS pid") == [[2]]
    while other.ask(f"SELECT 1 FROM pg_stat_activity WHERE pid = ANY(ARRAY{pids})"):
        pass  # until the server has ended them
    assert database.ask("SELECT 7") == [[7]]
    database.close()
    other.close()


def test_no_more_connections_are_open_than_allowed(dsn: str) -> None:
    database = Database(dsn, timeout_s=60, connections=2)
    for _ in range(2):
        with database.use(), database.use_for_long(timeout_s=60):
            assert not database._free.acquire(blocking=False)
        with suppress(ToolServiceError), database.use() as connection:
            connection.run("SELECT 1 / 0")
    assert database._free.acquire(blocking=False)
    database.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the test forks")
def test_a_child_neither_uses_nor_closes_connections_of_its_parent(dsn: str) -> None:
    database = Database(dsn, timeout_s=60)
    mine = database.ask(PID)

    def ask_in_child(*, closed_first: bool) -> object:
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            try:
                if closed_first:
                    database.close()
                os.write(writer, json.dumps(database.ask(PID)).encode())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as answer:
            theirs = json.loads(answer.read())
        os.waitpid(child, 0)
        return theirs

    for closed_first in (False, True):
        assert ask_in_child(closed_first=closed_first) != mine
        assert database.ask(PID) == mine
    database.close()


def test_a_message_of_a_channel_comes_once(dsn: str) -> None:
    database = Database(dsn, timeout_s=60)
    connection = database.connect()
    connection.run("LISTEN news")
    assert connection.notifications(timeout_s=0) == []
    database.ask("SELECT pg_notify('news', 'first'), pg_notify('other', 'x'), pg_notify('news', 'second')")
    assert connection.notifications(timeout_s=60) == ["first", "second"]
    assert connection.notifications(timeout_s=0) == []
    connection.close()
    database.close()


@pytest.mark.timeout(60)
def test_a_message_that_came_with_a_statement_is_returned_without_waiting(dsn: str) -> None:
    connection = Database(dsn, timeout_s=60).connect()
    connection.run("LISTEN news")
    connection.run("SELECT pg_notify('news', 'mine')")
    assert connection.notifications(timeout_s=3600) == ["mine"]
    connection.close()


def test_a_message_that_comes_later_is_waited_for(dsn: str) -> None:
    database = Database(dsn, timeout_s=60)
    connection = database.connect()
    connection.run("LISTEN news")
    thread = threading.Thread(
        target=database.ask, args=("SELECT pg_notify('news', 'late') FROM (SELECT pg_sleep(0.5)) AS later",)
    )
    thread.start()
    assert connection.notifications(timeout_s=60) == ["late"]
    thread.join()
    connection.close()
    database.close()


def test_closing_a_connection_ends_its_session(dsn: str) -> None:
    database = Database(dsn, timeout_s=60)
    connection = database.connect()
    ((pid,),) = connection.run(PID)
    connection.close()
    for _ in range(600):  # until the server has noticed
        if not database.ask("SELECT 1 FROM pg_stat_activity WHERE pid = :pid", pid=pid):
            break
        database.ask("SELECT 1 FROM pg_sleep(0.05)")
    else:
        pytest.fail("the session is open as long as the connection is kept")
    database.close()


def test_a_transaction_that_fails_leaves_nothing(dsn: str) -> None:
    database = Database(dsn, timeout_s=60)
    with suppress(ToolServiceError), database.use() as connection, connection.transaction():
        connection.run("CREATE TABLE half (n integer)")
        connection.run("SELECT 1 / 0")
    assert database.ask("SELECT count(*) FROM pg_class WHERE relname = 'half'") == [[0]]
    database.close()


def test_those_who_want_to_be_alone_in_different_places_do_not_wait(dsn: str) -> None:
    database = Database(dsn, timeout_s=20)
    with (
        database.use() as one,
        alone_in(one, "house", "kitchen"),
        database.use() as other,
        alone_in(other, "house", "garden"),
    ):
        assert one.run("SELECT 1") == other.run("SELECT 1") == [[1]]
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
