"""Tests stay on this machine, by whatever way they try to leave it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield_testkit.network import NetworkBlockedError, blocked
from jackfield_testkit.server import FakeOpenAI

# Reserved for documentation (RFC 5737, RFC 3849, RFC 2606): nobody is there, should one of these get out.
ADDRESS = "192.0.2.1"
ADDRESS_6 = "2001:db8::1"
NAME = "model.example"


def connect(address: Any, family: int = socket.AF_INET) -> None:
    with socket.socket(family) as plain:
        plain.settimeout(0.01)
        plain.connect(address)


def send(address: Any) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
        plain.sendto(b"x", address)


def send_message(address: Any) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
        plain.sendmsg([b"x"], [], 0, address)


def in_thread() -> None:
    caught: list[BaseException] = []

    def work() -> None:
        try:
            connect((ADDRESS, 80))
        except NetworkBlockedError as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    raise caught[0]


async def open_streams(host: str) -> None:
    await asyncio.wait_for(asyncio.open_connection(host, 443), 5)


WAYS: dict[str, Callable[[], object]] = {
    "connect": lambda: connect((ADDRESS, 443)),
    "connect_ex": lambda: socket.socket().connect_ex((ADDRESS, 443)),
    "connect over IPv6": lambda: connect((ADDRESS_6, 443), socket.AF_INET6),
    "connect to a mapped address": lambda: connect((f"::ffff:{ADDRESS}", 443), socket.AF_INET6),
    "send a datagram": lambda: send((ADDRESS, 53)),
    "send a message": lambda: send_message((ADDRESS, 53)),
    "look up": lambda: socket.getaddrinfo(NAME, 443),
    "look up in bytes": lambda: socket.getaddrinfo(NAME.encode(), 443),
    "look up, the old way": lambda: socket.gethostbyname(NAME),
    "look up an address's name": lambda: socket.gethostbyaddr(ADDRESS),
    "look up an address's name with its port": lambda: socket.getnameinfo((ADDRESS, 443), 0),
    "asyncio": lambda: asyncio.run(open_streams(ADDRESS)),
    "asyncio by name": lambda: asyncio.run(open_streams(NAME)),
    "a thread": in_thread,
    "urllib": lambda: urllib.request.urlopen(f"http://{ADDRESS}/", timeout=0.1),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_way_leads_out(way: str) -> None:
    with blocked("test_x") as watch, pytest.raises(NetworkBlockedError) as caught:
        WAYS[way]()
    assert watch.refused[0] is caught.value
    told = str(caught.value)
    assert told.startswith("test_x tries to access ")
    assert any(host in told for host in (ADDRESS, ADDRESS_6, NAME))
    assert "@pytest.mark.live" in told
    assert "JACKFIELD_TESTKIT_LIVE=1" in told


def test_this_machine_can_be_reached_by_all_its_names(tmp_path: Path) -> None:
    with blocked("test_x") as watch, FakeOpenAI() as server:
        port = int(server.origin.rpartition(":")[2])
        for host in ("127.0.0.1", "localhost", "127.0.0.2", "0.0.0.0", ""):
            with contextlib.suppress(ConnectionRefusedError):  # on whose part, is no matter
                connect((host, port))
        asyncio.run(open_streams_to(server))
        assert urllib.request.urlopen(f"{server.url}/models").status == 200
        here, there = socket.socketpair()
        here.close()
        there.close()
        with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as plain:
            listening.bind(str(tmp_path / "s"))
            listening.listen()
            plain.connect(str(tmp_path / "s"))
        socket.getaddrinfo(ADDRESS, 80)  # of a number nobody is asked
        socket.getaddrinfo(None, 0)
        assert subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, check=True).stdout == b"1\n"
    assert watch.refused == []


async def open_streams_to(server: FakeOpenAI) -> None:
    _, writer = await asyncio.open_connection("localhost", int(server.origin.rpartition(":")[2]))
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("host", ["10.0.0.1", "192.168.1.1", "169.254.169.254", "fe80::1%lo", "localhost.example"])
def test_other_machines_of_the_same_network_are_other_machines(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with blocked("test_x"), pytest.raises(NetworkBlockedError):
        # A name is looked up first; an address is not.
        socket.getaddrinfo(host, 80) if host.startswith("localhost") else connect((host, 80), family)


@pytest.mark.parametrize(
    "host", ["localhost.", "LOCALHOST", socket.gethostname(), b"localhost", "::1", "::ffff:127.0.0.1"]
)
def test_this_machine_has_names_in_any_case_and_with_a_dot(host: str | bytes) -> None:
    with blocked("test_x") as watch:
        with contextlib.suppress(OSError):  # a resolver may not know the name
            socket.getaddrinfo(host, 80)
        if isinstance(host, str) and ":" in host:
            with contextlib.suppress(OSError):
                connect((host, 9), socket.AF_INET6)
    assert watch.refused == []


def test_an_inner_block_reports_its_own_attempts_and_leaves_the_outer_one_in_force() -> None:
    with blocked("outer") as outer:
        with blocked("inner") as inner, pytest.raises(NetworkBlockedError, match=r"^inner"):
            connect((ADDRESS, 80))
        assert (len(inner.refused), outer.refused) == (1, [])
        with pytest.raises(NetworkBlockedError, match=r"^outer"):
            connect((ADDRESS, 80))
    assert (len(inner.refused), len(outer.refused)) == (1, 1)


def test_after_the_block_the_way_is_free_again() -> None:
    with blocked("test_x"):
        pass
    # That the machine has no route is fine: it is not us who refuse.
    with contextlib.suppress(OSError):
        connect((ADDRESS, 443))


def test_a_thread_that_was_there_before_is_held_back_too() -> None:
    go, done = threading.Event(), threading.Event()
    caught: list[BaseException] = []

    def work() -> None:
        go.wait(30)
        try:
            connect((ADDRESS, 443))
        except (NetworkBlockedError, OSError) as error:
            caught.append(error)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    with blocked("test_x"):
        go.set()
        done.wait(30)
    thread.join()
    assert isinstance(caught[0], NetworkBlockedError)


# --- as tests see it ---

TESTS = f"""
import socket, pytest
from jackfield_testkit.suites import Suite
HEAD

