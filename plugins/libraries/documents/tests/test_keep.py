"""Values that are costly to compute are kept in memory, and indexes in files beside a corpus."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from jackfield.retrieval import Chunk, Corpus
from jackfield_documents import IndexCache, Kept, OnShelf, Shelf

HOUR_S = 3600


def chunk(number: int) -> Chunk:
    return Chunk(f"a{number}", "a", f"text {number}", number, 10)


# --- in memory ---


def test_what_was_used_last_stays_up_to_the_size_and_the_latest_in_any_case() -> None:
    kept: Kept[str, str] = Kept(10, size_of=len)
    made: list[str] = []

    def use(name: str, size: int) -> None:
        kept.get(name, lambda: made.append(name) or name * size)  # type: ignore[func-returns-value]

    for name in ("a", "b", "a"):
        use(name, 5)
    use("c", 4)  # 14: the one that was not used for longest goes, which is b
    assert [kept.peek(name) is not None for name in "abc"] == [True, False, True]
    use("d", 1)  # exactly 10
    assert [kept.peek(name) is not None for name in "acd"] == [True, True, True]
    use("e", 50)
    assert [kept.peek(name) is not None for name in "acde"] == [False, False, False, True]
    use("f", 3)
    use("g", 7)  # the size of what went is given back
    assert [kept.peek(name) is not None for name in "efg"] == [False, True, True]
    assert made == ["a", "b", "c", "d", "e", "f", "g"]


def test_a_look_neither_computes_nor_counts_as_a_use() -> None:
    kept: Kept[str, int] = Kept(2)
    assert kept.peek("a") is None
    for name in ("a", "b"):
        kept.get(name, lambda: 1)
    assert kept.peek("a") == 1
    kept.get("c", lambda: 1)
    assert kept.peek("a") is None


def test_an_error_is_not_kept_and_another_thread_that_waited_tries_itself() -> None:
    kept: Kept[str, int] = Kept(4)
    began, ends, results = threading.Event(), threading.Event(), list[object]()

    def fail() -> int:
        began.set()
        ends.wait(60)
        raise ValueError("broken")

    def first() -> None:
        with pytest.raises(ValueError, match="broken"):
            kept.get("a", fail)
        results.append("failed")

    one = threading.Thread(target=first)
    one.start()
    assert began.wait(60)
    other = threading.Thread(target=lambda: results.append(kept.get("a", lambda: 7)))
    other.start()
    assert kept.peek("a") is None, "a look does not wait"
    ends.set()
    for thread in (one, other):
        thread.join(60)
    assert sorted(map(str, results)) == ["7", "failed"]
    assert kept.get("a", lambda: 8) == 7


# --- on disk ---


def _read(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if not text.endswith("."):
        raise ValueError("incomplete")
    return text


def _write(value: str, path: Path) -> None:
    path.write_text(value, encoding="utf-8")


INDEX = OnShelf("words-1", _read, _write)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path, "c" * 64)


def files(shelf: Shelf) -> list[str]:
    return sorted(path.name for path in shelf.folder.iterdir())


@pytest.mark.parametrize(("text", "expected"), [(None, None), ("half", None), ("whole.", "whole.")])
def test_only_a_complete_index_of_the_content_is_loaded(text: str | None, expected: str | None, shelf: Shelf) -> None:
    (shelf.folder / f"words-1.{'d' * 32}").write_text("of other content.")
    (shelf.folder / f"words-2.{'c' * 32}").write_text("of other settings.")
    if text:
        (shelf.folder / f"words-1.{'c' * 32}").write_text(text)
    assert shelf.load(INDEX) == expected


def test_an_index_that_is_saved_replaces_those_of_other_content_and_no_others(shelf: Shelf) -> None:
    for name in (
        f"words-1.{'d' * 32}",
        f"words-10.{'d' * 32}",
        f"words-2.{'d' * 32}",
        ".words-1-young",
        ".words-1-old",
        ".words-2-old",
    ):
        (shelf.folder / name).write_text("x")
    past = time.time() - HOUR_S - 60
    for name in (".words-1-old", ".words-2-old"):
        os.utime(shelf.folder / name, (past, past))
    shelf.save("new.", INDEX)
    others = [f"words-10.{'d' * 32}", f"words-2.{'d' * 32}", ".words-2-old"]
    assert files(shelf) == sorted([f"words-1.{'c' * 32}", ".words-1-young", *others])
    assert shelf.load(INDEX) == "new."


def test_an_index_that_cannot_be_written_leaves_the_earlier_one_and_no_file(shelf: Shelf) -> None:
    def fail(value: str, path: Path) -> None:
        _write(value[:1], path)
        raise OSError("disk full")

    shelf.save("old.", INDEX)
    with pytest.raises(OSError, match="disk full"):
        shelf.save("new.", OnShelf(INDEX.name, _read, fail))
    assert (files(shelf), shelf.load(INDEX)) == ([f"words-1.{'c' * 32}"], "old.")


def test_an_index_of_other_content_is_changed_if_one_of_them_can_be(shelf: Shelf) -> None:
    def change(value: str, chunks: Sequence[Chunk]) -> str | None:
        return f"{value}{len(chunks)}." if value.startswith("good") else None

    changing = OnShelf(INDEX.name, _read, _write, change)
    assert shelf.changed([chunk(0)], changing) is None
    (shelf.folder / f"words-10.{'a' * 32}").write_text("good, of another searcher.")
    assert shelf.changed([chunk(0)], changing) is None
    for name, text in (("a" * 32, "half"), ("b" * 32, "bad."), ("d" * 32, "good."), ("e" * 32, "good too.")):
        (shelf.folder / f"words-1.{name}").write_text(text)
    assert shelf.changed([chunk(0), chunk(1)], changing) == "good.2."
    assert shelf.changed([chunk(0)], INDEX) is None, "an index that cannot be changed is built"


@dataclass(frozen=True)
class OnDisk(Corpus):
    """A corpus with a folder for its indexes."""

    shelf: Shelf | None = None


@pytest.mark.parametrize("where", ["in memory", "on disk", "never saved"])
def test_an_index_is_built_once_and_saved_only_beside_a_corpus_on_disk(where: str, shelf: Shelf) -> None:
    built: list[int] = []

    def build(chunks: Sequence[Chunk]) -> str:
        built.append(len(chunks))
        return "built."

    corpus = Corpus((chunk(0),)) if where == "in memory" else OnDisk((chunk(0),), shelf)
    kept = None if where == "never saved" else INDEX
    indexes: IndexCache[str] = IndexCache()
    assert indexes.peek(corpus) is None
    assert [indexes.get(corpus, build, kept) for _ in range(2)] == ["built."] * 2
    assert (indexes.peek(corpus), built) == ("built.", [1])
    assert bool(files(shelf)) is (where == "on disk")
    assert IndexCache[str]().get(corpus, build, kept) == "built."
    assert built == ([1] if where == "on disk" else [1, 1])


def test_the_indexes_of_eight_corpora_stay_in_memory() -> None:
    indexes, corpora = IndexCache[str](), [Corpus((chunk(number),)) for number in range(9)]
    for corpus in corpora:
        indexes.get(corpus, lambda _: "built.")
    assert [indexes.peek(corpus) for corpus in corpora] == [None, *["built."] * 8]


def test_a_look_for_an_index_computes_no_hash() -> None:
    corpus = Corpus((chunk(0),))
    assert IndexCache[str]().peek(corpus) is None
    assert "content_hash" not in vars(corpus)


def test_a_changed_index_is_saved_for_the_new_content(shelf: Shelf) -> None:
    changing = OnShelf(INDEX.name, _read, _write, lambda value, _: f"{value}changed.")
    (shelf.folder / f"words-1.{'d' * 32}").write_text("old.")
    index = IndexCache[str]().get(OnDisk((chunk(0),), shelf), lambda _: "built.", changing)
    assert (index, files(shelf)) == ("old.changed.", [f"words-1.{'c' * 32}"])
