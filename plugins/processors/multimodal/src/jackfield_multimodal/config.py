"""Settings for multimodal messages."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from jackfield.config import Config

Unsupported = Literal["refuse", "note"]


class MultimodalConfig(Config):
    """Settings for unsupported media and unreadable files."""

    unsupported: Unsupported = Field(
        default="refuse",
        description="refuse: fail before anything is sent; note: send only the names",
    )
