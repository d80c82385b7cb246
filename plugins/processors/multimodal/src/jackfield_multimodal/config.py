"""The settings of multimodal messages."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from jackfield.config import Config

Unsupported = Literal["refuse", "note"]


class MultimodalConfig(Config):
    """The treatment of media that the model does not take, and of unreadable files."""

    unsupported: Unsupported = Field(
        default="refuse",
        description="refuse: the call fails before anything is sent; note: only the names are sent",
    )
