"""Test what is promised before a component is used: its descriptor, and the limits of its settings."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Config
from jackfield_pgvector_search.plugin import searchers
from jackfield_pgvector_search.searcher import PgvectorConfig
from tests.support.promises import check_limit, promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "SearcherSpec pgvector_search": {"secrets": ("PGVECTOR_DSN",), "effects": frozenset({"network"})},
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    assert promises_of(searchers()) == PROMISES


@pytest.mark.parametrize(
    ("config", "setting", "last", "beyond"),
    [
        (PgvectorConfig, "min_score", -1, -2),
        (PgvectorConfig, "min_score", 1, 2),
        (PgvectorConfig, "max_chars", 1, 0),
        (PgvectorConfig, "approximate_from", 1, 0),
        (PgvectorConfig, "connections", 1, 0),
        (PgvectorConfig, "timeout_s", 0.001, 0),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else str(value),
)
def test_a_setting_takes_its_last_value_and_refuses_the_next(
    config: type[Config], setting: str, last: object, beyond: object
) -> None:
    check_limit(config, setting, last, beyond, {})
