"""Settings of the code interpreter."""

from __future__ import annotations

from pydantic import Field

from jackfield.config import Config, PathText, ProgramText


class CodeInterpreterConfig(Config):
    """Settings and limits for running code. A limit of None means unlimited."""

    timeout: float = Field(
        default=30, gt=0, le=3600, description="Time limit for one call in seconds, not counting kernel startup"
    )
    start_timeout: float = Field(default=60, gt=0, le=300, description="Time limit for starting a kernel, in seconds")
    work_dir: PathText | None = Field(
        default=None, description="Working directory of the code; None: a private folder, removed at the end of the run"
    )
    python: ProgramText | None = Field(
        default=None, description="Python interpreter to use, with ipykernel installed; None: the current one"
    )
    sandbox: str = Field(
        default="auto", description="Sandbox for the code: auto (the best one that works here), a name, or none"
    )
    network: bool = Field(default=False, description="Allow sandboxed code to use the network")
    readable: list[str] = Field(default_factory=list, description="Files and folders that sandboxed code may read")
    warm_kernels: int = Field(
        default=0, ge=0, le=32, description="Number of kernels to start in advance; each serves a single run"
    )
    env: dict[str, str] = Field(
        default_factory=dict, repr=False, description="Environment variables visible to the code"
    )
    memory_mb: int | None = Field(default=2048, ge=256, description="Maximum address space of each process")
    cpu_s: int | None = Field(
        default=600, ge=1, description="CPU time limit of each process in seconds, over all calls"
    )
    processes: int | None = Field(
        default=128, ge=16, description="Maximum number of processes and threads; for root, enforced only in bubblewrap"
    )
    file_mb: int | None = Field(default=256, ge=1, description="Maximum size of a file the code may write")
    brought_files: int | None = Field(
        default=200, ge=0, description="Maximum number of conversation files copied to the working directory"
    )
    brought_mb: int | None = Field(
        default=1024, ge=1, description="Maximum total size of the copied files; file_mb limits each one"
    )
    max_output_chars: int = Field(default=20_000, ge=200, description="Longer output is truncated in the middle")
    max_images: int = Field(
        default=8, ge=0, description="Maximum number of images returned by one call; the rest are omitted"
    )
