"""Test what is promised before a component is used: its descriptor, and its settings."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Config
from jackfield_budget.config import BudgetConfig
from jackfield_budget.plugin import processors
from tests.support.promises import check_limit, defaults_of, promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "ProcessorSpec budget": {
        "effects": frozenset({"files"}),
        "phase": "transport",
        "after": ("retry",),
        "before": ("rate_limits",),
    },
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    specs: list[Any] = [*processors()]
    assert promises_of(specs) == PROMISES


@pytest.mark.parametrize(
    ("config", "defaults"),
    [
        (
            BudgetConfig,
            {
                "limit": None,
                "currency": "USD",
                "per": "process",
                "scope": "",
                "path": None,
                "prices": None,
                "unknown": None,
                "lease_s": 3600.0,
            },
        ),
    ],
)
def test_the_settings_have_these_defaults(config: type[Config], defaults: dict[str, object]) -> None:
    assert defaults_of(config, defaults, {}) == defaults


@pytest.mark.parametrize(
    ("config", "setting", "last", "beyond"),
    [
        (BudgetConfig, "limit", 0.01, 0),
        (BudgetConfig, "path", "x", ""),
        (BudgetConfig, "lease_s", 0.01, 0),
    ],
)
def test_the_settings_have_these_limits(config: type[Config], setting: str, last: object, beyond: object) -> None:
    check_limit(config, setting, last, beyond, {})
