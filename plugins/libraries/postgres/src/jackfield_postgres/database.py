"""Connect to one PostgreSQL database: address, pooled connections and errors.

Connections block, so they belong in worker threads. A thread may reuse a connection that another thread has returned.
"""

from __future__ import annotations

import os
import select
import ssl
import struct
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from pg8000.exceptions import DatabaseError, Error
from pg8000.native import Connection as Driver

from jackfield.errors import ConfigError, ToolServiceError
from jackfield.quoting import SentSecrets, quote_text

Row = list[Any]

_MOST_SHOWN = 300
_ENDED_BY_THE_SERVER = ("57P01", "57P02", "57P03")  # shut down, crashed, not ready yet
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_EXAMPLE = "postgresql://USER:PASSWORD@HOST:5432/DATABASE"

_NEXT_STEP = {
    "28P01": "wrong user or password: correct the DSN",
    "28000": "the user is not allowed to connect from this host: correct the DSN or the server's pg_hba.conf",
    "3D000": "the database does not exist: create it, or correct the DSN",
    "42501": "the user lacks a privilege: grant it, or use another user",
    "25006": "the server is read-only, like a standby: connect to the primary, or wait until this server is promoted",
    "53100": "the server's disk is full: free some space",
    "53200": "the server is out of memory: wait, or give it more (max_locks_per_transaction if its message says so)",
    "53300": "the server has too many connections: raise max_connections, or use a connection pool",
    "55P03": "another session holds a required lock: end its transaction, or wait",
    "57014": "the statement was cancelled: raise the server's statement_timeout",
    "42P01": "a table is missing: restore it, or set another schema",
    "42703": "a table has unexpected columns, so it was changed by hand: restore it, or set another schema",
}


# Temporary errors: locks are released, disks get space, a standby becomes the primary, transactions get their turn.
_PASSING = ("25006", "40001", "40P01", "53000", "53100", "53200", "53300", "53400", "55P03", "57014")


class LostConnectionError(ToolServiceError):
    """The server could not be reached, or the connection broke."""


def is_passing(error: ToolServiceError) -> bool:
    """Return True if the error is temporary, so that the same statement may succeed later."""
    return isinstance(error, LostConnectionError) or error.code in _PASSING


@dataclass(frozen=True, slots=True)
class Address:
    """A database's address. Its `str` and `repr` show no more than host, port and database name."""

    host: str
    port: int
    database: str
    user: str = field(repr=False)
    password: str | None = field(repr=False)
    options: dict[str, str] = field(repr=False, default_factory=dict)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}/{self.database}"

    @classmethod
    def parse(cls, dsn: str) -> Address:
        """Parse a DSN, `postgresql://…`.

        Raises:
            ConfigError: The DSN is invalid. The message does not quote the DSN, which may contain a password.
        """
        parts, port = _split(dsn)
        options = dict(parse_qsl(parts.query))
        host = options.pop("host", "") or parts.hostname or ""
        if parts.scheme not in ("postgresql", "postgres") or not host:
            raise ConfigError(f"the DSN must be a database URL, such as {_EXAMPLE}")
        _check_options(options)
        user = _user(parts)
        return cls(unquote(host), port, unquote(parts.path[1:]) or user, user, _password(parts), options)

    def connect(self, timeout_s: float) -> Driver:
        """Open a new connection. May raise any of the driver's errors."""
        place: dict[str, Any] = {"host": self.host, "port": self.port, "ssl_context": self._ssl()}
        if self.host.startswith("/"):
            place = {"unix_sock": f"{self.host}/.s.PGSQL.{self.port}"}
        return Driver(
            self.user,
            password=self.password,
            database=self.database,
            timeout=timeout_s,
            application_name=self.options.get("application_name", "jackfield"),
            **place,
        )

    def _ssl(self) -> bool | ssl.SSLContext | None:
        """Return the TLS setting for `sslmode` as defined by libpq. `require` does not verify certificates."""
        match self.options.get("sslmode", "prefer"):
            case "disable":
                return False
            case "allow" | "prefer":
                return None  # encrypted where the server can
            case mode:
                context = ssl.create_default_context(cafile=self.options.get("sslrootcert"))
                context.check_hostname = mode == "verify-full"
                context.verify_mode = ssl.CERT_NONE if mode == "require" else ssl.CERT_REQUIRED
                return context


