"""Settings of the tiktoken tokenizers."""

from __future__ import annotations

from pydantic import Field

from jackfield.config import Config, PathText


class TiktokenConfig(Config):
    """Settings for locating the vocabulary, which this package does not include."""

    path: PathText | None = Field(
        default=None, description="The file, such as o200k_base.tiktoken; else tiktoken's own cache"
    )
    sha256: str = Field(
        default="", pattern="^([0-9a-fA-F]{64})?$", description="The SHA-256 of that file, if it is not OpenAI's"
    )
    download: bool = Field(default=False, description="Download it once from OpenAI, if it is missing")
