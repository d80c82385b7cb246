"""Settings of the `bubblewrap` sandbox."""

from __future__ import annotations

from pydantic import Field

from jackfield.config import Config


class BubblewrapConfig(Config):
    """Settings for the in-memory file systems."""

    tmp_mb: int = Field(default=64, ge=1, le=4096, description="The size of /tmp, which is in memory, for each program")
    shm_mb: int = Field(default=64, ge=1, le=4096, description="The size of /dev/shm, which is also in memory")
