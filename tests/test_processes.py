"""Threads, processes, and plugins that come and go while a program runs."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from jackfield.errors import BrokenPluginError, PluginBlockedError, PluginError, PluginNotFoundError
from jackfield.plugins import PluginHost, ToolSpec
from jackfield.settings import Settings
from tests.support.site import FakeSite


def answers(host: PluginHost) -> dict[str, str]:
    """What a host says of two tools, one of which it may not load: it runs in other processes, too."""
    said = {}
    for name in ("search", "write"):
        try:
            said[name] = str(host.spec("tool", name, ToolSpec).description)
        except PluginError as error:
            said[name] = type(error).__name__
    return said


# --- plugins that come and go ---


def test_an_added_plugin_is_found_after_a_refresh_and_not_before(site: FakeSite) -> None:
    site.add_tools("acme-one", "one")
    host = site.host()
    assert host.names("tool") == ["one"]
    site.add_tools("acme-two", "two")
    assert host.names("tool") == ["one"]
    host.refresh()
    assert host.names("tool") == ["one", "two"]
    assert host.load("tool", "two").__name__ == "Tool"


def test_a_removed_plugin_is_gone_after_a_refresh(site: FakeSite) -> None:
    site.add_tools("acme-one", "one")
    site.add_tools("acme-two", "two")
    host = site.host()
    loaded = host.load("tool", "one")
    site.remove("acme-one")
    host.refresh()
    with pytest.raises(PluginNotFoundError, match="'one'"):
        host.load("tool", "one")
    assert loaded.__name__ == "Tool", "who has it keeps it"
    assert host.load("tool", "two").__name__ == "Tool"


def test_a_repaired_plugin_works_after_a_refresh(site: FakeSite) -> None:
    site.add_tools("acme-ill", "ill", before="raise RuntimeError('ill')")
    host = site.host()
    with pytest.raises(BrokenPluginError):
        host.load("tool", "ill")
    site.remove("acme-ill")
    site.add_tools("acme-ill", "ill", version="1.0.1")
    importlib.invalidate_caches()
    with pytest.raises(BrokenPluginError):
        host.load("tool", "ill")
    host.refresh()
    assert host.load("tool", "ill").__name__ == "Tool"


def test_an_upgraded_plugin_is_listed_with_its_new_version_and_components(site: FakeSite) -> None:
    site.add_tools("acme-one", "one")
    host = site.host()
    host.load("tool", "one")
    site.remove("acme-one")
    site.add_tools("acme-one", "one", "another", version="2.0")
    host.refresh()
    assert [(row.name, row.version) for row in host.policy.rows("tool")] == [("another", "2.0"), ("one", "2.0")]


def test_two_plugins_that_come_to_clash_are_an_error_from_the_refresh_on(site: FakeSite) -> None:
    site.add_tools("acme-one", "search")
    host = site.host()
    assert host.find("tool", "search").distribution == "acme-one"
    site.add_tools("acme-two", "search")
    host.refresh()
    with pytest.raises(PluginError, match="acme-two/search"):
        host.find("tool", "search")


# --- threads ---


@pytest.fixture
def hasty_switching() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_switching")
def test_eight_threads_that_resolve_the_same_plugins_get_the_same_classes(site: FakeSite) -> None:
    names = [f"t{number}" for number in range(40)]
    for name in names:
        site.add_tools(f"acme-{name}", name)
    host = site.host()
    together = Barrier(8)

    def resolve(offset: int) -> dict[str, Any]:
        together.wait()
        turned = names[offset * 5 :] + names[: offset * 5]
        return {name: (host.load("tool", name), host.spec("tool", name, ToolSpec)) for name in turned}

    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(resolve, range(8))
    assert all(other[name][0] is first[name][0] for other in others for name in names)
    assert all(other[name][1] is first[name][1] for other in others for name in names), "one descriptor for all"
    assert {site.times_imported(f"acme-{name}") for name in names} == {1}


@pytest.mark.usefixtures("hasty_switching")
def test_threads_that_resolve_while_others_refresh_see_no_half_catalog(site: FakeSite) -> None:
    names = [f"t{number}" for number in range(20)]
    for name in names:
        site.add_tools(f"acme-{name}", name)
    host = site.host()
    together = Barrier(8)

    def work(number: int) -> bool:
        together.wait()
        for _ in range(5):
            if number % 2:
                host.refresh()
            elif host.names("tool") != sorted(names) or any(host.load("tool", name) is None for name in names):
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


@pytest.mark.usefixtures("hasty_switching")
def test_a_broken_plugin_is_imported_once_by_eight_threads(site: FakeSite) -> None:
    site.add_tools("acme-ill", "ill", before="raise RuntimeError('ill')")
    host = site.host()
    together = Barrier(8)

    def ask(_: int) -> str:
        together.wait()
        with pytest.raises(BrokenPluginError) as caught:
            host.load("tool", "ill")
        return str(caught.value)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(8)))) == 1
    assert site.times_imported("acme-ill") == 1


# --- processes ---


@pytest.fixture
def policed(site: FakeSite) -> PluginHost:
    """A host that may load one of two tools."""
    site.add_tools("acme-sound", "search")
    site.add_tools("acme-writer", "write")
    return site.host(block=frozenset({"acme-writer"}))


EXPECTED = {"search": "From acme_sound_light.", "write": "PluginBlockedError"}


def test_a_host_pickles_with_its_policy_and_its_paths(policed: PluginHost) -> None:
    policed.load("tool", "search")  # what is loaded does not hinder it
    twin = pickle.loads(pickle.dumps(policed))
    assert twin.settings == policed.settings
    assert [row.address for row in twin.catalog.rows] == ["acme-sound/search", "acme-writer/write"]
    assert answers(twin) == EXPECTED


def test_a_pickled_host_has_no_secret_in_it(site: FakeSite) -> None:
    host = PluginHost(Settings(_secrets={"KEY": "sk-SECRET"}), paths=[str(site.folder)])
    assert b"SECRET" not in pickle.dumps(host)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_policy_travels_to_another_process(
    policed: PluginHost, site: FakeSite, method: str, tmp_path: Path
) -> None:
    answers(policed)
    context = multiprocessing.get_context(method)
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(policed, writer))
    process.start()
    writer.close()
    assert reader.poll(60), "the other process says nothing"
    said = reader.recv()
    process.join(60)
    assert (said, process.exitcode) == (EXPECTED, 0)
    assert site.times_imported("acme-writer") == 0


def _child(host: PluginHost, answer: Any) -> None:
    answer.send(answers(host))


def test_a_fork_while_another_thread_holds_the_hosts_lock_does_not_wait_for_ever(site: FakeSite) -> None:
    site.add_tools("acme-sound", "search")
    host = site.host()
    reading, writing = os.pipe()
    entered, leave = Barrier(2), Barrier(2)

    def hold() -> None:
        with host._lock, host._loader._lock, host._loader._once._lock:
            entered.wait()
            leave.wait()

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(hold)
        entered.wait()
        pid = os.fork()
        if pid == 0:
            try:
                os.write(writing, b"1" if host.load("tool", "search") else b"0")
            finally:
                os._exit(0)
        leave.wait()
        held.result()
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        ready = _wait_s(said.fileno(), seconds=20)
        if not ready:
            os.kill(pid, 9)
        os.waitpid(pid, 0)
        assert ready, "the child waits for a thread that it does not have"
        assert said.read() == b"1"


def _wait_s(descriptor: int, *, seconds: float) -> bool:
    import select

    return bool(select.select([descriptor], [], [], seconds)[0])


def test_a_blocked_plugin_is_blocked_in_a_child_of_the_command_too(site: FakeSite, lean: Any, tmp_path: Path) -> None:
    site.add_tools("acme-writer", "write")
    env = {"JACKFIELD_PLUGINS_BLOCK": "acme-writer"}
    lean.jackfield(["plugins", "doctor", "--deep"], cwd=tmp_path, path=site.folder, **env)
    assert site.times_imported("acme-writer") == 0
    with pytest.raises(PluginBlockedError):
        site.host(block=frozenset({"acme-writer"})).find("tool", "write")
