"""Format the date for system messages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from jackfield.config import Lang

# `strftime` would use the machine's language.
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DAYS_ZH = "一二三四五六日"
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def get_current_date_str(lang: Lang = "en", hours_from_utc: float | None = None, *, now: datetime | None = None) -> str:
    """Return the date as one line, such as `Current date: Friday, March 1, 2024` or `当前时间：2024年3月1日，星期五。`.

    Args:
        lang: The language of the line.
        hours_from_utc: The time zone's offset from UTC, in hours. Defaults to the machine's time zone.
        now: The time, with its time zone. Defaults to the current time.
    """
    zone = None if hours_from_utc is None else timezone(timedelta(hours=hours_from_utc))
    day = (now or datetime.now(UTC)).astimezone(zone)
    if lang == "zh":
        return f"当前时间：{day.year}年{day.month}月{day.day}日，星期{_DAYS_ZH[day.weekday()]}。"
    return f"Current date: {_DAYS[day.weekday()]}, {_MONTHS[day.month - 1]} {day.day}, {day.year}"
