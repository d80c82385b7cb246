"""Settings of the tiktoken tokenizers."""

from __future__ import annotations

from pydantic import Field

from jackfield.config import Config, PathText


class TiktokenConfig(Config):
    """Settings for locating the vocabulary, which this package does not include."""

    path: PathText | None = Field(
        default=None, description="Vocabulary file, such as o200k_base.tiktoken; by default, one in tiktoken's cache"
    )
    sha256: str = Field(
        default="",
        pattern="^([0-9a-fA-F]{64})?$",
        description="SHA-256 hash of that file; needed only if it is not one of OpenAI's vocabularies",
    )
    download: bool = Field(default=False, description="If the vocabulary is missing, download it once from OpenAI")
