"""Dates in words do not depend on the machine's language, and are those of the time zone that is asked for."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from jackfield.config import Lang
from jackfield.dates import get_current_date_str

NEW_YEAR = datetime(2024, 1, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("lang", "hours", "said"),
    [
        ("en", 0, "Current date: Monday, January 1, 2024"),
        ("en", -5, "Current date: Sunday, December 31, 2023"),
        ("en", -2, "Current date: Monday, January 1, 2024"),
        ("en", -2.5, "Current date: Sunday, December 31, 2023"),
        ("zh", 8, "当前时间：2024年1月1日，星期一。"),
        ("zh", -5, "当前时间：2023年12月31日，星期日。"),
    ],
)
def test_a_date_in_words_is_that_of_its_time_zone(lang: Lang, hours: float, said: str) -> None:
    assert get_current_date_str(lang, hours, now=NEW_YEAR) == said


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone of a process is fixed")
def test_no_offset_is_that_of_utc_and_a_missing_one_that_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "XXX+5")  # in POSIX's form: five hours behind UTC
    time.tzset()
    try:
        assert get_current_date_str("en", 0, now=NEW_YEAR) == "Current date: Monday, January 1, 2024"
        assert get_current_date_str("en", now=NEW_YEAR) == "Current date: Sunday, December 31, 2023"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_without_an_instant_it_is_today() -> None:
    before, line, after = datetime.now(UTC), get_current_date_str("en", 0), datetime.now(UTC)
    assert line in [get_current_date_str("en", 0, now=day) for day in (before, after)]
    assert get_current_date_str().startswith("Current date: ")


@pytest.mark.parametrize(
    ("lang", "hours", "text"),
    [
        ("en", 0, "Current date: Sunday, March 31, 2024"),
        ("en", 1, "Current date: Monday, April 1, 2024"),
        ("en", -23.5, "Current date: Sunday, March 31, 2024"),
        ("zh", 0, "当前时间：2024年3月31日，星期日。"),
        ("zh", 1, "当前时间：2024年4月1日，星期一。"),
    ],
)
def test_the_date_is_that_of_the_zone(lang: Any, hours: float, text: str) -> None:
    now = datetime(2024, 3, 31, 23, 30, tzinfo=UTC)
    assert get_current_date_str(lang, hours, now=now) == text
