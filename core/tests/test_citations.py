"""Citations: what is one, how it is shown, and how it is written and read again."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.citations import Citation, citations_in

CITED = Citation(
    mark="1",
    location="/srv/s.zip",
    part="a.pdf",
    page=3,
    headings=("One", "Two"),
    passage="the passage",
    start=4,
    end=11,
    quote="pas\nsage",
    answer_ranges=((2, 5), (9, 12)),
)


def test_a_citation_is_shown_and_written_and_read() -> None:
    assert str(CITED) == "[1] s.zip › a.pdf, page 3, One › Two: “pas sage”"
    assert str(Citation(mark="2", location="/srv/a.md")) == "[2] a.md"
    plain = CITED.to_dict()
    assert citations_in({"citations": [plain]}) == [CITED]
    assert plain["answer_ranges"] == [[2, 5], [9, 12]]
    bare = Citation(mark="2", location="/srv/a.md", answer_ranges=((0, 3),))
    assert {"part", "page"}.isdisjoint(bare.to_dict())
    assert citations_in({"citations": (bare.to_dict(),)}) == [bare]


@pytest.mark.parametrize(
    ("text", "is_there"),
    [("ab[1]efgh[1]", True), ("ab[1]efgh[2]", False), ("ab[1]efgh[1", False), ("", False)],
)
def test_a_citation_is_in_a_text_with_all_its_marks(text: str, is_there: bool) -> None:
    assert CITED.is_in(text) is is_there
    assert not Citation(mark="1", location="a").is_in("[1]")
    assert not Citation(mark="1", location="a", answer_ranges=((3, 3),)).is_in("[1][1]")
    assert not Citation(mark="1", location="a", answer_ranges=((-1, 3),)).is_in("[1][1]")


def test_only_what_is_a_citation_is_one() -> None:
    odd: dict[str, Any] = {
        "mark": "1", "location": "a", "part": 5, "page": "3", "headings": "x", "start": "a", "end": None, "passage": 5,
        "answer_ranges": [[1, 2], [1], "ab", [1, "b"], (3, 4)],
    }  # fmt: skip
    listed = [odd, {"mark": "1", "location": "a"}, {"mark": 1, "location": "a", "answer_ranges": []}, 5]
    assert citations_in({"citations": listed}) == [
        Citation(mark="1", location="a", passage="5", answer_ranges=((1, 2), (3, 4)))
    ]
    assert citations_in({}) == citations_in({"citations": "x"}) == []
