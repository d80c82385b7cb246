"""Test what is promised before a component is used: its descriptor, and its settings."""

from __future__ import annotations

from typing import Any

from jackfield_call_formats.plugin import call_formats
from tests.support.promises import promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "CallFormatSpec nous": {},
    "CallFormatSpec qwen": {},
    "CallFormatSpec qwen3_coder": {},
    "CallFormatSpec react": {},
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    specs: list[Any] = [*call_formats()]
    assert promises_of(specs) == PROMISES
