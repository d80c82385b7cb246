"""An index in a file: the same hits, whatever the texts; and no file that is not whole is used."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.retrieval import Chunk, Corpus
from jackfield_documents import Shelf
from jackfield_documents.analyzer import Analyzer
from jackfield_keyword_search.index import Index
from jackfield_keyword_search.searcher import KeywordSearcher

ANALYZER = Analyzer()
WORDS = st.sampled_from(
    ["tide", "tides", "flood", "über", "潮汐", "高潮", "U.S.A.", "3.11", "a", "snake_case", "\udcff"]
)
TEXTS = st.lists(st.lists(WORDS, max_size=6).map(" ".join), max_size=8)


def chunks_of(texts: Sequence[str]) -> tuple[Chunk, ...]:
    return tuple(Chunk(str(number), "x.md", text, number, 1) for number, text in enumerate(texts))


@given(TEXTS, st.lists(WORDS, max_size=3).map(" ".join))
def test_an_index_from_a_file_finds_what_it_found_before(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], query: str
) -> None:
    path = tmp_path_factory.mktemp("index") / "words"
    index = Index(chunks_of(texts), ANALYZER)
    index.write(path)
    again = Index.from_file(path, ANALYZER)
    assert again.search([query], 5) == index.search([query], 5)
    assert dict(again._terms) == dict(index._terms)


NUMBERED = st.lists(st.integers(0, 30), unique=True, max_size=12).map(sorted)


def numbered(numbers: list[int], texts: list[str]) -> tuple[Chunk, ...]:
    """Chunks with ids, of which each always has the same text."""
    return tuple(Chunk(f"id{number}", "x.md", texts[number], number, 1) for number in numbers)


@given(st.lists(st.lists(WORDS, max_size=6).map(" ".join), min_size=31, max_size=31), NUMBERED, NUMBERED, st.booleans())
def test_an_index_that_is_changed_is_what_a_new_one_would_be(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], old: list[int], new: list[int], from_file: bool
) -> None:
    index = Index(numbered(old, texts), ANALYZER, k1=1.2, b=0.6)
    if from_file:
        path = tmp_path_factory.mktemp("index") / "words"
        index.write(path)
        index = Index.from_file(path, ANALYZER)
    changed = index.changed(numbered(new, texts), k1=1.2, b=0.6)
    is_worth_it = 2 * len(set(new) - set(old)) <= len(new)
    assert (changed is not None) == is_worth_it
    if changed:
        fresh = Index(numbered(new, texts), ANALYZER, k1=1.2, b=0.6)
        assert set(changed._terms) == set(fresh._terms)
        for word in ("tide", "flood", "über", "潮汐", "高潮", "snake_case", "tide flood 3.11"):
            assert changed.search([word], 20) == fresh.search([word], 20)
        again = changed.changed(numbered(old, texts), k1=1.2, b=0.6)
        assert again is None or again.search(["tide flood"], 20) == Index(
            numbered(old, texts), ANALYZER, k1=1.2, b=0.6
        ).search(["tide flood"], 20)


@pytest.mark.parametrize("size", [1, 3])
def test_an_index_that_is_doubled_is_what_a_new_one_would_be(size: int) -> None:
    texts = ["tide flood", "flood", "low tide", "neap low flood", "tide", "spring flood tide low"]
    chunks = numbered(list(range(2 * size)), texts)
    changed = Index(chunks[:size], ANALYZER).changed(chunks, k1=1.5, b=0.75)
    assert changed
    fresh = Index(chunks, ANALYZER)
    for word in ("tide", "flood", "low", "neap", "spring"):
        assert changed.search([word], 9) == fresh.search([word], 9)


@pytest.mark.parametrize(("kept", "added", "is_worth_it"), [(3, 3, True), (3, 4, False), (0, 0, True), (0, 1, False)])
def test_an_index_is_changed_if_at_most_half_of_the_chunks_are_new(kept: int, added: int, is_worth_it: bool) -> None:
    texts = ["tide"] * 20
    index = Index(numbered(list(range(10)), texts), ANALYZER)
    chunks = numbered([*range(kept), *range(10, 10 + added)], texts)
    assert (index.changed(chunks, k1=1.5, b=0.75) is not None) == is_worth_it


def test_chunks_that_cannot_be_told_apart_or_change_places_are_indexed_anew() -> None:
    one, two, three = (Chunk(f"id{n}", "x.md", "tide", n, 1) for n in range(3))
    index = Index((one, two, three), ANALYZER)
    settings = {"k1": 1.5, "b": 0.75}
    assert index.changed((one, three), **settings)
    assert index.changed((three, one), **settings) is None
    assert index.changed((one, one), **settings) is None
    assert Index((one, one), ANALYZER).changed((one,), **settings) is None


def test_ids_of_any_characters_are_known_again(tmp_path: Path) -> None:
    ids = ["a\rb", "c\x0bd", "e\u2028f", "g\udcffh", "", "i j"]
    chunks = [Chunk(id_, "x.md", f"tide {number}", number, 1) for number, id_ in enumerate(ids)]
    Index(chunks, ANALYZER).write(tmp_path / "words")
    changed = Index.from_file(tmp_path / "words", ANALYZER).changed(chunks[:-1], k1=1.5, b=0.75)
    assert changed
    assert [number for number, _ in changed.search(["tide"], 9)] == list(range(len(ids) - 1))


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "words"
    Index(chunks_of(["high tide", "low tide", "flood"]), ANALYZER).write(path)
    return path


def test_a_file_of_another_length_is_refused(written: Path) -> None:
    whole = written.read_bytes()
    for content in [*(whole[:length] for length in [0, 1, 100, 4095, 4096, 4097, len(whole) - 1]), whole + b"\0"]:
        written.write_bytes(content)
        with pytest.raises(ValueError, match=r".*"):
            Index.from_file(written, ANALYZER)


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole.replace(b'"version": 1', b'"version": 2'),
        lambda whole: whole.replace(b"jackfield-keyword-search", b"jackfield-keyword-search"[::-1]),
        lambda whole: whole.replace(b'"arrays"', b'"arroys"'),
        lambda whole: whole.replace(b'"weights"', b'"weighed"'),
        lambda whole: b"\xff" * len(whole),
        lambda whole: b"[]".ljust(len(whole)),
    ],
)
def test_a_file_of_something_else_is_refused(written: Path, damage: Callable[[bytes], bytes]) -> None:
    written.write_bytes(damage(written.read_bytes()))
    with pytest.raises(ValueError, match=r".*"):
        Index.from_file(written, ANALYZER)


@dataclass(frozen=True)
class OnDisk(Corpus):
    """A corpus that has a shelf."""

    shelf: Shelf | None = None


class TestTheShelf:
    def test_an_index_is_built_once_for_all_processes(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        corpus = self.corpus(tmp_path, "high tide", "flood")
        assert self.found(corpus) == ["high tide"]
        monkeypatch.setattr(KeywordSearcher, "build_index", None)  # another process, which need not build it
        assert self.found(corpus) == ["high tide"]

    def test_one_that_is_damaged_is_built_again(self, tmp_path: Path) -> None:
        corpus = self.corpus(tmp_path, "high tide", "flood")
        self.found(corpus)
        (file,) = tmp_path.iterdir()
        whole = file.read_bytes()
        file.unlink()
        file.write_bytes(whole[:-1])
        assert self.found(corpus) == ["high tide"]
        assert next(tmp_path.iterdir()).read_bytes() == whole

    def test_one_of_other_content_is_changed_and_what_is_known_is_not_read_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.found(self.corpus(tmp_path, "high tide", "flood", "low tide"))
        monkeypatch.setattr(KeywordSearcher, "build_index", None)
        assert self.found(self.corpus(tmp_path, "high tide", "low tide", "neap tide")) == [
            "high tide",
            "low tide",
            "neap tide",
        ]

    def test_one_that_is_changed_has_the_settings_of_its_searcher(self, tmp_path: Path) -> None:
        settings = {"k1": 2.5, "b": 0.1}
        texts = ("tide and tide and tide", "tide", "flood tide", "low tide for many words of a long chunk")
        self.found(self.corpus(tmp_path, *texts[:3]), **settings)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(KeywordSearcher, "build_index", None)
            kept = self.scores(self.corpus(tmp_path, *texts), **settings)
        assert kept == self.scores(Corpus(self.corpus(tmp_path, *texts).chunks), **settings)
        assert kept != self.scores(Corpus(self.corpus(tmp_path, *texts).chunks))

    @pytest.mark.parametrize("change", ["k1", "b", "chinese", "jackfield-keyword-search", "jackfield-documents"])
    def test_one_of_another_setting_or_version_is_not_used(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
    ) -> None:
        self.found(self.corpus(tmp_path, "high tide"))
        of_other = {"k1": 2.0, "b": 0.5, "chinese": "bigrams"}
        if change not in of_other:
            true = metadata.version
            monkeypatch.setattr(metadata, "version", lambda name: "9" if name == change else true(name))
        before = set(tmp_path.iterdir())
        self.found(self.corpus(tmp_path, "high tide"), **({change: of_other[change]} if change in of_other else {}))
        assert len(set(tmp_path.iterdir()) - before) == 1

    def test_queries_are_split_as_the_chunks_were_also_for_an_index_from_a_file(self, tmp_path: Path) -> None:
        corpus = self.corpus(tmp_path, "研究生命的起源", "研究生活", "生命")

        def scores(chinese: str) -> list[float]:
            hits = asyncio.run(KeywordSearcher(chinese=chinese).search("研究生命", corpus, limit=5))
            return [hit.score for hit in hits]

        for chinese in ("words", "bigrams"):
            assert scores(chinese) == scores(chinese), "the second one is from a file"
        assert scores("words") != scores("bigrams")

    def test_what_a_killed_process_has_left_behind_goes_after_an_hour(self, tmp_path: Path) -> None:
        self.found(self.corpus(tmp_path, "high tide"))
        (file,) = tmp_path.iterdir()
        old, young = (tmp_path / f".{file.name.partition('.')[0]}-{name}" for name in ("old", "young"))
        for path in (old, young):
            path.touch()
        os.utime(old, (1_600_000_000, 1_600_000_000))
        self.found(self.corpus(tmp_path, "low tide"))
        assert (old.exists(), young.exists()) == (False, True)

    def test_the_one_of_other_content_goes_and_that_of_other_settings_stays(self, tmp_path: Path) -> None:
        self.found(self.corpus(tmp_path, "high tide"))
        self.found(self.corpus(tmp_path, "high tide"), k1=2.0)
        self.found(self.corpus(tmp_path, "low tide"))
        assert len(list(tmp_path.iterdir())) == 2
        if os.name == "posix":
            assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}

    def corpus(self, folder: Path, *texts: str) -> Corpus:
        chunks = tuple(Chunk(text, "x.md", text, number, 1) for number, text in enumerate(texts))
        return OnDisk(chunks, Shelf(folder, Corpus(chunks).content_hash))

    def scores(self, corpus: Corpus, **settings: float) -> list[tuple[str, float]]:
        hits = asyncio.run(KeywordSearcher(settings).search("tide", corpus, limit=5))
        return [(hit.chunk.text, hit.score) for hit in hits]

    def found(self, corpus: Corpus, **settings: Any) -> list[str]:
        hits = asyncio.run(KeywordSearcher(settings).search("tide", corpus, limit=5))
        return [hit.chunk.text for hit in hits]
