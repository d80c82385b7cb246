"""Test what is promised before a component is used: its descriptor, and the limits of its settings."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Config
from jackfield_ocr.parser import OcrConfig
from jackfield_ocr.plugin import parsers
from tests.support.promises import check_limit, promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "ParserSpec ocr": {
        "effects": frozenset({"files", "processes"}),
        "extensions": ("pdf-scan", "png", "jpg", "jpeg", "tif", "tiff", "bmp", "webp"),
        "media_types": ("image/png", "image/jpeg", "image/tiff", "image/bmp", "image/webp"),
        "environment": "jackfield_ocr.tesseract:describe_installation",
    },
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    assert promises_of(parsers()) == PROMISES


@pytest.mark.parametrize(
    ("config", "setting", "last", "beyond"),
    [
        (OcrConfig, "dpi", 72, 71),
        (OcrConfig, "dpi", 600, 601),
        (OcrConfig, "max_pixels", 10000, 9999),
        (OcrConfig, "max_pages", 1, 0),
        (OcrConfig, "timeout_s", 0.001, 0),
        (OcrConfig, "min_confidence", 0, -0.1),
        (OcrConfig, "min_confidence", 100, 101),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else str(value),
)
def test_a_setting_takes_its_last_value_and_refuses_the_next(
    config: type[Config], setting: str, last: object, beyond: object
) -> None:
    check_limit(config, setting, last, beyond, {})
