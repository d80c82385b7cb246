"""Settings of the `shell` tool."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from jackfield.config import Config


class ShellConfig(Config):
    """Settings and limits for running commands. A limit of None means unlimited."""

    sandbox: str = Field(
        default="auto", min_length=1, description="'auto' for the best one installed, the name of one, or 'none'"
    )
    sandbox_cfg: dict[str, Any] = Field(default_factory=dict, description="Settings of the named sandbox")
    network: bool = Field(default=False, description="Let commands use the network")
    env: dict[str, str] = Field(default_factory=dict, repr=False, description="Environment variables of commands")
    readable: list[str] = Field(
        default_factory=list, description="Absolute paths commands may read, besides the system's and this Python's"
    )
    timeout: float = Field(default=120, gt=0, le=3600, description="Seconds one command may take")
    max_timeout: float = Field(default=600, gt=0, le=3600, description="Seconds that a model may ask for")
    memory_mb: int | None = Field(default=2048, ge=64, description="Address space of each process")
    cpu_s: int | None = Field(default=600, ge=1, description="CPU seconds of each process")
    processes: int | None = Field(default=256, ge=16, description="Processes and threads at one time")
    file_mb: int | None = Field(default=1024, ge=1, description="The largest file that can be written")
    max_output_bytes: int = Field(default=30_000, ge=200, description="Longer output is cut in the middle")
