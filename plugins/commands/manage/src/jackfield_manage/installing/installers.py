"""Find an environment's installer, uv or pip, and build its commands. No shell is used."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jackfield.errors import ConfigError
from jackfield.settings import normalise

_CHECK_TIMEOUT_S = 60.0
# Options that install the same version again. pip's cache may hold an older build of it; uv refreshes its own.
_REINSTALL = {"uv": ("--reinstall",), "pip": ("--force-reinstall", "--no-cache-dir")}

Run = Callable[[Sequence[str]], int]
"""Runs a command whose output the user sees, and returns its exit code."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The Python environment to change.

    Attributes:
        python: The environment's interpreter.
        prefix, base_prefix: The directories of the environment and of the Python from which it was created.
        stdlib: The standard library directory, where an operating system marks its own Python (PEP 668).
        search_path: The directories to search for programs, as in `PATH`.
    """

    python: str
    prefix: Path
    base_prefix: Path
    stdlib: Path
    search_path: str

    @classmethod
    def current(cls) -> Environment:
        """Return this process's environment."""
        return cls(
            python=sys.executable,
            prefix=Path(sys.prefix),
            base_prefix=Path(sys.base_prefix),
            stdlib=Path(sysconfig.get_path("stdlib")),
            search_path=os.environ.get("PATH", ""),
        )


@dataclass(frozen=True, slots=True)
class Sources:
    """Package sources that supplement or replace the configured index."""

    find_links: tuple[str, ...] = ()
    no_index: bool = False

    def options(self) -> list[str]:
        """Return options that both installers accept."""
        options: list[str] = []
        for link in self.find_links:
            is_url = "://" in link
            options.append(f"--find-links={link if is_url else Path(link).expanduser().absolute()}")
        if self.no_index:
            options.append("--no-index")
        return options


@dataclass(frozen=True, slots=True)
class Installer:
    """An installer, and the prefix of its commands."""

    name: Literal["uv", "pip"]
    install_command: tuple[str, ...]
    uninstall_command: tuple[str, ...]

    def install(
        self,
        requirements: Sequence[str],
        *,
        constraints: Path | None = None,
        reinstall: bool = False,
        sources: Sources | None = None,
        upgrade: bool = False,
    ) -> list[str]:
        """Return an install command. `reinstall` replaces the same version, without its requirements."""
        command = [*self.install_command, *(sources or Sources()).options()]
        if constraints:
            command.append(f"--constraint={constraints}")
        if upgrade:
            command.append("--upgrade")
        if reinstall:
            command += ["--no-deps", *_REINSTALL[self.name]]
        return [*command, "--", *requirements]

    def uninstall(self, names: Sequence[str]) -> list[str]:
        """Return a command that removes distributions without confirmation."""
        return [*self.uninstall_command, "--", *names]


def find_installer(environment: Environment | None = None) -> Installer:
    """Find an environment's installer: a working uv, next to the interpreter or on the path, or else its own pip.

    Raises:
        ConfigError: No installer works, or the environment must not be changed. The message says what to do.
    """
    env = environment or Environment.current()
    _check_may_change(env)
    for folders in (str(Path(env.python).parent), env.search_path):
        uv = shutil.which("uv", path=folders)
        # The uv on the path may be a version manager's shim that only reports that uv is missing for this Python.
        if uv and _succeeds([uv, "--version"]):
            return Installer(
                "uv",
                (uv, "pip", "install", f"--python={env.python}"),
                (uv, "pip", "uninstall", f"--python={env.python}"),
            )
    # Importing pip is ten times faster than `pip --version`.
    if _succeeds([env.python, "-P", "-c", "import pip.__main__"]):
        pip = (env.python, "-P", "-m", "pip")  # -P ignores a folder named pip in the working directory
        return Installer("pip", (*pip, "install", "--disable-pip-version-check"), (*pip, "uninstall", "--yes"))
    raise ConfigError(f"{env.python} has no pip, and uv was not found on PATH: run {env.python} -m ensurepip")


def _check_may_change(env: Environment) -> None:
    """Raise ConfigError if packages must not be installed into the environment."""
    if not env.python:
        raise ConfigError(
            "cannot install anything, because the path to the Python interpreter (sys.executable) is unknown"
        )
    if env.prefix == env.base_prefix and (env.stdlib / "EXTERNALLY-MANAGED").exists():
        raise ConfigError(
            f"{env.python} is managed by the operating system, which does not allow installing packages in it. Create "
            "a virtual environment: "
            "python3 -m venv .venv && .venv/bin/pip install jackfield, then use .venv/bin/jackfield"
        )


