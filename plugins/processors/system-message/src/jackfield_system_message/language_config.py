"""Settings for the language."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from jackfield.config import Config, Lang

LookAt = Literal["last", "all"]


class LanguageConfig(Config):
    """Settings for detecting and using the language."""

    lang: Lang | None = Field(default=None, description="A fixed language; detected if unset")
    look_at: LookAt = Field(
        default="last",
        description="last: the last user message with words; all: the language of most user messages",
    )
    instruct: bool = Field(default=False, description="Ask the model to answer in this language, in the system message")
