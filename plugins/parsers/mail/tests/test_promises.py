"""Test what is promised before a component is used: its descriptor."""

from __future__ import annotations

from typing import Any

from jackfield_mail.plugin import parsers
from tests.support.promises import promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "ParserSpec eml": {
        "extensions": ("eml", "mht", "mhtml"),
        "media_types": ("message/rfc822", "multipart/related"),
        "has_parts": True,
    },
    "ParserSpec msg": {"extensions": ("msg", "oft"), "media_types": ("application/vnd.ms-outlook",), "has_parts": True},
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    assert promises_of(parsers()) == PROMISES