def reach():
    with socket.socket() as plain:
        plain.settimeout(0.01)
        plain.connect(({ADDRESS!r}, 443))


class TestOut(BASE):
    def test_raises(self):
        reach()

    def test_swallows(self):
        try:
            reach()
        except Exception:
            pass

    @pytest.mark.live
    def test_live(self):
        with pytest.raises(OSError):
            reach()

    def test_at_home(self):
        socket.socketpair()[0].close()
"""
NAMED = 'pytest_plugins = ["jackfield_testkit.fixtures"]'
FIXTURE = """

@pytest.fixture(scope="session")
def early():
    reach()


class TestEarly:
    def test_asks_for_it(self, early):
        pass

    @pytest.mark.live
    def test_z_live_class(self):
        pass
"""


@pytest.mark.parametrize(("base", "head"), [("Suite", ""), ("object", NAMED), ("Suite", NAMED)])
def test_suites_and_who_names_the_fixtures_stay_at_home_and_swallowing_helps_nobody(
    run_suites: Callable[..., Any], base: str, head: str
) -> None:
    outcomes = run_suites(TESTS.replace("BASE", base).replace("HEAD", head), ["TestOut"])
    assert outcomes.of("TestOut", "failure") == {"test_raises"}
    assert "test_swallows" in outcomes.of("TestOut", "error")
    assert outcomes.of("TestOut", "passed") >= {"test_live", "test_at_home"}


def test_fixtures_of_the_session_stay_at_home_too(run_suites: Callable[..., Any]) -> None:
    outcomes = run_suites(TESTS.replace("BASE", "object").replace("HEAD", NAMED) + FIXTURE, ["TestEarly"])
    assert outcomes.of("TestEarly", "error") == {"test_asks_for_it"}


def test_the_environment_allows_it_to_all(
    run_suites: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JACKFIELD_TESTKIT_LIVE", "1")
    outcomes = run_suites(TESTS.replace("BASE", "Suite").replace("HEAD", NAMED), ["TestOut::test_swallows"])
    assert outcomes.of("TestOut", "passed") == {"test_swallows"}


@pytest.mark.parametrize(("value", "outcome"), [("0", "error"), ("", "error"), ("yes", "passed")])
def test_zero_in_the_environment_allows_nothing(
    run_suites: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, value: str, outcome: str
) -> None:
    monkeypatch.setenv("JACKFIELD_TESTKIT_LIVE", value)
    outcomes = run_suites(TESTS.replace("BASE", "Suite").replace("HEAD", ""), ["TestOut::test_swallows"])
    assert outcomes.of("TestOut", outcome) == {"test_swallows"}


def test_the_mark_is_known_and_workers_still_work(tmp_path: Path) -> None:
    (tmp_path / "test_them.py").write_text(TESTS.replace("BASE", "Suite").replace("HEAD", ""), encoding="utf-8")
    (tmp_path / "conftest.py").write_text(NAMED, encoding="utf-8")
    chosen = ["-k", "live or at_home", "-n2", "--strict-markers", "-p", "xdist", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *chosen, "test_them.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
