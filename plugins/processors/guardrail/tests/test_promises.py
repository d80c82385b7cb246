"""Test what is promised before a component is used: its descriptor, and its settings."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Config
from jackfield_guardrail.config import GuardrailConfig
from jackfield_guardrail.plugin import processors
from tests.support.promises import defaults_of, promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "ProcessorSpec output_guardrail": {"phase": "output", "effects": frozenset({"network"})},
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    specs: list[Any] = [*processors()]
    assert promises_of(specs) == PROMISES


@pytest.mark.parametrize(
    ("config", "defaults"),
    [
        (GuardrailConfig, {"rules": ()}),
    ],
)
def test_the_settings_have_these_defaults(config: type[Config], defaults: dict[str, object]) -> None:
    assert defaults_of(config, defaults, {}) == defaults
