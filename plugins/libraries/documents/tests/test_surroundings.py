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
