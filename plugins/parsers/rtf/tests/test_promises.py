"""Test what is promised before a component is used: its descriptor."""

from __future__ import annotations

from typing import Any

from jackfield_rtf.plugin import parsers
from tests.support.promises import promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "ParserSpec rtf": {"extensions": ("rtf",), "media_types": ("application/rtf", "text/rtf"), "magic": (b"{\\rtf",)},
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    assert promises_of(parsers()) == PROMISES
