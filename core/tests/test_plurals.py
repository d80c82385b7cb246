"""A count agrees with its noun."""

from __future__ import annotations

import pytest

from jackfield.plurals import format_count


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 pages, 0 more entries"),
        (1, "1 page, 1 more entry"),
        (2, "2 pages, 2 more entries"),
        (1204, "1,204 pages, 1,204 more entries"),
    ],
)
def test_a_count_agrees_with_its_noun(count: int, shown: str) -> None:
    assert f"{format_count(count, 'page')}, {format_count(count, 'more entry', 'more entries')}" == shown
