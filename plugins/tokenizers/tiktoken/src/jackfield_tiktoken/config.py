"""The settings of these tokenizers."""

from __future__ import annotations

from pydantic import Field

from jackfield.config import Config


class TiktokenConfig(Config):
    """Where the vocabulary is. None is part of this distribution."""

    path: str | None = Field(default=None, description="The file, as o200k_base.tiktoken; else tiktoken's own cache")
    sha256: str = Field(
        default="", pattern="^([0-9a-fA-F]{64})?$", description="The hash of that file, if it is not OpenAI's"
    )
    download: bool = Field(default=False, description="Fetch it once from OpenAI, if it is not there")
