from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jackfield.retrieval import Block, Document
from jackfield_documents import cells_of, pipe_table, places_of, text_of


def document(*blocks: Block) -> Document:
    return Document("x.md", blocks, content_hash="")


def test_each_block_has_its_headings_and_its_page() -> None:
    places = places_of(
        document(
            Block("before", page=1),
            Block("A", kind="heading", level=1, page=1),
            Block("B", kind="heading", level=2, page=2),
            Block("text", page=2),
            Block("C", kind="heading", level=2, page=3),
            Block("D", kind="heading", level=1, page=3),
        )
    )
    assert [(place.block.text, place.page, place.headings) for place in places] == [
        ("before", 1, ()),
        ("A", 1, ("A",)),
        ("B", 2, ("A", "B")),
        ("text", 2, ("A", "B")),
        ("C", 3, ("A", "C")),
        ("D", 3, ("D",)),
    ]


def test_a_block_without_a_page_is_on_that_of_the_block_before_it_or_on_the_first_of_its_file() -> None:
    blocks = [(None, ""), (2, ""), (None, ""), (3, ""), (None, "a.pdf"), (5, "a.pdf"), (4, "a.pdf"), (None, "b.md")]
    places = places_of(document(*(Block("x", page=page, part=part) for page, part in [*blocks, (None, "")])))
    assert [place.page for place in places] == [2, 2, 2, 3, 5, 5, 4, None, 2]


def test_headings_of_ever_deeper_levels_do_not_pile_up() -> None:
    places = list(places_of(document(*(Block(f"{level}", kind="heading", level=level) for level in range(1, 500)))))
    assert places[8].headings == tuple(map(str, range(1, 10)))
    assert places[-1].headings == (*map(str, range(1, 9)), "499")


def test_only_the_names_of_its_own_files_are_above_a_text_and_a_heading_is_shortened() -> None:
    outer, inner = {"part": "a.zip"}, {"part": "a.zip › b.md"}
    places = places_of(
        document(
            Block("Before", kind="heading", level=3),
            Block("a.zip", kind="heading", level=1, **outer),
            Block("b.md", kind="heading", level=2, **inner),
            Block("x" * 201, kind="heading", level=3, **inner),
            Block("inside", **inner),
            Block("outside", **outer),
            Block("after"),
        )
    )
    assert {place.block.text: place.headings for place in places if place.block.kind != "heading"} == {
        "inside": ("a.zip", "b.md", "x" * 200), "outside": ("a.zip",), "after": (),
    }  # fmt: skip


@given(st.lists(st.text(max_size=6), max_size=8))
def test_the_offsets_lead_to_the_texts(texts: list[str]) -> None:
    made = document(*map(Block, texts))
    whole = text_of(made)
    places = list(places_of(made))
    assert [place.block.text for place in places] == [text for text in texts if text.strip()]
    assert all(whole[place.start :].startswith(place.block.text) for place in places)
    assert not places or places[-1].start + len(places[-1].block.text) == len(whole)


CELLS = st.text(st.sampled_from("ab|\\ \n中"), min_size=1, max_size=5).filter(str.strip)


@given(st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1)))
def test_the_cells_of_a_table_are_those_that_were_written(rows: list[list[str]]) -> None:
    cleaned = [["\n".join(filter(None, map(str.strip, cell.strip().splitlines()))) for cell in row] for row in rows]
    assert cells_of(Block(pipe_table(rows), kind="table")) == cleaned


def test_other_blocks_have_no_cells() -> None:
    assert cells_of(Block("| a |\n|---|")) == []
