"""The settings of truncation."""

from __future__ import annotations

from pydantic import Field

from jackfield.config import Config


class TruncationConfig(Config):
    """How long a request may be when it does not say so itself, and what media count."""

    context_tokens: int | None = Field(
        default=None,
        ge=1,
        description="The model's context, for requests without max_input_tokens; what the backend states if unset",
    )
    answer_tokens: int | None = Field(
        default=None,
        ge=0,
        description="Of context_tokens, kept for answers without max_tokens; a quarter, at most 4096, if unset",
    )
    margin: float = Field(
        default=0.1, ge=0, lt=1, description="The part of the room in context_tokens left free: counts are estimates"
    )
    media_tokens: int = Field(default=1000, ge=0, description="What an image, a sound or a frame of video counts")
