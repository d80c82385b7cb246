"""Test what is promised before a component is used: its descriptor, and the limits of its settings."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Config
from jackfield_keyword_search.plugin import searchers
from jackfield_keyword_search.searcher import KeywordConfig
from tests.support.promises import check_limit, promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "SearcherSpec keyword_search": {"effects": frozenset({"files"})},
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    assert promises_of(searchers()) == PROMISES


@pytest.mark.parametrize(
    ("config", "setting", "last", "beyond"),
    [
        (KeywordConfig, "k1", 0, -0.1),
        (KeywordConfig, "b", 0, -0.1),
        (KeywordConfig, "b", 1, 2),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else str(value),
)
def test_a_setting_takes_its_last_value_and_refuses_the_next(
    config: type[Config], setting: str, last: object, beyond: object
) -> None:
    check_limit(config, setting, last, beyond, {})
