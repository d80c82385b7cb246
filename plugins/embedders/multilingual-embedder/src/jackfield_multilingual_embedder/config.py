"""Settings of the multilingual embedder."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from jackfield.config import Config

MODEL: Final = "universal-sentence-encoder-multilingual-3"


class MultilingualConfig(Config):
    """Settings for the model."""

    model: Literal["universal-sentence-encoder-multilingual-3"] = Field(
        default=MODEL, description="The model that is installed with this package"
    )
