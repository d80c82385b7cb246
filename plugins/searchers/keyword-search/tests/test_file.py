"""An index in a file: the same hits, whatever the texts; and no file that is not whole is used."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.retrieval import Chunk, Corpus
from jackfield_documents import Shelf
from jackfield_keyword_search.index import Index
from jackfield_keyword_search.searcher import KeywordSearcher
from jackfield_keyword_search.words import Analyzer

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


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "words"
    Index(chunks_of(["high tide", "low tide", "flood"]), ANALYZER).write(path)
    return path


def test_a_file_cut_short_anywhere_is_refused(written: Path) -> None:
    whole = written.read_bytes()
    for length in [0, 1, 100, 4095, 4096, 4097, len(whole) - 1]:
        written.write_bytes(whole[:length])
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

    def test_the_one_of_other_content_goes_and_that_of_other_settings_stays(self, tmp_path: Path) -> None:
        self.found(self.corpus(tmp_path, "high tide"))
        self.found(self.corpus(tmp_path, "high tide"), k1=2.0)
        self.found(self.corpus(tmp_path, "low tide"))
        assert len(list(tmp_path.iterdir())) == 2
        if os.name == "posix":
            assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}

    def corpus(self, folder: Path, *texts: str) -> Corpus:
        plain = Corpus(chunks_of(texts))
        hashed = Corpus(tuple(Chunk(text, "x.md", text, n, 1) for n, text in enumerate(texts))).content_hash
        return OnDisk(plain.chunks, Shelf(folder, hashed))

    def found(self, corpus: Corpus, **settings: float) -> list[str]:
        hits = asyncio.run(KeywordSearcher(settings).search("tide", corpus, limit=5))
        return [hit.chunk.text for hit in hits]
