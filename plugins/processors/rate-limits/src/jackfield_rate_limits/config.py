"""Settings for rate limits."""

from __future__ import annotations

from pydantic import Field

from jackfield.config import Config, PathText


class RateLimitsConfig(Config):
    """A server's limits and their scope."""

    requests_per_minute: int | None = Field(default=None, ge=1, description="Requests in any 60 seconds (RPM)")
    tokens_per_minute: int | None = Field(
        default=None, ge=1, description="Tokens of questions and answers in any 60 seconds (TPM)"
    )
    max_concurrency: int | None = Field(default=None, ge=1, description="The most requests at the same time")
    max_wait_s: float | None = Field(
        default=None, ge=0, description="The longest wait for a place, in seconds; RateLimitedError beyond it"
    )
    scope: str = Field(default="", description="A name for the limits; the server and the model of a request if unset")
    path: PathText | None = Field(
        default=None, min_length=1, description="An SQLite file through which several processes share the limits"
    )
    pause_s: float = Field(default=2.0, ge=0, description="The pause after an HTTP 429 that names no wait")
    max_pause_s: float = Field(
        default=120.0,
        ge=0,
        allow_inf_nan=False,
        description="The longest pause, in seconds, even if a server asks for more; for all who share the limits",
    )
    lease_s: float = Field(
        default=600.0,
        gt=0,
        description="Seconds of silence after which a process that shares the file counts as gone, with its places",
    )
    media_tokens: int = Field(default=1000, ge=0, description="The tokens that an image, a sound or a video counts as")
