"""Settings of the `bubblewrap` sandbox."""

from __future__ import annotations

from pydantic import Field

from jackfield.config import Config


class BubblewrapConfig(Config):
    """Settings for the in-memory file systems."""

    tmp_mb: int = Field(default=64, ge=1, le=4096, description="Size of the in-memory /tmp of each program")
    shm_mb: int = Field(default=64, ge=1, le=4096, description="Size of the in-memory /dev/shm of each program")
