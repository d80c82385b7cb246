"""Settings for the cache."""

from __future__ import annotations

from pydantic import Field

from jackfield.config import Config, PathText


class CacheConfig(Config):
    """Cache location, which answers to store, for how long, and how many."""

    path: PathText | None = Field(
        default=None,
        min_length=1,
        description="The SQLite file; jackfield/answers.sqlite below $XDG_CACHE_HOME, or ~/.cache, if unset",
    )
    scope: str = Field(
        default="", description="The name of the service that answers; the configured backend and server if unset"
    )
    ttl_s: float | None = Field(default=None, gt=0, description="Seconds after which an answer expires")
    max_bytes: int = Field(
        default=256 * 1024 * 1024,
        ge=1,
        description="The most bytes of answers; the least recently used are deleted first",
    )
    only_deterministic: bool = Field(default=False, description="Only cache requests with temperature 0 or with a seed")
