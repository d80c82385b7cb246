"""The file: what it forgets and when, and that no state of it can hurt."""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from jackfield_local_state.cachefile import REST_S, TOUCH_S, CacheFile

MakeCache = Callable[..., CacheFile]
OF_ACME: dict[str, Any] = {"application_id": 7, "owner": "acme", "what": "answers", "instead": "it asks again"}
KEYS = [bytes([number]) * 32 for number in range(8)]


class Clock:
    """The time, which goes on when told to."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "answers.sqlite"


@pytest.fixture
def make(path: Path, clock: Clock) -> Iterator[MakeCache]:
    made: list[CacheFile] = []

    def make(**settings: Any) -> CacheFile:
        made.append(
            CacheFile(**{"path": path, "ttl_s": None, "max_bytes": 10_000, "clock": clock, **OF_ACME, **settings})
        )
        return made[-1]

    yield make
    for store in made:
        store.close()


def _kept(store: CacheFile) -> list[int]:
    return [number for number, key in enumerate(KEYS) if store.get(key)]


def test_making_a_cache_touches_no_file(make: MakeCache, path: Path) -> None:
    make()
    assert not path.parent.exists()


def test_what_is_kept_is_there_for_the_next_process(make: MakeCache, clock: Clock) -> None:
    make().put(KEYS[0], b"events")
    kept = make().get(KEYS[0])
    assert kept is not None
    assert (kept.content, kept.made_at) == (b"events", clock.now)
    assert make().get(KEYS[1]) is None


@pytest.mark.skipif(os.name != "posix", reason="file modes are those of POSIX")
def test_nobody_else_may_read_the_file_or_what_lies_beside_it(make: MakeCache, path: Path) -> None:
    before = os.umask(0)
    try:
        make().put(KEYS[0], b"events")
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        assert modes == dict.fromkeys(modes, 0o600)
        assert f"{path.name}-wal" in modes
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    finally:
        os.umask(before)


def test_an_answer_is_forgotten_when_its_time_is_over(make: MakeCache, clock: Clock) -> None:
    store = make(ttl_s=10)
    store.put(KEYS[0], b"events")
    clock.now += 9.9
    assert _kept(store) == [0]
    clock.now += 0.2
    assert _kept(store) == []
    store.put(KEYS[1], b"events")
    clock.now -= 5  # it is gone, and not only passed over
    assert _kept(store) == [1]


def test_the_shorter_of_two_times_counts_for_who_reads(make: MakeCache, clock: Clock) -> None:
    make(ttl_s=100).put(KEYS[0], b"events")
    make().put(KEYS[1], b"events")
    clock.now += 50
    assert _kept(make(ttl_s=10)) == []
    assert _kept(make()) == [0, 1]
    clock.now += 60
    assert _kept(make()) == [1]


def test_a_newer_answer_takes_the_place_and_the_time_of_an_older_one(make: MakeCache, clock: Clock) -> None:
    store = make(ttl_s=10, max_bytes=100)
    for _ in range(5):  # the size of what is replaced is given back
        clock.now += 6
        store.put(KEYS[0], b"x" * 60)
    assert _kept(store) == [0]


def test_what_was_not_used_for_longest_goes_first(make: MakeCache, clock: Clock) -> None:
    store = make(max_bytes=3 * (32 + 100))
    for number in range(3):
        clock.now += 1
        store.put(KEYS[number], b"x" * 100)
    clock.now += TOUCH_S
    assert store.get(KEYS[0])
    clock.now += 1
    store.put(KEYS[3], b"x" * 100)
    assert _kept(store) == [0, 2, 3]
    store.put(KEYS[4], b"x" * 230)
    assert 4 in _kept(store)
    assert len(_kept(store)) == 2


def test_what_is_larger_than_all_may_be_pushes_nothing_out(make: MakeCache) -> None:
    store = make(max_bytes=200)
    store.put(KEYS[0], b"x" * 100)
    store.put(KEYS[1], b"x" * 200)
    assert _kept(store) == [0]


def test_the_sum_of_sizes_stays_true(make: MakeCache, path: Path, clock: Clock) -> None:
    store = make(max_bytes=700, ttl_s=50)
    for step in range(40):
        clock.now += step % 7
        store.put(KEYS[step * 5 % 8], b"x" * (step * 37 % 300))
        with sqlite3.connect(path) as connection:
            (total,) = connection.execute("SELECT size_bytes FROM total").fetchone()
            (real,) = connection.execute(
                "SELECT coalesce(sum(length(key) + length(events)), 0) FROM answers"
            ).fetchone()
        connection.close()
        assert total == real <= 700


def test_threads_may_read_and_write_at_once(make: MakeCache) -> None:
    store = make()

    def work(number: int) -> bool:
        key = KEYS[number % 8]
        store.put(key, key * 3)
        kept = store.get(key)
        return kept is not None and kept.content == key * 3

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(64)))


# --- files that cannot be used ---


def _corrupt(path: Path) -> None:
    path.write_bytes(b"this is no database, but somebody's diary " * 50)


def _foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE diary (entry TEXT)")
        connection.execute("INSERT INTO diary VALUES ('dear diary')")
    connection.close()


def _newer(path: Path) -> None:
    store = CacheFile(path, ttl_s=None, max_bytes=1000, **OF_ACME)
    store.put(KEYS[0], b"events")
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


def _of_another_owner(path: Path) -> None:
    other = CacheFile(path, ttl_s=None, max_bytes=1000, **{**OF_ACME, "application_id": 8})
    other.put(KEYS[0], b"theirs")
    other.close()


@pytest.mark.parametrize("spoil", [_corrupt, _foreign, _newer, _of_another_owner])
def test_a_file_that_is_not_ours_is_told_once_and_left_as_it_is(
    make: MakeCache, path: Path, clock: Clock, caplog: pytest.LogCaptureFixture, spoil: Callable[[Path], None]
) -> None:
    path.parent.mkdir()
    spoil(path)
    before = path.read_bytes()
    store = make()
    for _ in range(3):
        store.put(KEYS[0], b"mine")
        assert store.get(KEYS[0]) is None
        clock.now += REST_S + 1
    assert path.read_bytes() == before
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert str(path) in caplog.text
    assert "mine" not in caplog.text


@pytest.mark.parametrize("where", ["below a file", "a folder"])
def test_a_place_that_cannot_be_written_is_told_once(
    make: MakeCache, tmp_path: Path, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    (tmp_path / "file").write_text("")
    store = make(path=tmp_path / "file" / "answers.sqlite" if where == "below a file" else tmp_path)
    store.put(KEYS[0], b"events")
    assert store.get(KEYS[0]) is None
    assert len(caplog.records) == 1


def test_a_locked_file_is_waited_for_once_and_used_again_after_a_rest(
    make: MakeCache, path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    store = make(busy_s=0.05)
    store.put(KEYS[0], b"events")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store.put(KEYS[1], b"events")
    assert store.get(KEYS[0]) is None  # it rests
    other.execute("ROLLBACK")
    other.close()
    clock.now += REST_S
    assert _kept(store) == [0]
    assert len(caplog.records) == 1
    assert "in use by other processes" in caplog.text
    assert "move it away" not in caplog.text


def test_an_answer_that_is_there_waits_for_no_writer(
    make: MakeCache, path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    store = make(busy_s=30)
    store.put(KEYS[0], b"events")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    clock.now += 2 * TOUCH_S  # its use would be written down, if nobody else wrote
    assert _kept(store) == [0]
    other.execute("ROLLBACK")
    other.close()
    assert _kept(store) == [0]
    assert caplog.records == []


def test_a_file_that_was_mended_is_used_again(make: MakeCache, path: Path, clock: Clock) -> None:
    path.parent.mkdir()
    _corrupt(path)
    store = make()
    store.put(KEYS[0], b"events")
    path.unlink()
    clock.now += REST_S
    store.put(KEYS[0], b"events")
    assert _kept(store) == [0]


# --- at the limits ---


def used_at(path: Path, number: int) -> float:
    with sqlite3.connect(path) as connection:
        [(at,)] = connection.execute("SELECT used_at FROM answers WHERE key = ?", (KEYS[number],))
    connection.close()
    return float(at)


@pytest.mark.parametrize(("later_s", "is_noted"), [(TOUCH_S - 1, False), (TOUCH_S, True)])
def test_a_use_is_noted_once_a_minute(
    later_s: float, is_noted: bool, make: MakeCache, path: Path, clock: Clock
) -> None:
    store = make()
    store.put(KEYS[0], b"events")
    clock.now += later_s
    assert _kept(store) == [0]
    assert used_at(path, 0) == clock.now - (0 if is_noted else later_s)


def test_a_write_waits_for_others_also_after_a_use_that_waited_for_nobody(make: MakeCache, clock: Clock) -> None:
    store = make(busy_s=30)
    store.put(KEYS[0], b"events")
    for _ in range(2):
        clock.now += TOUCH_S
        assert _kept(store) == [0]
        with store._file.use(patience_s=30) as connection:
            [(timeout_ms,)] = connection.execute("PRAGMA busy_timeout")
        assert timeout_ms > 1000


@pytest.mark.parametrize(("late_s", "kept"), [(9, [0]), (10, [])])
@pytest.mark.parametrize("whose", ["writer", "reader"])
def test_an_entry_is_kept_for_less_than_its_time(
    late_s: float, kept: list[int], whose: str, make: MakeCache, clock: Clock
) -> None:
    make(ttl_s=10 if whose == "writer" else None).put(KEYS[0], b"events")
    clock.now += late_s
    assert _kept(make(ttl_s=10 if whose == "reader" else None)) == kept


@pytest.mark.parametrize(("size", "kept"), [(168, [1]), (169, [0])])
def test_an_entry_may_take_all_of_the_room(size: int, kept: list[int], make: MakeCache) -> None:
    store = make(max_bytes=200)
    store.put(KEYS[0], b"x")
    store.put(KEYS[1], b"x" * size)
    assert _kept(store) == kept


def test_a_clock_that_is_set_back_does_not_lengthen_the_rest(make: MakeCache, path: Path, clock: Clock) -> None:
    path.parent.mkdir()
    _corrupt(path)
    store = make()
    store.put(KEYS[0], b"events")
    path.unlink()
    clock.now -= REST_S
    store.put(KEYS[0], b"events")
    assert _kept(store) == [0]


def test_a_file_that_is_damaged_while_it_is_open_is_closed_and_a_new_one_is_used(
    make: MakeCache, path: Path, clock: Clock
) -> None:
    store = make()
    store.put(KEYS[0], b"events")
    with sqlite3.connect(path) as other:
        other.execute("DROP TABLE total")
    other.close()
    store.put(KEYS[1], b"events")
    for file in path.parent.iterdir():
        file.unlink()
    clock.now += REST_S
    store.put(KEYS[2], b"events")
    assert _kept(store) == [2]
    assert _kept(make()) == [2]
