"""Test what is promised before a component is used: its descriptor."""

from __future__ import annotations

from typing import Any

from jackfield_opendocument.plugin import parsers
from tests.support.promises import promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "ParserSpec odp": {
        "extensions": ("odp", "otp", "fodp"),
        "media_types": (
            "application/vnd.oasis.opendocument.presentation",
            "application/vnd.oasis.opendocument.presentation-template",
            "application/vnd.oasis.opendocument.presentation-flat-xml",
        ),
    },
    "ParserSpec ods": {
        "extensions": ("ods", "ots", "fods"),
        "media_types": (
            "application/vnd.oasis.opendocument.spreadsheet",
            "application/vnd.oasis.opendocument.spreadsheet-template",
            "application/vnd.oasis.opendocument.spreadsheet-flat-xml",
        ),
    },
    "ParserSpec odt": {
        "extensions": ("odt", "ott", "fodt"),
        "media_types": (
            "application/vnd.oasis.opendocument.text",
            "application/vnd.oasis.opendocument.text-template",
            "application/vnd.oasis.opendocument.text-flat-xml",
        ),
    },
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    assert promises_of(parsers()) == PROMISES
