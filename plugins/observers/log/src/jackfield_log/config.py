"""The settings of the log observer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from jackfield.config import Config


class LogConfig(Config):
    """The settings of `log`."""

    level: Literal["info", "debug"] = Field(
        default="info", description="`info`: steps and errors; `debug`: arguments, results and answers as well"
    )
    format: Literal["text", "json"] = Field(default="text", description="The form of a line")
    max_chars: int = Field(default=300, ge=10, description="The longest quotation of a text, in characters")
