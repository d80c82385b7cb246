"""Keep tests on this machine: block and report connections and look-ups that would leave it.

An audit hook sees calls from asyncio, threads and plain sockets alike, but not other processes, libraries that open
sockets in C, or the look-up inside `socket.connect((name, port))`, which raises no event. The connection that follows
this look-up is seen.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

ALLOW = "JACKFIELD_TESTKIT_LIVE"
MARK = "live"
_ADDRESSED = ("socket.connect", "socket.sendto", "socket.sendmsg")
_LOOKED_UP = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo")


class NetworkBlockedError(RuntimeError):
    """A test tried to reach another machine. This is not an OSError, which clients would treat as a network failure."""

    def __init__(self, where: str, test: str) -> None:
        super().__init__(
            f"{test} tries to access {where}, but tests must stay on this machine: use "
            f"jackfield_testkit.server.FakeOpenAI or jackfield_testkit.cassette.Cassette. "
            f"To allow network access, mark the test with @pytest.mark.{MARK}, or set {ALLOW}=1 for all tests"
        )
        self.where = where
        self.test = test


class Watch:
    """One test's attempts to reach other machines, even if the test swallowed the errors."""

    def __init__(self, test: str) -> None:
        self.test = test
        self.refused: list[NetworkBlockedError] = []

    def refuse(self, where: str) -> None:
        """Record an attempt and raise an error."""
        error = NetworkBlockedError(where, self.test)
        self.refused.append(error)
        raise error


class _Gate:
    """The process's audit hook, which cannot be removed, and the tests that activate it.

    The hook is activated by a process-wide flag, because context variables do not reach threads started earlier, such
    as the one that runs the core's sync interface.
    """

    def __init__(self) -> None:
        self.watches: list[Watch] = []
        self._installed = False
        self._lock = threading.Lock()

    def install(self) -> None:
        """Install the audit hook on first use."""
        with self._lock:
            if not self._installed:
                self._installed = True
                sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.watches and event.startswith("socket."):
            where = _destination(event, arguments)
            if where:
                self.watches[-1].refuse(where)


_gate = _Gate()


@contextmanager
def blocked(test: str) -> Iterator[Watch]:
    """Block all connections to other machines inside the block. Errors name `test`."""
    _gate.install()
    watch = Watch(test)
    _gate.watches.append(watch)
    try:
        yield watch
    finally:
        _gate.watches.remove(watch)


@contextmanager
def offline(item: pytest.Item) -> Iterator[None]:
    """Run a test without network access, unless it is marked `live`.

    Raises:
        NetworkBlockedError: The test tried to use the network but passed anyway, because a client or tool turned the
            error into an answer.
    """
    if is_live(item):
        yield
        return
    with blocked(item.nodeid) as watch:
        yield
    if watch.refused:
        raise watch.refused[0].with_traceback(None)


def is_live(item: pytest.Item) -> bool:
    """Return True if a test may use the network because of its marker or the environment."""
    return item.get_closest_marker(MARK) is not None or os.environ.get(ALLOW, "") not in ("", "0")


def _destination(event: str, arguments: tuple[Any, ...]) -> str:
    """Return the remote machine that an event refers to, or '' if there is none."""
    if event in _ADDRESSED:
        return _addressed(*arguments[:2])
    return _looked_up(event, arguments[0]) if event in _LOOKED_UP else ""


def _addressed(connection: socket.socket, address: object) -> str:
    if not isinstance(address, tuple) or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return ""
    return "" if _is_here(address[0]) else f"{address[0]}:{address[1]}"


def _looked_up(event: str, given: Any) -> str:
    host = given[0] if event == "socket.getnameinfo" else given
    # A numeric address needs no request, except for a reverse look-up.
    wants_name = event in ("socket.gethostbyaddr", "socket.getnameinfo")
    return "" if _is_here(host) or (_address(host) and not wants_name) else f"{_text(host)} (name lookup)"


def _is_here(host: object) -> bool:
    address = _address(host)
    if address is not None:
        mapped = getattr(address, "ipv4_mapped", None) or address
        # The unspecified address, as a destination, is this machine.
        return bool(mapped.is_loopback or mapped.is_unspecified)
    return _text(host).rstrip(".").lower() in ("", "localhost", socket.gethostname().lower())


def _address(host: object) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(_text(host).partition("%")[0])
    except ValueError:
        return None


def _text(host: object) -> str:
    if host is None:
        return ""
    return host.decode("ascii", "replace") if isinstance(host, bytes | bytearray) else str(host)
