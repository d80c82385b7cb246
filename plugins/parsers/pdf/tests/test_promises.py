"""Test what is promised before a component is used: its descriptor, and the limits of its settings."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Config
from jackfield_pdf.parser import PdfConfig
from jackfield_pdf.plugin import parsers
from tests.support.promises import check_limit, promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "ParserSpec pdf": {
        "extensions": ("pdf",),
        "media_types": ("application/pdf", "application/x-pdf"),
        "magic": (b"%PDF-",),
        "has_parts": True,
        "part_extensions": ("pdf-scan",),
        "draws_pages": True,
        "pictures": "jackfield_pdf.pictures:PdfPictures",
    },
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    assert promises_of(parsers()) == PROMISES


@pytest.mark.parametrize(
    ("config", "setting", "last", "beyond"),
    [
        (PdfConfig, "max_pages", 1, 0),
        (PdfConfig, "max_chars", 1, 0),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else str(value),
)
def test_a_setting_takes_its_last_value_and_refuses_the_next(
    config: type[Config], setting: str, last: object, beyond: object
) -> None:
    check_limit(config, setting, last, beyond, {})
