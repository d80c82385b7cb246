"""Sources and warnings of an answer: what is one, and how a source is shown."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.results import Source, sources_in, warnings_in


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (Source("/srv/a.pdf"), "a.pdf"),
        (Source("/srv/a.pdf", 3), "a.pdf, page 3"),
        (Source("https://h/x/a.pdf?k=1", 3), "a.pdf, page 3"),
        (Source("/srv/s.zip", 2, "a.pdf"), "s.zip › a.pdf, page 2"),
    ],
    ids=str,
)
def test_a_source_is_told_by_its_last_part(source: Source, text: str) -> None:
    assert str(source) == text


def test_only_what_is_a_source_or_a_warning_is_one() -> None:
    listed: list[Any] = [
        "a", {"location": "b"}, {"location": "c", "page": 3, "part": "p"}, {"location": "d", "page": "3", "part": 5},
        {"location": 5}, {}, 5, None,
    ]  # fmt: skip
    assert sources_in({"sources": listed}) == [Source("a"), Source("b"), Source("c", 3, "p"), Source("d")]
    assert sources_in({"sources": tuple(listed[:1])}) == [Source("a")]
    assert (sources_in({}), sources_in({"sources": "abc"})) == ([], [])
    assert warnings_in({"warnings": ["a", 5, "b"]}) == ["a", "b"]
    assert (warnings_in({}), warnings_in({"warnings": "abc"}), warnings_in({"warnings": ("a",)})) == ([], [], ["a"])
