"""Test what is promised before a component is used: its descriptor, and its settings."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Config
from jackfield_rate_limits.config import RateLimitsConfig
from jackfield_rate_limits.plugin import processors
from tests.support.promises import check_limit, defaults_of, promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "ProcessorSpec rate_limits": {"effects": frozenset({"files"}), "phase": "transport", "after": ("retry",)},
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    specs: list[Any] = [*processors()]
    assert promises_of(specs) == PROMISES


@pytest.mark.parametrize(
    ("config", "defaults"),
    [
        (
            RateLimitsConfig,
            {
                "requests_per_minute": None,
                "tokens_per_minute": None,
                "max_concurrency": None,
                "max_wait_s": None,
                "scope": "",
                "path": None,
                "pause_s": 2.0,
                "max_pause_s": 120.0,
                "lease_s": 600.0,
                "media_tokens": 1000,
            },
        ),
    ],
)
def test_the_settings_have_these_defaults(config: type[Config], defaults: dict[str, object]) -> None:
    assert defaults_of(config, defaults, {}) == defaults


@pytest.mark.parametrize(
    ("config", "setting", "last", "beyond"),
    [
        (RateLimitsConfig, "requests_per_minute", 1, 0),
        (RateLimitsConfig, "tokens_per_minute", 1, 0),
        (RateLimitsConfig, "max_concurrency", 1, 0),
        (RateLimitsConfig, "max_wait_s", 0, -0.01),
        (RateLimitsConfig, "path", "x", ""),
        (RateLimitsConfig, "pause_s", 0, -0.01),
        (RateLimitsConfig, "max_pause_s", 0, -0.01),
        (RateLimitsConfig, "max_pause_s", 1.0, float("inf")),
        (RateLimitsConfig, "lease_s", 0.01, 0),
        (RateLimitsConfig, "media_tokens", 0, -1),
    ],
)
def test_the_settings_have_these_limits(config: type[Config], setting: str, last: object, beyond: object) -> None:
    check_limit(config, setting, last, beyond, {})
