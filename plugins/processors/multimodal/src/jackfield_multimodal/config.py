"""The settings of multimodal messages."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from jackfield.config import Config

Unsupported = Literal["refuse", "note"]


class MultimodalConfig(Config):
    """What happens to images, audio and video that the model does not take."""

    unsupported: Unsupported = Field(
        default="refuse",
        description="refuse: the call fails before anything is sent; note: only their names are sent",
    )
