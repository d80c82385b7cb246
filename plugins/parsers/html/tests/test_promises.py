"""Test what is promised before a component is used: its descriptor."""

from __future__ import annotations

from typing import Any

from jackfield_html.plugin import parsers
from tests.support.promises import promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "ParserSpec html": {
        "extensions": ("html", "htm", "xhtml", "xht"),
        "media_types": ("text/html", "application/xhtml+xml"),
    },
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    assert promises_of(parsers()) == PROMISES
