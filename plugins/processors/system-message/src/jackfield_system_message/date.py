"""Format the date as a line of text. Without the time of day, the provider's prompt cache stays valid all day."""

from __future__ import annotations

from datetime import date

from jackfield.config import Lang

# Spelled out, because the names in `strftime` depend on the locale.
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_ZH_DAYS = "一二三四五六日"


def date_line(day: date, lang: Lang) -> str:
    """Return `Current date: Friday, November 20, 2026`, or the Chinese equivalent."""
    if lang == "zh":
        return f"当前时间：{day.year}年{day.month}月{day.day}日，星期{_ZH_DAYS[day.weekday()]}"
    return f"Current date: {_DAYS[day.weekday()]}, {_MONTHS[day.month - 1]} {day.day}, {day.year}"
