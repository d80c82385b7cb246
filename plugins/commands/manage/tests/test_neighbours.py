"""Similar names are found without comparing each with each."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from jackfield_manage.judging.neighbours import _variants, differs_by_one

NAMES = st.text("ab_", min_size=1, max_size=5)


@given(NAMES, NAMES)
@example("ab", "ba")
@example("aa", "a")
def test_names_that_differ_by_one_character_share_a_variant(first: str, second: str) -> None:
    if differs_by_one(f"tool.{first}", f"tool.{second}"):
        assert _variants(f"tool.{first}") & _variants(f"tool.{second}")


@given(NAMES)
def test_names_of_two_kinds_are_never_similar(name: str) -> None:
    assert not _variants(f"tool.{name}") & _variants(f"tools.{name}")
    assert not differs_by_one(f"tool.{name}", f"tools.{name}")
