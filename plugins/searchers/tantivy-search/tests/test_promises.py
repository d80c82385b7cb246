"""Test what is promised before a component is used: its descriptor."""

from __future__ import annotations

from typing import Any

from jackfield_tantivy_search.plugin import searchers
from tests.support.promises import promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "SearcherSpec tantivy_search": {"effects": frozenset({"files"})},
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    assert promises_of(searchers()) == PROMISES
