"""Settings of the `shell` tool."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from jackfield.config import Config


class ShellConfig(Config):
    """Settings and limits for running commands. A limit of None means unlimited."""

    sandbox: str = Field(
        default="auto",
        min_length=1,
        description="'auto' (the best sandbox installed), the name of a sandbox, or 'none'",
    )
    sandbox_cfg: dict[str, Any] = Field(default_factory=dict, description="Settings of the named sandbox")
    network: bool = Field(default=False, description="Allow commands to use the network")
    env: dict[str, str] = Field(
        default_factory=dict, repr=False, description="Environment variables visible to commands"
    )
    readable: list[str] = Field(
        default_factory=list,
        description="Absolute paths that commands may read, in addition to those of the system and this Python",
    )
    timeout: float = Field(default=120, gt=0, le=3600, description="Default time limit for a command, in seconds")
    max_timeout: float = Field(
        default=600, gt=0, le=3600, description="Maximum time limit that a model may request, in seconds"
    )
    memory_mb: int | None = Field(default=2048, ge=64, description="Maximum address space of each process")
    cpu_s: int | None = Field(default=600, ge=1, description="CPU time limit of each process, in seconds")
    processes: int | None = Field(default=256, ge=16, description="Maximum number of processes and threads at a time")
    file_mb: int | None = Field(default=1024, ge=1, description="Maximum size of a file that commands may write")
    max_output_bytes: int = Field(default=30_000, ge=200, description="Longer output is truncated in the middle")
