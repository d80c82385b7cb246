"""How a kernel's process is started: its command, its environment, its folders. Decided here, done in `kernel.py`."""

from __future__ import annotations

import json
import os
import site
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jackfield_code_interpreter.barriers import LANDLOCK, NAMESPACES
from jackfield_code_interpreter.config import CodeInterpreterConfig
from jackfield_code_interpreter.files import FileLimits

SHIM = Path(__file__).with_name("limits_shim.py")

BARRIERS: tuple[str, ...] = (NAMESPACES, LANDLOCK)
"""What may keep the code from other processes, the best first; the first that works on the machine is used."""

_ISOLATION = {
    NAMESPACES: "processes only: the code sees and signals its own; your files and network are open to it",
    LANDLOCK: "processes only: the code signals and looks into its own; your files and network are open to it",
}
_NO_ISOLATION = "none: limits only"
IS_ISOLATED = False  # whether what the code does stays inside: until it does, each call needs a yes

# Where things are, and how text is written; never a key, a token, or what changes how Python itself works.
_INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR")
_MB = 1 << 20

MARK = "JACKFIELD_KERNEL"
"""The variable that names the kernel a process belongs to, by the folder of its connection."""


@dataclass(frozen=True, slots=True)
class KernelFolders:
    """The folders of one kernel.

    Attributes:
        work: Where the code runs.
        private: The session's own, which nobody else may read; removed at its end.
        connection: In it, for the connection file and the sockets. A short path: a socket's may have 107 bytes.
    """

    work: Path
    private: Path
    connection: Path

    @property
    def home(self) -> Path:
        """In place of the user's: caches and settings of libraries."""
        return self.private / "home"

    @property
    def connection_file(self) -> Path:
        return self.connection / "c.json"

    @property
    def report(self) -> Path:
        """Where the guard writes which barrier it found, before any code runs."""
        return self.connection / "barrier"

    @property
    def log(self) -> Path:
        """What the process itself wrote to stderr, before the kernel took it over."""
        return self.connection / "log"


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """A command, in which `{connection_file}` stands for that file, and the whole environment it gets."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    folders: KernelFolders


def kernel_launch(
    config: CodeInterpreterConfig,
    folders: KernelFolders,
    *,
    prefix: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> KernelLaunch:
    """Decide how to start a kernel.

    Args:
        prefix: A command that runs the rest of its arguments apart from the host; it needs to hand on signals to
            nobody, but to end what it runs when it ends.
        environ: In place of `os.environ`.
    """
    kernel = (
        config.python or sys.executable,
        str(SHIM),
        json.dumps(limits_of(config)),
        ",".join(BARRIERS),
        str(folders.private),
        str(folders.report),
        *("-f", "{connection_file}"),
        "--InteractiveShell.colors=NoColor",
        "--InteractiveShell.xmode=Plain",  # the short traceback: the model wrote the code and knows it
        "--HistoryManager.enabled=False",
    )
    return KernelLaunch(
        (*prefix, *kernel), _environment(config, folders, os.environ if environ is None else environ), folders
    )


def isolation(barrier: str) -> str:
    """What a barrier keeps the code from, for people to read."""
    return _ISOLATION.get(barrier, _NO_ISOLATION)


def limits_of(config: CodeInterpreterConfig) -> dict[str, int]:
    """The limits as the shim takes them; what is missing is unlimited."""
    limits = {
        "memory_bytes": config.memory_mb and config.memory_mb * _MB,
        "cpu_s": config.cpu_s,
        "processes": config.processes,
        "file_bytes": config.file_mb and config.file_mb * _MB,
    }
    return {name: value for name, value in limits.items() if value}


def file_limits(config: CodeInterpreterConfig) -> FileLimits:
    """How much of the files of a conversation is copied to the code."""
    return FileLimits(
        file_bytes=config.file_mb and config.file_mb * _MB,
        total_bytes=config.brought_mb and config.brought_mb * _MB,
        files=config.brought_files,
    )


def stated_limits(config: CodeInterpreterConfig) -> dict[str, int | str]:
    """The limits for people to read, those that this system does not enforce marked."""
    stated: dict[str, int | str] = dict(limits_of(config))
    if "processes" in stated and os.getuid() == 0:
        stated["processes"] = "not enforced for root"
    if "memory_bytes" in stated and sys.platform == "darwin":
        stated["memory_bytes"] = "not enforced on macOS"
    return stated


def _environment(config: CodeInterpreterConfig, folders: KernelFolders, environ: Mapping[str, str]) -> dict[str, str]:
    home = str(folders.home)
    env = {name: environ[name] for name in _INHERITED if name in environ}
    env |= {
        "HOME": home,
        "TMPDIR": home,
        "IPYTHONDIR": f"{home}/ipython",
        "MPLCONFIGDIR": f"{home}/matplotlib",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "PYTHONIOENCODING": "utf-8:replace",
        # Each thread of it takes address space, and there is one for each core unless this says otherwise.
        "OPENBLAS_NUM_THREADS": "1",
    }
    if config.python is None and site.ENABLE_USER_SITE:
        env["PYTHONUSERBASE"] = site.getuserbase()  # ipykernel may be installed there, and HOME is another now
    return {**env, **config.env, MARK: str(folders.connection)}
