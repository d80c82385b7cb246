"""The full-text index of a file of runs: searches read it, and give what reading every record would give."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jackfield.stores import StoredRun
from jackfield_records import RecordingStore
from jackfield_sqlite_store.index import can_index
from jackfield_sqlite_store.store import SQLiteStore

TEXTS = st.text(st.sampled_from("abcAB \"'*%_ÄßÉé潮汐涨落\0\n😀") | st.characters(), max_size=12)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    store = SQLiteStore(path=tmp_path / "runs.sqlite")
    yield store
    asyncio.run(store.aclose())


def record(store: SQLiteStore, run_id: str, text: str) -> None:
    entry = json.dumps({"event": "RunStarted", "messages": [{"role": "user", "content": text}]})
    asyncio.run(store.create(StoredRun(run_id=run_id), [entry]))


@example(['a "b" c', "ab"], '"b"')
@given(st.lists(TEXTS, min_size=1, max_size=6), TEXTS)
@settings(max_examples=settings().max_examples // 2)
def test_a_search_gives_what_reading_every_record_gives(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], searched: str
) -> None:
    store = SQLiteStore(path=tmp_path_factory.mktemp("store") / "runs.sqlite")
    for number, text in enumerate(texts):
        record(store, f"r{number}", text)
    for text in (searched, *texts):
        expected = asyncio.run(RecordingStore.search(store, text))
        assert asyncio.run(store.search(text)) == expected
    asyncio.run(store.aclose())


def test_many_runs_are_indexed_in_steps_between_which_others_can_write(store: SQLiteStore) -> None:
    for number in range(230):
        record(store, f"r{number}", f"question {number}")
    assert [run.run_id for run in asyncio.run(store.search("question 229"))] == ["r229"]
    assert [run.run_id for run in asyncio.run(store.search("question 1", limit=500))][-1] == "r1"


def test_a_deleted_run_leaves_nothing_in_the_index(store: SQLiteStore) -> None:
    record(store, "r", "a private question")
    assert asyncio.run(store.search("private"))
    asyncio.run(store.release("r", 1))
    asyncio.run(store.delete("r"))
    with store._file.use(patience_s=10) as connection:
        assert connection.execute("SELECT count(*) FROM texts").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM indexed_runs").fetchone() == (0,)


@pytest.mark.parametrize(("version", "is_new_enough"), [((3, 33, 9), False), ((3, 34, 0), True)])
def test_an_sqlite_that_compares_no_trigrams_has_no_index(
    version: tuple[int, ...], is_new_enough: bool, store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", version)
    with store._file.use(patience_s=10) as connection:
        assert can_index(connection) is is_new_enough


def test_without_fts5_the_records_are_read(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackfield_sqlite_store.store.can_index", lambda _: False)
    record(store, "r", "潮汐 and tides")
    assert [run.run_id for run in asyncio.run(store.search("tide 潮"))] == ["r"]
    with store._file.use(patience_s=10) as connection:
        assert connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'texts'").fetchone() is None
