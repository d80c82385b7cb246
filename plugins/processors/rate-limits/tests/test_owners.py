"""A place belongs to a process, and is free when that is gone."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

from jackfield_rate_limits.owners import is_gone, owner
from jackfield_rate_limits.shared import gates, ledger_of
from jackfield_rate_limits.state import Entry, Limits, Wanted


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_the_place_of_a_process_is_free_when_it_is_gone(path: Path) -> None:
    ledger = ledger_of(path)
    limits = Limits(concurrency=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads
        child = os.fork()
        if not child:
            wanted = Wanted("child", limits, lease_s=1e9, owner=owner())
            entered = ledger.change("s", lambda state: state.enter(wanted, 100.0))
            os._exit(0 if isinstance(entered, Entry) else 1)
    assert os.waitpid(child, 0)[1] == 0
    machine = owner().rpartition("/")[0]
    assert is_gone(f"{machine}/{child}")
    assert not is_gone(f"another-{machine}/{child}")
    mine = Wanted("mine", limits, lease_s=1e9, owner=owner())
    assert isinstance(ledger.change("s", lambda state: state.enter(mine, 101.0, is_gone=is_gone)), Entry)
    running = ledger.change("s", lambda state: dict(state.running))
    assert "child" not in running


def test_this_process_runs_and_nothing_is_said_of_those_of_other_machines() -> None:
    assert not is_gone(owner())
    assert not is_gone("another-machine/1")
    assert not is_gone("")
    assert not is_gone(f"{owner()}x")


def test_a_process_of_another_user_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert not is_gone(owner())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_has_queues_of_its_own() -> None:
    mine = gates()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads
        child = os.fork()
        if not child:
            os._exit(1 if gates() is mine else 0)
    assert os.waitpid(child, 0)[1] == 0
    assert gates() is mine
