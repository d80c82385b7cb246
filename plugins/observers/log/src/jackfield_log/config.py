"""The settings of the log observer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from jackfield.config import Config


class LogConfig(Config):
    """The settings of `log`."""

    level: Literal["info", "debug"] = Field(
        default="info", description="`info` logs steps and errors; `debug` also logs arguments, results and answers"
    )
    format: Literal["text", "json"] = Field(default="text", description="Format of the log lines")
    max_chars: int = Field(default=300, ge=10, description="Maximum number of characters quoted from any one text")
