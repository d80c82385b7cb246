"""Test what is promised before a component is used: its descriptor, and its settings."""

from __future__ import annotations

from typing import Any

from jackfield_offline.plugin import llms
from tests.support.promises import promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "LLMSpec offline": {"models": ("extractive",)},
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    specs: list[Any] = [*llms()]
    assert promises_of(specs) == PROMISES
