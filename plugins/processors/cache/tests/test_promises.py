"""Test what is promised before a component is used: its descriptor, and its settings."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Config
from jackfield_cache.config import CacheConfig
from jackfield_cache.plugin import processors
from tests.support.promises import check_limit, defaults_of, promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "ProcessorSpec cache": {"effects": frozenset({"files"}), "phase": "transport", "before": ("retry",)},
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    specs: list[Any] = [*processors()]
    assert promises_of(specs) == PROMISES


@pytest.mark.parametrize(
    ("config", "defaults"),
    [
        (CacheConfig, {"path": None, "scope": "", "ttl_s": None, "max_bytes": 268435456, "only_deterministic": False}),
    ],
)
def test_the_settings_have_these_defaults(config: type[Config], defaults: dict[str, object]) -> None:
    assert defaults_of(config, defaults, {}) == defaults


@pytest.mark.parametrize(
    ("config", "setting", "last", "beyond"),
    [
        (CacheConfig, "path", "x", ""),
        (CacheConfig, "ttl_s", 0.01, 0),
        (CacheConfig, "max_bytes", 1, 0),
    ],
)
def test_the_settings_have_these_limits(config: type[Config], setting: str, last: object, beyond: object) -> None:
    check_limit(config, setting, last, beyond, {})
