"""The chunks around hits: neighbours and sections, within the limit, and none twice."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from jackfield.retrieval import Chunk, Corpus, Hit, Where
from jackfield_documents import with_surroundings

# Two documents of ten chunks; sections of four, four and two chunks, the second one with a sub-section.
HEADINGS = [("A",)] * 4 + [("B",), ("B",), ("B", "sub"), ("B", "sub")] + [("C",)] * 2
CORPUS = Corpus(
    tuple(
        Chunk(f"{name}{number}", name, f"text {number}", number, 10, headings=HEADINGS[number])
        for name in "xy"
        for number in range(10)
    )
)


def around(*ids: str, max_tokens: int = 10_000, where: Where | None = None, **options: int) -> list[str]:
    hits = [Hit(chunk, 1.0) for id_ in ids for chunk in CORPUS.chunks if chunk.id == id_]
    settings = {"neighbours": options.get("neighbours", 0), "whole_sections": bool(options.get("whole_sections", 0))}
    found = with_surroundings(hits, [CORPUS], max_tokens=max_tokens, where=where, **settings)  # type: ignore[arg-type]
    return [hit.chunk.id for hit in found]


def test_neighbours_are_nearest_first_and_of_the_same_document() -> None:
    assert around("x5", neighbours=2) == ["x5", "x4", "x6", "x3", "x7"]
    assert around("x9", neighbours=2) == ["x9", "x8", "x7"]
    assert around("y0", neighbours=1) == ["y0", "y1"]


def test_a_section_has_its_sub_sections_and_ends_at_the_next_heading() -> None:
    assert sorted(around("x5", whole_sections=1)) == ["x4", "x5", "x6", "x7"]
    assert sorted(around("x7", whole_sections=1)) == ["x6", "x7"]
    assert sorted(around("x7", whole_sections=1, neighbours=2)) == ["x5", "x6", "x7", "x8", "x9"]
    plain = Corpus(tuple(Chunk(str(number), "z", "t", number, 1) for number in range(3)))
    assert len(with_surroundings([Hit(plain.chunks[1], 1.0)], [plain], whole_sections=True, max_tokens=99)) == 1


def test_added_chunks_fulfil_the_filter() -> None:
    assert around("x5", neighbours=2, where=Where.parse({"heading": "sub"})) == ["x5", "x6", "x7"]


@given(
    st.lists(st.sampled_from([chunk.id for chunk in CORPUS.chunks]), unique=True, max_size=6),
    st.integers(0, 4),
    st.integers(0, 1),
    st.integers(1, 250),
)
def test_no_chunk_comes_twice_and_the_limit_holds(
    ids: Sequence[str], neighbours: int, sections: int, most: int
) -> None:
    found = around(*ids, neighbours=neighbours, whole_sections=sections, max_tokens=most)
    assert len(found) == len(set(found))
    assert 10 * (len(found) - 1) <= most  # the last one is the one that does not fit, of which a part is shown
    everything = around(*ids, neighbours=neighbours, whole_sections=sections)
    assert found == everything[: len(found)]
    assert set(ids) <= set(everything)


def test_the_chunk_that_exceeds_the_tokens_is_the_last() -> None:
    assert [len(around("x5", neighbours=4, max_tokens=tokens)) for tokens in (9, 10, 19, 20, 21)] == [1, 2, 2, 3, 3]


def test_only_a_hit_says_which_searcher_found_it() -> None:
    hit = Hit(CORPUS.chunks[5], 0.5, {"words": 1})
    found = with_surroundings([hit], [CORPUS], neighbours=1, max_tokens=1000)
    assert [(one.chunk.id, one.score, dict(one.ranks)) for one in found] == [
        ("x5", 0.5, {"words": 1}), ("x4", 0.5, {}), ("x6", 0.5, {}),
    ]  # fmt: skip


def test_neighbours_are_those_in_the_corpus_that_has_the_chunk() -> None:
    other = Corpus(tuple(Chunk(f"other{number}", "x", "older text", number, 10) for number in range(10)))
    for corpora in ([CORPUS, other], [other, CORPUS]):
        found = with_surroundings([Hit(CORPUS.chunks[5], 1.0)], corpora, neighbours=1, max_tokens=1000)
        assert [one.chunk.id for one in found] == ["x5", "x4", "x6"]


def test_a_hit_needs_no_filter_and_a_neighbour_of_another_file_in_the_archive_is_none() -> None:
    parts = Corpus(tuple(Chunk(f"z{n}", "z", f"text {n}", n, 10, part="ab"[n > 1]) for n in range(4)))
    [hit] = [Hit(chunk, 1.0) for chunk in parts.chunks if chunk.id == "z1"]
    found = with_surroundings([hit], [CORPUS, parts], neighbours=3, max_tokens=1000)
    assert [(one.chunk.id, one.score) for one in found] == [("z1", 1.0), ("z0", 1.0)]
    filtered = with_surroundings([hit], [parts], neighbours=3, max_tokens=1000, where=Where.parse({"heading": "none"}))
    assert [one.chunk.id for one in filtered] == ["z1"]
