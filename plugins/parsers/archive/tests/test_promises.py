"""Test what is promised before a component is used: its descriptor."""

from __future__ import annotations

from typing import Any

from jackfield_archive.plugin import parsers
from tests.support.promises import promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "ParserSpec tar": {
        "extensions": ("tar", "tgz", "tbz2", "txz", "gz", "bz2", "xz"),
        "media_types": ("application/x-tar", "application/gzip", "application/x-bzip2", "application/x-xz"),
        "has_parts": True,
    },
    "ParserSpec zip": {"extensions": ("zip",), "media_types": ("application/zip",), "has_parts": True},
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    assert promises_of(parsers()) == PROMISES
