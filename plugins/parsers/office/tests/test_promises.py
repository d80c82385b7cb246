"""Test what is promised before a component is used: its descriptor, and the limits of its settings."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Config
from jackfield_office.legacy import LegacyConfig
from jackfield_office.plugin import parsers
from jackfield_office.separated import CsvConfig
from jackfield_office.sheets import SpreadsheetConfig
from tests.support.promises import check_limit, promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "ParserSpec csv": {"extensions": ("csv", "tsv", "tab"), "media_types": ("text/csv", "text/tab-separated-values")},
    "ParserSpec doc": {
        "effects": frozenset({"files", "processes"}),
        "extensions": ("doc", "dot", "ppt", "pps"),
        "media_types": ("application/msword", "application/vnd.ms-powerpoint"),
    },
    "ParserSpec docx": {
        "extensions": ("docx", "docm", "dotx"),
        "media_types": ("application/vnd.openxmlformats-officedocument.wordprocessingml.document",),
        "pictures": "jackfield_office.pictures:DocxPictures",
    },
    "ParserSpec pptx": {
        "extensions": ("pptx", "pptm", "ppsx"),
        "media_types": ("application/vnd.openxmlformats-officedocument.presentationml.presentation",),
        "pictures": "jackfield_office.pictures:PptxPictures",
    },
    "ParserSpec xlsx": {
        "extensions": ("xlsx", "xlsm", "xls"),
        "media_types": (
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            "application/vnd.ms-excel",
        ),
    },
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    assert promises_of(parsers()) == PROMISES


@pytest.mark.parametrize(
    ("config", "setting", "last", "beyond"),
    [
        (CsvConfig, "delimiter", ";", ";;"),
        (CsvConfig, "max_columns", 1, 0),
        (LegacyConfig, "timeout_s", 0.001, 0),
        (SpreadsheetConfig, "max_rows", 1, 0),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else str(value),
)
def test_a_setting_takes_its_last_value_and_refuses_the_next(
    config: type[Config], setting: str, last: object, beyond: object
) -> None:
    check_limit(config, setting, last, beyond, {})
