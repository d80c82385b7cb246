"""Settings for the cache."""

from __future__ import annotations

from pydantic import Field

from jackfield.config import Config, PathText


class CacheConfig(Config):
    """Cache location, which answers to store, for how long, and how many."""

    path: PathText | None = Field(
        default=None,
        min_length=1,
        description="SQLite file; unset: jackfield/answers.sqlite below $XDG_CACHE_HOME or ~/.cache",
    )
    scope: str = Field(
        default="", description="Name of the service that answers; unset: the configured backend and server"
    )
    ttl_s: float | None = Field(default=None, gt=0, description="Seconds after which an answer expires")
    max_bytes: int = Field(
        default=256 * 1024 * 1024,
        ge=1,
        description="Maximum size of all answers in bytes; the least recently used are deleted first",
    )
    only_deterministic: bool = Field(default=False, description="Only cache requests with temperature 0 or with a seed")