def _split(dsn: str) -> tuple[SplitResult, int]:
    """Return a DSN's parts and port."""
    try:
        parts = urlsplit(dsn)
        port = parts.port or 5432
    except ValueError:
        raise ConfigError(f"the DSN is not a valid URL; expected something like {_EXAMPLE}") from None
    return parts, port


def _check_options(options: Mapping[str, str]) -> None:
    unknown = sorted(options.keys() - {"sslmode", "sslrootcert", "application_name"})
    if unknown or options.get("sslmode", "prefer") not in _SSL_MODES:
        wrong = ", ".join(unknown) or "sslmode"
        raise ConfigError(
            f"the DSN contains unsupported options ({quote_text(wrong, '', 80)}); supported are host, "
            f"application_name, sslrootcert, and sslmode with one of {', '.join(_SSL_MODES)}"
        )


def _user(parts: SplitResult) -> str:
    return unquote(parts.username or "") or os.environ.get("USER") or "postgres"


def _password(parts: SplitResult) -> str | None:
    return None if parts.password is None else unquote(parts.password)


class Connection:
    """A connection for one thread. Values are always bound, so untrusted text never becomes part of a statement.

    Args:
        driver: The driver's connection.
        database: The database that the connection belongs to.
    """

    def __init__(self, driver: Driver, database: Database) -> None:
        self._driver = driver
        self._database = database

    def run(self, sql: str, **values: object) -> list[Row]:
        """Run a statement, with `:name` in place of each value, and return its rows.

        Raises:
            LostConnectionError: The connection to the server was lost.
            ToolServiceError: The server refused the statement; `code` is its SQLSTATE.
        """
        with self._database.translated():
            return list(self._driver.run(sql, **values) or [])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a transaction. After an error, the connection must be closed, which rolls the transaction back."""
        self.run("BEGIN")
        yield
        self.run("COMMIT")


class OwnConnection(Connection):
    """A connection that stays open until its caller closes it."""

    def notifications(self, *, timeout_s: float) -> list[str]:
        """Wait for messages on the channels that this connection listens on, and return those that have arrived.

        Args:
            timeout_s: The maximum wait for the first message, in seconds. After that, the list is empty.

        Raises:
            LostConnectionError: The connection to the server was lost.
        """
        if not self._driver.notifications:
            with self._database.translated():
                select.select([self._driver._usock], [], [], timeout_s)  # the driver itself cannot wait for messages
            self.run("SELECT 1")
        messages = [message for _, _, message in self._driver.notifications]
        self._driver.notifications.clear()
        return messages

    def close(self) -> None:
        """Close the connection. The server ends the session and releases its locks."""
        _close(self._driver)


class Database:
    """A connection pool for one database, shared by all threads. Creating a pool opens no connection.

    Args:
        dsn: The database's URL. Errors show neither the URL nor its password.
        timeout_s: The maximum silence from the server, in seconds.
        connections: The maximum number of connections. Further callers wait.
        settings: SQL statements to run on each new connection.

    Raises:
        ConfigError: The DSN is invalid.
    """

    def __init__(self, dsn: str, *, timeout_s: float, connections: int = 8, settings: str = "") -> None:
        self.address = Address.parse(dsn)
        self._secrets = SentSecrets(dsn, *filter(None, [self.address.password]))
        self._timeout_s = timeout_s
        self._settings = settings
        self._idle: list[_Idle] = []
        self._lock = threading.Lock()
        self._free = threading.Semaphore(connections)
        weakref.finalize(self, _close_all, self._idle)

    def ask(self, sql: str, **values: object) -> list[Row]:
        """Run one read-only statement and return its rows. Retries if a pooled connection turns out to be dead."""
        while True:
            is_fresh = not self._idle
            try:
                with self.use() as connection:
                    return connection.run(sql, **values)
            except LostConnectionError:
                if is_fresh:
                    raise

    @contextmanager
    def use(self) -> Iterator[Connection]:
        """Borrow a connection for one thread. After an error, the connection is closed.

        Raises:
            LostConnectionError: The server cannot be reached.
        """
        with self._free:
            driver = self._taken() or self._connected(self._timeout_s)
            try:
                yield Connection(driver, self)
            except BaseException:
                _close(driver)
                raise
            self._put_back(driver)

    def connect(self) -> OwnConnection:
        """Open a connection outside the pool, which the caller owns.

        Raises:
            LostConnectionError: The server cannot be reached.
        """
        return OwnConnection(self._connected(self._timeout_s), self)

    @contextmanager
    def use_for_long(self, *, timeout_s: float) -> Iterator[Connection]:
        """Open a connection for slow statements and close it afterwards."""
        with self._free:
            driver = self._connected(timeout_s)
            try:
                yield Connection(driver, self)
            finally:
                _close(driver)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Translate driver errors into Jackfield's, without showing the DSN or a statement's values."""
        try:
            yield
        except DatabaseError as error:
            raise self._refusal(error) from None
        except (Error, OSError, struct.error) as error:
            reason = error.__cause__ or error
            if isinstance(reason, TimeoutError):
                raise LostConnectionError(
                    f"PostgreSQL at {self.address} did not respond in time: it is overloaded, or the "
                    f"network is failing; check both, then try again"
                ) from None
            said = quote_text(str(reason) or type(reason).__name__, self._secrets, _MOST_SHOWN)
            raise LostConnectionError(
                f"PostgreSQL at {self.address} cannot be reached, or the connection was lost ({said}): "
                f"check that the server is running and the DSN is correct, then try again"
            ) from None

    def _refusal(self, error: DatabaseError) -> ToolServiceError:
        """Return the error for a message from the server."""
        facts = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
        code = str(facts.get("C", ""))
        # Only the message: details quote rows.
        said = quote_text(str(facts.get("M", "it failed")), self._secrets, _MOST_SHOWN)
        kind = LostConnectionError if code in _ENDED_BY_THE_SERVER else ToolServiceError
        step = f" ({_NEXT_STEP[code]})" if code in _NEXT_STEP else ""
        return kind(f"PostgreSQL at {self.address}: {said}{step}", code=code or None)

    def close(self) -> None:
        """Close all connections that are not in use."""
        _close_all(self._idle)

    def _connected(self, timeout_s: float) -> Driver:
        with self.translated():
            driver = self.address.connect(timeout_s)
            try:
                if self._settings:
                    driver.run(self._settings)
            except BaseException:
                _close(driver)
                raise
            return driver

    def _taken(self) -> Driver | None:
        with self._lock:
            mine = [one for one in self._idle if one.process == os.getpid()]
            # After a fork, the parent's connections belong to the parent and are not closed here.
            self._idle[:] = mine[:-1]
            return mine[-1].driver if mine else None

    def _put_back(self, driver: Driver) -> None:
        with self._lock:
            self._idle.append(_Idle(os.getpid(), driver))


@contextmanager
def alone_in(connection: Connection, *names: str) -> Iterator[None]:
    """Run a transaction that excludes others with the same names. The lock also ends with the connection."""
    with connection.transaction():
        connection.run("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))", name=" ".join(("jackfield", *names)))
        yield


@dataclass(frozen=True, slots=True)
class _Idle:
    process: int
    driver: Driver


def _close_all(idle: list[_Idle]) -> None:
    while idle:
        one = idle.pop()
        if one.process == os.getpid():
            _close(one.driver)


def _close(driver: Driver) -> None:
    buffer: Any = getattr(driver, "_sock", None)
    with suppress(Error, OSError):  # it is broken, or was closed by an error
        driver.close()
    # Otherwise, unsent data would be sent again when the buffer is garbage-collected, and Python would report that on
    # stderr.
    with suppress(AttributeError, OSError, ValueError):
        buffer.close()
