"""Plan the start of a kernel process: command, environment and folders. `kernel.py` carries out the plan."""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from jackfield.sandboxes import Limits, Program, ProgramSandbox
from jackfield_code_interpreter.config import CodeInterpreterConfig
from jackfield_code_interpreter.files import FileLimits
from jackfield_confine.barriers import LANDLOCK, NAMESPACES
from jackfield_confine.guarding import guarded
from jackfield_confine.interpreters import find_python

START_KERNEL = Path(__file__).with_name("start_kernel.py")

BARRIERS: tuple[str, ...] = (NAMESPACES, LANDLOCK)
"""Barriers between the code and other processes when there is no sandbox. The first one that works is used."""

_ISOLATION = {
    NAMESPACES: "processes only: the code can see and signal only its own, but can access your files and the network",
    LANDLOCK: "processes only: the code can signal and inspect only its own, but can access your files and the network",
}
_NO_ISOLATION = "none: limits only"

# Paths and text encodings only: no key, no token, and no variable that changes how Python itself works.
_INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR")
_MB = 1 << 20

MARK = "JACKFIELD_KERNEL"
"""The environment variable that marks the processes of a kernel with its connection folder."""


@dataclass(frozen=True, slots=True)
class KernelFolders:
    """The folders of a kernel.

    Attributes:
        work: The working directory of the code.
        private: The session's own folder, unreadable for other users and removed when the session ends.
        connection: A folder in `private` for the connection file and the sockets. Its path is short because a socket's
            path is limited to 107 bytes.
    """

    work: Path
    private: Path
    connection: Path

    @property
    def home(self) -> Path:
        """HOME for the kernel, where libraries store caches and settings instead of in the user's home."""
        return self.private / "home"

    @property
    def matplotlib(self) -> Path:
        """Matplotlib's configuration folder."""
        return self.home / "matplotlib"

    @property
    def connection_file(self) -> Path:
        return self.connection / "c.json"

    @property
    def report(self) -> Path:
        """The file to which the guard writes the active barrier before any code runs."""
        return self.connection / "barrier"

    @property
    def log(self) -> Path:
        """The process's stderr output, up to the point where the kernel redirects stderr."""
        return self.connection / "log"


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """The command, environment and folders of a kernel.

    Attributes:
        argv: The command.
        env: The complete environment; nothing else is inherited.
        folders: The kernel's folders.
        layer: The name of the sandbox layer, or '' without a sandbox.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    folders: KernelFolders
    layer: str = ""


def kernel_launch(
    config: CodeInterpreterConfig,
    folders: KernelFolders,
    sandbox: ProgramSandbox | None = None,
    *,
    environ: Mapping[str, str] | None = None,
) -> KernelLaunch:
    """Decide how to start a kernel.

    Args:
        sandbox: The sandbox for the kernel. If None, only resource limits apply.
        environ: The environment to inherit from. Defaults to `os.environ`.

    Raises:
        SandboxError: The configured interpreter cannot be started, or the sandbox cannot be used.
    """
    python = find_python(config.python)
    kernel = (
        python.path,
        str(START_KERNEL),
        *("-f", str(folders.connection_file)),
        "--InteractiveShell.colors=NoColor",
        "--InteractiveShell.xmode=Plain",  # a short traceback, because the model wrote the code and knows it
        "--HistoryManager.enabled=False",
    )
    env = _environment(config, folders, os.environ if environ is None else environ)
    limits = limits_of(config)
    if sandbox is None:
        command = guarded(
            kernel, limits=limits, barriers=BARRIERS, report=folders.report, leftovers=str(folders.private)
        )
        return KernelLaunch(tuple(command), env, folders)
    packages = python.readable if config.python else _folder_of_user()
    program = Program(
        argv=kernel,
        work_dir=str(folders.work),
        writable=(str(folders.home), str(folders.connection)),
        readable=(str(START_KERNEL), *absolute_paths(config.readable), *packages),
        env=env,
        limits=limits,
        network=config.network,
        leftovers=str(folders.private),
    )
    return KernelLaunch(tuple(sandbox.command(program)), env, folders, sandbox.protection().layer)


def _folder_of_user() -> tuple[str, ...]:
    """Return the user's site-packages folder if this interpreter uses it, otherwise ()."""
    user = site.getusersitepackages() if site.ENABLE_USER_SITE else ""
    return (user,) if user and Path(user).is_dir() else ()


def absolute_paths(paths: Sequence[str]) -> tuple[str, ...]:
    """Expand `~` in configured paths and make them absolute, as a sandbox requires."""
    return tuple(os.path.abspath(os.path.expanduser(path)) for path in paths)  # noqa: PTH100, PTH111 - as text


def isolation(barrier: str) -> str:
    """Return a human-readable description of the barrier around the code."""
    return _ISOLATION.get(barrier, _NO_ISOLATION)


def limits_of(config: CodeInterpreterConfig) -> Limits:
    """Return the limits for each process of the code."""
    return Limits(
        memory_bytes=config.memory_mb and config.memory_mb * _MB,
        cpu_s=config.cpu_s,
        processes=config.processes,
        file_bytes=config.file_mb and config.file_mb * _MB,
    )


def file_limits(config: CodeInterpreterConfig) -> FileLimits:
    """Return the limits for copying a conversation's files."""
    return FileLimits(
        file_bytes=config.file_mb and config.file_mb * _MB,
        total_bytes=config.brought_mb and config.brought_mb * _MB,
        files=config.brought_files,
    )


def stated_limits(config: CodeInterpreterConfig, sandbox: ProgramSandbox | None = None) -> dict[str, int | str]:
    """Return the limits for display, marking those that this system does not enforce."""
    limits = asdict(limits_of(config))
    stated: dict[str, int | str] = {name: value for name, value in limits.items() if value is not None}
    counts = "process_count" in sandbox.protection().covers if sandbox else os.getuid() != 0
    if "processes" in stated and not counts:
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
        "MPLCONFIGDIR": str(folders.matplotlib),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "PYTHONIOENCODING": "utf-8:replace",
        # Each thread takes address space, and the default is one per core.
        "OPENBLAS_NUM_THREADS": "1",
    }
    if config.python is None and site.ENABLE_USER_SITE:
        env["PYTHONUSERBASE"] = site.getuserbase()  # ipykernel may be installed there, and HOME differs now
    return {**env, **config.env, MARK: str(folders.connection)}
