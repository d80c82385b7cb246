"""The settings of stop words."""

from __future__ import annotations

from pydantic import Field

from jackfield.config import Config


class StopWordsConfig(Config):
    """Whether the server is told of them, too."""

    send: bool = Field(
        default=True, description="Pass `stop` on to the server; false for one that refuses it, or so many of them"
    )