def _succeeds(command: Sequence[str]) -> bool:
    try:
        process = subprocess.run(  # noqa: S603 - a list, and no shell
            list(command), capture_output=True, check=False, timeout=_CHECK_TIMEOUT_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return process.returncode == 0


def write_constraints(versions: Mapping[str, str]) -> Path:
    """Write a constraints file for an installer. The caller must delete it."""
    descriptor, path = tempfile.mkstemp(prefix="jackfield-", suffix=".txt")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(f"{name}=={version}\n" for name, version in sorted(versions.items()))
    return Path(path)


def run_visibly(command: Sequence[str]) -> int:
    """Run a command with visible output, and return its exit code.

    Raises:
        ConfigError: The command cannot be started.
    """
    sys.stdout.flush()
    try:
        return subprocess.run(list(command), check=False).returncode  # noqa: S603 - a list, and no shell
    except OSError as error:
        raise ConfigError(f"{command[0]} cannot be run: {error.strerror or error}") from error


def name_in(requirement: str) -> str:
    """Return the name in a requirement or wheel file name, or '' for a directory."""
    from packaging.requirements import InvalidRequirement, Requirement

    if Path(requirement).is_absolute():
        return Path(requirement).name.partition("-")[0] if requirement.endswith(".whl") else ""
    try:
        return Requirement(requirement).name
    except InvalidRequirement:
        return ""


# --- environments of tools, which their tool installer rebuilds from a receipt ---


def refuse_tool_environment(env: Environment, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> None:
    """Refuse to change a tool's environment, because the tool's next upgrade would undo the change.

    Raises:
        ConfigError: The environment belongs to `uv tool` or pipx. The message contains the command to use instead.
    """
    command = tool_command(env, add=tuple(add), remove=tuple(remove))
    if command:
        raise ConfigError(
            f"this environment is managed by a tool installer, which would undo the change. Instead, run: {command}"
        )


def tool_command(env: Environment, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> str | None:
    """Return the command that changes an environment of `uv tool` or pipx, or None for other environments."""
    if (env.prefix / "uv-receipt.toml").is_file():
        return _uv_tool_command(env, add, remove)
    if (env.prefix / "pipx_metadata.json").is_file():
        commands = [
            shlex.join(["pipx", verb, env.prefix.name, *names])
            for verb, names in (("inject", add), ("uninject", remove))
            if names
        ]
        return " && ".join(commands)
    return None


def _uv_tool_command(env: Environment, add: Sequence[str], remove: Sequence[str]) -> str:
    requirements, python = _read_receipt(env)
    tool, *others = requirements or [{"name": env.prefix.name}]
    words = ["uv", "tool", "install"]
    if python:
        words += ["--python", python]
    if "editable" in tool:
        words.append("--editable")
    words.append(_format_requirement(tool))
    replaced = {normalise(name) for name in (*remove, *(name_in(requirement) for requirement in add))}
    for requirement in others:
        if normalise(str(requirement["name"])) not in replaced:
            option = "--with-editable" if "editable" in requirement else "--with"
            words += [option, _format_requirement(requirement)]
    for added in add:
        words += ["--with", added]
    return shlex.join(words)


def _read_receipt(env: Environment) -> tuple[list[dict[str, Any]], str]:
    """Return a uv tool's requirements, tool first, and its Python; empty if the receipt is unreadable."""
    import tomllib

    try:
        tool: Any = tomllib.loads((env.prefix / "uv-receipt.toml").read_text(encoding="utf-8")).get("tool", {})
        requirements = [entry for entry in tool.get("requirements", []) if isinstance(entry, dict) and "name" in entry]
        return requirements, str(tool.get("python", ""))
    except (OSError, ValueError, AttributeError, TypeError):
        return [], ""


def _format_requirement(entry: Mapping[str, object]) -> str:
    """Format a receipt's requirement for uv's command line."""
    name = str(entry["name"])
    extras = entry.get("extras")
    if isinstance(extras, list) and extras:
        name += f"[{','.join(str(extra) for extra in extras)}]"
    match entry:
        case {"editable": folder}:
            return str(folder)
        case {"git": url}:
            return f"{name} @ git+{url}"
        case {"url": url}:
            return f"{name} @ {url}"
        case {"path": path} | {"directory": path}:
            return str(path)
        case {"specifier": specifier}:
            return f"{name}{specifier}"
    return name
