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
    max_concurrency: int | None = Field(default=None, ge=1, description="Maximum number of concurrent requests")
    max_wait_s: float | None = Field(
        default=None,
        ge=0,
        description="Maximum time that a request waits for its turn, in seconds; then RateLimitedError",
    )
    scope: str = Field(default="", description="Name of the limits; unset: the server and the model of a request")
    path: PathText | None = Field(
        default=None, min_length=1, description="An SQLite file through which several processes share the limits"
    )
    pause_s: float = Field(default=2.0, ge=0, description="Pause after an HTTP 429 that specifies no wait")
    max_pause_s: float = Field(
        default=120.0,
        ge=0,
        allow_inf_nan=False,
        description="Maximum pause in seconds, even if a server asks for more; applies to all processes that "
        "share the limits",
    )
    lease_s: float = Field(
        default=600.0,
        gt=0,
        description="Seconds without a sign of life after which a process that shares the file loses its reservations",
    )
    media_tokens: int = Field(default=1000, ge=0, description="The tokens that an image, a sound or a video counts as")
