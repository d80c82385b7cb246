"""A writer lets go of its index when it ends, and leaves few segments in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from jackfield.retrieval import Chunk
from jackfield_documents.analyzer import Analyzer
from jackfield_tantivy_search import index as index_module
from jackfield_tantivy_search.index import Places, add, made_in, writing


def test_changes_one_after_another_are_merged_and_the_next_writer_begins_at_once(tmp_path: Path) -> None:
    index = made_in(str(tmp_path))
    for number in range(24):
        with writing(index) as writer:
            add(writer, [Chunk(f"c{number}", "x.md", f"text {number}", number, 1)], Analyzer("words"))
            writer.commit()
    index.reload()
    assert index.searcher().num_docs == 24
    assert index.searcher().num_segments < 12


def test_positions_are_the_same_without_a_dict_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [*Places.of([f"c{number}" for number in range(20)]).keys.tolist(), 1, 2**62, 2**63 - 1]
    for most in (20, 19):
        monkeypatch.setattr(index_module, "_MOST_IN_DICT", most)
        places = Places.of([f"c{number}" for number in range(20)])
        found = places.find(keys)
        assert (places._by_key is None) == (most == 19)
        assert (sorted(found[:20]), found[20:]) == (list(range(20)), [-1, -1, -1])
        assert [places.find(places.keys_of([place])) for place in (0, 7, 19)] == [[0], [7], [19]]


def test_a_writer_that_fails_lets_go_of_the_index_and_changes_nothing(tmp_path: Path) -> None:
    index = made_in(str(tmp_path))

    def fail() -> None:
        with writing(index) as writer:
            add(writer, [Chunk("c", "x.md", "text", 0, 1)], Analyzer("words"))
            raise KeyError

    for _ in range(2):
        with pytest.raises(KeyError):
            fail()
    index.reload()
    assert index.searcher().num_docs == 0
