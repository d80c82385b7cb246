"""The settings of stop words."""

from __future__ import annotations

from pydantic import Field

from jackfield.config import Config


class StopWordsConfig(Config):
    """Whether stop words are also sent to the server."""

    send: bool = Field(
        default=True,
        description="Pass `stop` on to the server; false for a server that refuses it, or takes fewer stop words",
    )
