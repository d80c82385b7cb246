"""The settings of the system message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from jackfield.config import Config, Lang

Where = Literal["before", "after", "if_missing"]


class SystemMessageConfig(Config):
    """What the system says, and where."""

    text: str | Mapping[Lang, str] = Field(default="", description="What it says: one text, or {en: …, zh: …}")
    where: Where = Field(
        default="before",
        description="before or after what the request's system message says; if_missing: only if there is none",
    )
    date: bool = Field(default=False, description="Add a line with the day of the week and the date")
    timezone: str | None = Field(
        default=None,
        min_length=1,
        description="Whose date, by its IANA name (Asia/Shanghai, UTC); this machine's if unset",
    )

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.date and not (self.text.strip() if isinstance(self.text, str) else any(self.text.values())):
            raise ValueError("there is nothing to say: set text, or date")
        return self
