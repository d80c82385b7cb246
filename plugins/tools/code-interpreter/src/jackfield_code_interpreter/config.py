"""Settings of the code interpreter."""

from __future__ import annotations

from pydantic import Field

from jackfield.config import Config, PathText, ProgramText


class CodeInterpreterConfig(Config):
    """Settings and limits for running code. A limit of None means unlimited."""

    timeout: float = Field(
        default=30, gt=0, le=3600, description="Seconds one call may take, without the start of the kernel"
    )
    start_timeout: float = Field(default=60, gt=0, le=300, description="Seconds a kernel may take to start")
    work_dir: PathText | None = Field(
        default=None, description="Where code runs; None: a private folder, removed at the end"
    )
    python: ProgramText | None = Field(
        default=None, description="The Python interpreter, which must have ipykernel; None: this one"
    )
    sandbox: str = Field(
        default="auto", description="The sandbox of the code: auto (the best one that works here), a name, or none"
    )
    network: bool = Field(default=False, description="Let code in a sandbox use the network")
    readable: list[str] = Field(default_factory=list, description="Files and folders that code in a sandbox may read")
    warm_kernels: int = Field(
        default=0, ge=0, le=32, description="Kernels that are started ahead, for runs to come; each is used by one run"
    )
    env: dict[str, str] = Field(default_factory=dict, repr=False, description="Environment variables the code may see")
    memory_mb: int | None = Field(default=2048, ge=256, description="Address space of each process")
    cpu_s: int | None = Field(default=600, ge=1, description="CPU seconds of each process, over all calls")
    processes: int | None = Field(default=128, ge=16, description="Processes and threads; for root in bubblewrap only")
    file_mb: int | None = Field(default=256, ge=1, description="The largest file that can be written")
    brought_files: int | None = Field(default=200, ge=0, description="Files of a conversation copied to the code")
    brought_mb: int | None = Field(
        default=1024, ge=1, description="The size limit for all of them together; file_mb limits each one"
    )
    max_output_chars: int = Field(default=20_000, ge=200, description="Longer output is cut in the middle")
    max_images: int = Field(default=8, ge=0, description="Images returned by one call; more are left out")
