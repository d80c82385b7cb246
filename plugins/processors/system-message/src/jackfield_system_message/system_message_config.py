"""Settings for the system message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from jackfield.config import Config, Lang

Where = Literal["before", "after", "if_missing"]


class SystemMessageConfig(Config):
    """The text to add to the system message, and where."""

    text: str | Mapping[Lang, str] = Field(default="", description="The text: one for all languages, or {en: …, zh: …}")
    where: Where = Field(
        default="before",
        description="before or after the request's own system message; if_missing: only if it has none",
    )
    date: bool = Field(default=False, description="Add a line with the day of the week and the date")
    timezone: str | None = Field(
        default=None,
        min_length=1,
        description="The time zone of the date, by its IANA name (Asia/Shanghai, UTC); this machine's if unset",
    )

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        texts = [self.text] if isinstance(self.text, str) else self.text.values()
        if not self.date and not any(map(str.strip, texts)):
            raise ValueError("nothing to add: set text or date")
        return self
