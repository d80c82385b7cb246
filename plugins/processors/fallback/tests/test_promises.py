"""Test what is promised before a component is used: its descriptor, and its settings."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Config
from jackfield_fallback.config import FallbackConfig
from jackfield_fallback.plugin import processors
from tests.support.promises import check_limit, defaults_of, promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "ProcessorSpec fallback": {
        "effects": frozenset({"network"}),
        "phase": "format",
        "after": ("redaction",),
        "before": ("call_format",),
    },
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    specs: list[Any] = [*processors()]
    assert promises_of(specs) == PROMISES


@pytest.mark.parametrize(
    ("config", "defaults"),
    [
        (
            FallbackConfig,
            {
                "overload": (),
                "rate_limit": (),
                "timeout": (),
                "connection": (),
                "response": (),
                "context": (),
                "content_filter": (),
                "unsupported_input": (),
                "auth": (),
                "not_found": (),
                "any": (),
                "cooldown_s": None,
                "max_rest_s": 600.0,
            },
        ),
    ],
)
def test_the_settings_have_these_defaults(config: type[Config], defaults: dict[str, object]) -> None:
    assert defaults_of(config, defaults, {}) == defaults


@pytest.mark.parametrize(
    ("config", "setting", "last", "beyond"),
    [
        (FallbackConfig, "cooldown_s", 0.01, 0),
        (FallbackConfig, "max_rest_s", 0.01, 0),
        (FallbackConfig, "max_rest_s", 1.0, float("inf")),
    ],
)
def test_the_settings_have_these_limits(config: type[Config], setting: str, last: object, beyond: object) -> None:
    check_limit(config, setting, last, beyond, {})
