"""A watched index follows its files: after changes have settled, also after a folder was away, and never too often."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield_documents import DocumentReader
from jackfield_knowledge import KnowledgeIndex, watch
from jackfield_knowledge.watching import Debounce

READER = DocumentReader()


class EndedError(Exception):
    """Ends a watch."""


@pytest.fixture(autouse=True)
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    write("a", "one")
    asyncio.run(KnowledgeIndex("notes").build(["docs"], reader=READER))
    return tmp_path / "docs"


def write(name: str, text: str) -> None:
    path = Path("docs", f"{name}.md")
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def follow(
    *steps: Callable[[], object],
    failing: Collection[int] = (),
    raising: Collection[int] = (),
    look_s: float = 0.0,
    why_not: Callable[[str], str] | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> tuple[list[list[str]], list[float]]:
    """Take one step in each pause of a watch; return the documents after each build, and the pauses.

    Args:
        steps: The steps.
        failing: The builds that fail, by their numbers from 0.
        raising: The builds that another process prevents.
        look_s: The time that a look at the files takes.
        why_not: Decides which files are left out.
        meanwhile: Happens while the first build ends.
    """
    builds, pauses, remaining = list[list[str]](), list[float](), list(steps)
    now = 0.0

    class Index(KnowledgeIndex):
        def fingerprint(self, *arguments: Any) -> str:
            nonlocal now
            now += look_s
            return super().fingerprint(*arguments)

    index = Index("notes")

    async def build() -> bool:
        if len(builds) in failing:
            builds.append(["failed"])
            return False
        if len(builds) in raising:
            builds.append(["raised"])
            raise ConfigError("index 'notes' is being built by another process")
        await index.build(reader=READER, why_not=why_not)
        if not builds:
            meanwhile()
        builds.append([Path(one.location).stem for one in index.documents()])
        return True

    async def sleep(seconds: float) -> None:
        nonlocal now
        pauses.append(seconds)
        now += seconds
        if not remaining:
            raise EndedError
        remaining.pop(0)()

    with pytest.raises(EndedError):
        asyncio.run(watch(index, build, clock=lambda: now, sleep=sleep, most_wait_s=10, why_not=why_not))
    return builds, pauses


def rest() -> None:
    """Let a pause pass without a change."""


def test_new_changed_renamed_and_deleted_files_are_followed(docs: Path) -> None:
    builds, _ = follow(
        rest, lambda: write("b", "two"), rest, rest, lambda: (docs / "b.md").rename(docs / "c.md"), rest, rest,
        lambda: write("c", "three and more"), rest, (docs / "a.md").unlink, rest, rest,
    )  # fmt: skip
    assert builds == [["a"], ["a", "b"], ["a", "c"], ["a", "c"], ["c"]]


def test_a_folder_may_go_and_come_back(docs: Path) -> None:
    away = docs.with_name("away")
    builds, _ = follow(rest, lambda: docs.rename(away), rest, lambda: away.rename(docs), rest, rest)
    assert builds == [["a"], [], ["a"]]
    builds, _ = follow(rest, lambda: shutil.rmtree(docs), rest, lambda: write("z", "new"), rest, rest)
    assert builds == [["a"], [], ["z"]]


def test_files_that_never_stop_changing_are_built_at_intervals() -> None:
    changes = [lambda number=number: write("log", "line\n" * number) for number in range(1, 21)]
    builds, pauses = follow(rest, *changes)
    assert set(pauses) == {2.0}
    assert 3 <= len(builds) <= 5, "once at the start, and then after each ten seconds"


def test_a_failed_build_is_tried_again_after_growing_pauses() -> None:
    builds, pauses = follow(*[rest] * 5, failing=range(3))
    assert builds == [["failed"]] * 3 + [["a"]]
    assert pauses == [2.0, 4.0, 8.0, 16.0, 2.0, 2.0]


def test_a_build_that_another_process_prevents_is_tried_again_after_growing_pauses() -> None:
    builds, pauses = follow(*[rest] * 4, raising=range(2))
    assert builds == [["raised"], ["raised"], ["a"]]
    assert pauses == [2.0, 4.0, 8.0, 2.0, 2.0]


def test_a_file_that_changes_during_a_build_is_built_again() -> None:
    builds, _ = follow(*[rest] * 4, meanwhile=lambda: write("b", "two"))
    assert [build[0] for build in builds] == ["a", "a"]
    assert builds[-1] == ["a", "b"]


def test_a_change_of_a_file_that_is_left_out_builds_nothing() -> None:
    def why_not(path: str) -> str:
        return "a log" if path.endswith("log.md") else ""

    steps = [lambda number=number: write("log", "line\n" * number) for number in range(1, 4)]
    builds, _ = follow(rest, *steps, rest, rest, why_not=why_not)
    assert builds == [["a"]]


def test_after_a_build_that_succeeds_pauses_grow_from_the_start_again() -> None:
    builds, pauses = follow(rest, rest, rest, lambda: write("b", "two"), rest, rest, rest, failing=(0, 1, 3))
    assert builds == [["failed"], ["failed"], ["a"], ["failed"], ["a", "b"]]
    assert pauses == [2.0, 4.0, 8.0, 2.0, 2.0, 4.0, 2.0, 2.0]


def test_a_watch_outlives_days_of_failures() -> None:
    """Powers of two beyond the range of a float must not end it."""
    builds, pauses = follow(*[rest] * 1030, failing=range(1029))
    assert builds[-2:] == [["failed"], ["a"]]
    assert set(pauses[10:-1]) == {300.0}


def test_a_pause_after_failures_is_five_minutes_at_most() -> None:
    _, pauses = follow(*[rest] * 12, failing=range(12))
    assert pauses[6:] == [128.0, 256.0, 300.0, 300.0, 300.0, 300.0, 300.0]


def test_looks_that_take_long_are_rare() -> None:
    _, pauses = follow(rest, rest, rest, look_s=3.0)
    assert set(pauses) == {60.0}
    assert set(follow(rest, rest, look_s=0.05)[1]) == {2.0}


def test_a_change_that_was_taken_back_does_not_hasten_the_next() -> None:
    debounce = Debounce(10.0, built="a")
    assert [debounce.is_due(*look) for look in (("b", 0), ("a", 5), ("c", 20), ("d", 29), ("e", 30))] == [
        False, False, False, False, True,
    ]  # fmt: skip


def test_an_index_that_is_gone_ends_the_watch() -> None:
    with pytest.raises(ConfigError, match="no index named"):
        follow(rest, lambda: shutil.rmtree(KnowledgeIndex("notes").folder), rest)


def test_an_index_that_is_gone_by_the_time_of_a_build_ends_the_watch_without_a_pause() -> None:
    index = KnowledgeIndex("notes")

    async def build() -> bool:
        shutil.rmtree(index.folder)
        return await index.build(reader=READER) is not None

    async def sleep(seconds: float) -> None:
        assert index.exists, "it pauses after the build"

    with pytest.raises(ConfigError, match="no index named"):
        asyncio.run(watch(index, build, sleep=sleep))


def test_a_look_reads_no_file(docs: Path) -> None:
    index = KnowledgeIndex("notes")
    before = index.fingerprint()
    os.chmod(docs / "a.md", 0)  # noqa: PTH101
    os.truncate(docs / "a.md", 100_000_000)
    assert index.fingerprint() != before


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 12)), max_size=40))
def test_a_change_is_built_once_and_never_later_than_the_longest_wait(looks: Sequence[tuple[str, int]]) -> None:
    debounce, now, pending_since = Debounce(10.0), 0.0, None
    for fingerprint, pause in looks:
        now += pause
        is_changed = fingerprint != debounce.built
        pending_since = (now if pending_since is None else pending_since) if is_changed else None
        is_due = debounce.is_due(fingerprint, now)
        assert not is_due or is_changed
        if pending_since is not None and now - pending_since >= 10:
            assert is_due
        if is_due:
            debounce.note_built(fingerprint)
            pending_since = None
