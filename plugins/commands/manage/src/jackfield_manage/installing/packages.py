"""Install and uninstall plugins with the installer that is there: uv or pip. No plugin is loaded, no shell is used.

What is handed to the installer is a normalised name, a requirement that `packaging` has read, or an absolute path, so
none of it can be taken for an option.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from jackfield.defaults import MANAGER
from jackfield.errors import ConfigError, PluginError
from jackfield.plugins import Catalog, known_components
from jackfield.settings import normalise
from jackfield_manage.distributions import CORE, Distribution
from jackfield_manage.names import distributions_named, not_installed

_ASKING_TIMEOUT_S = 60.0
_ARCHIVES = (".whl", ".zip", ".tar.gz")
# What installs a version again. pip's cache would give what was built under it before; uv refreshes its own.
_ANEW = {"uv": ("--reinstall",), "pip": ("--force-reinstall", "--no-cache-dir")}

_PATH = re.compile(rf"[.~]|.*[/{re.escape(os.sep)}]", re.DOTALL)

Run = Callable[[Sequence[str]], int]
"""Runs a command, whose output the user sees, and gives its exit code."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The Python environment that is changed.

    Attributes:
        python: Its interpreter.
        prefix, base_prefix: The environment's folder, and that of the Python it was made from.
        stdlib: The folder of the standard library, where an operating system marks a Python as its own (PEP 668).
        search_path: Where programs are looked for.
    """

    python: str
    prefix: Path
    base_prefix: Path
    stdlib: Path
    search_path: str

    @classmethod
    def current(cls) -> Environment:
        """The one this process runs in."""
        return cls(
            python=sys.executable,
            prefix=Path(sys.prefix),
            base_prefix=Path(sys.base_prefix),
            stdlib=Path(sysconfig.get_path("stdlib")),
            search_path=os.environ.get("PATH", ""),
        )


@dataclass(frozen=True, slots=True)
class Sources:
    """Where an installer looks besides, or instead of, the index it is configured for."""

    find_links: tuple[str, ...] = ()
    no_index: bool = False

    def options(self) -> list[str]:
        """As both installers understand them."""
        links = [f"--find-links={_as_link(link)}" for link in self.find_links]
        return [*links, *["--no-index"] * self.no_index]


@dataclass(frozen=True, slots=True)
class Installer:
    """A program that installs, with what comes before its own arguments."""

    name: Literal["uv", "pip"]
    install_command: tuple[str, ...]
    uninstall_command: tuple[str, ...]

    def install(
        self,
        requirements: Sequence[str],
        *,
        constraints: Path | None = None,
        anew: bool = False,
        sources: Sources | None = None,
        upgrade: bool = False,
    ) -> list[str]:
        """The command that installs; with `anew`, it reinstalls the version, without its requirements."""
        options = {
            f"--constraint={constraints}": constraints,
            "--upgrade": upgrade,
            **dict.fromkeys(("--no-deps", *_ANEW[self.name]), anew),
        }
        chosen = [*(sources or Sources()).options(), *filter(options.get, options)]
        return [*self.install_command, *chosen, "--", *requirements]

    def uninstall(self, names: Sequence[str]) -> list[str]:
        """The command that removes distributions without asking back."""
        return [*self.uninstall_command, "--", *names]


def find_installer(environment: Environment | None = None) -> Installer:
    """The installer for an environment: a uv that works, beside the interpreter or on the path, else its own pip.

    Raises:
        ConfigError: There is none, or the environment is not ours to change; the message says what to do.
    """
    env = environment or Environment.current()
    _check_ours(env)
    uv = _working_uv(env)
    if uv:
        return Installer(
            "uv",
            (uv, "pip", "install", f"--python={env.python}"),
            (uv, "pip", "uninstall", f"--python={env.python}"),
        )
    # -P: a folder named pip in the working directory is not the installer.
    pip = (env.python, "-P", "-m", "pip")
    # Enough to know that there is one: running it for its version would take ten times as long.
    if _answers([env.python, "-P", "-c", "import pip.__main__"]):
        return Installer("pip", (*pip, "install", "--disable-pip-version-check"), (*pip, "uninstall", "--yes"))
    raise ConfigError(f"{env.python} has no pip, and there is no uv on the path: get one, {env.python} -m ensurepip")


def _check_ours(env: Environment) -> None:
    """Raise ConfigError if nothing may be installed into an environment."""
    if not env.python:
        raise ConfigError("this Python does not know where its interpreter is, so nothing can be installed for it")
    if env.prefix == env.base_prefix and (env.stdlib / "EXTERNALLY-MANAGED").exists():
        raise ConfigError(
            f"{env.python} belongs to the operating system, which does not allow packages in it. Make an environment: "
            "python3 -m venv .venv && .venv/bin/pip install jackfield, then use .venv/bin/jackfield"
        )


def install(
    texts: Sequence[str],
    *,
    environment: Environment | None = None,
    sources: Sources | None = None,
    upgrade: bool = False,
    anything: bool = False,
    dry_run: bool = False,
    run: Run | None = None,
    tell: Callable[[str], None] = print,
) -> int:
    """Install plugins; gives the installer's exit code.

    Args:
        texts: Names, requirements, wheels or folders, as `requirement_of` takes them.
        environment: In place of the one this process runs in.
        sources: Where to look besides the index.
        upgrade: Upgrade to the newest version.
        anything: Also allow packages that are not known, or not named like plugins.
        dry_run: Say the command, and run nothing.
        run: In place of running the command.
        tell: Takes what is done, line by line.

    Raises:
        ConfigError: A text is none of these, or nothing can be installed here.
    """
    env = environment or Environment.current()
    meant = {text: requirement_of(text, anything=anything) for text in texts}
    _tell_meant(meant, tell)
    requirements = list(meant.values())
    refuse_tool_environment(env, add=requirements)
    command = find_installer(env).install(requirements, sources=sources, upgrade=upgrade)
    return _carry_out(command, dry_run=dry_run, run=run, tell=tell)


def uninstall(
    texts: Sequence[str],
    catalog: Catalog,
    *,
    environment: Environment | None = None,
    dry_run: bool = False,
    run: Run | None = None,
    tell: Callable[[str], None] = print,
) -> int:
    """Remove plugins, broken ones too; gives the installer's exit code.

    Args:
        texts: Distributions, or components as `name`, `kind.name` or `distribution/name`.
        catalog: What is installed.
        environment, dry_run, run, tell: As for `install`.

    Raises:
        PluginError: A text names no plugin, or several.
        ConfigError: Nothing can be removed here.
    """
    env = environment or Environment.current()
    meant = {text: installed_plugin(text, catalog) for text in texts}
    _tell_meant(meant, tell)
    names = list(dict.fromkeys(meant.values()))
    refuse_tool_environment(env, remove=names)
    return _carry_out(find_installer(env).uninstall(names), dry_run=dry_run, run=run, tell=tell)


def _tell_meant(meant: Mapping[str, str], tell: Callable[[str], None]) -> None:
    for text, name in meant.items():
        if text != name:
            tell(f"{text} → {name}")


def requirement_of(text: str, *, anything: bool = False) -> str:
    """What to hand to an installer for what somebody typed.

    `openai` and `llm.openai` mean the known distribution that offers them, with or without a version behind it; a name
    that is nearly a known one is refused, and so is one that is not `jackfield-…`, and an address. What looks like a
    path is one.

    Args:
        text: What was typed.
        anything: Take any name and any address as it is.

    Raises:
        ConfigError: It is none of these; the message says what it may be.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    if _looks_like_path(text):
        return _path_of(text)
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise ConfigError(
            f"{text!r:.200} is not a plugin: write a name (openai), a requirement (jackfield-openai>=0.1), "
            "or the path of a wheel or folder (./jackfield-mine)"
        ) from error
    if requirement.url and not anything:
        raise ConfigError(
            f"{text!r:.200} installs whatever lies at that address. If you trust it: "
            f"jackfield plugins install --any {shlex.quote(text)}"
        )
    name = requirement.name if requirement.url else _distribution_named(requirement.name, anything=anything)
    return name + str(requirement)[len(requirement.name) :]


def installed_plugin(text: str, catalog: Catalog) -> str:
    """The one installed distribution that a text means, by its own name or by what it offers.

    Raises:
        PluginError: There is none, or more than one; or it is the manager, and was not named itself.
    """
    if normalise(text) == CORE:
        raise PluginError("jackfield is the core, not a plugin: to remove it, use pip or uv directly")
    meant = distributions_named(text, catalog)
    if not meant:
        raise not_installed(text, catalog)
    if len(meant) > 1:
        raise PluginError(f"{text!r} is offered by {' and '.join(meant)}: name the one you mean")
    if meant == [MANAGER] != [normalise(text)]:
        raise PluginError(
            f"{text!r} is a command of {MANAGER}, without which this installation cannot be managed; "
            f"if you do mean it: jackfield plugins uninstall {MANAGER}"
        )
    return meant[0]


def refuse_tool_environment(env: Environment, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> None:
    """Refuse to change the environment of a tool: the next upgrade makes it again from its receipt.

    Raises:
        ConfigError: It is one; the message has the exact command that changes it.
    """
    command = tool_command(env, add=tuple(add), remove=tuple(remove))
    if command:
        raise ConfigError(
            f"this environment belongs to a tool installer, which would forget the change. Run: {command}"
        )


def write_constraints(pins: Mapping[str, str]) -> Path:
    """A file that holds an installer to versions; whoever asks for it removes it."""
    descriptor, path = tempfile.mkstemp(prefix="jackfield-", suffix=".txt")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(f"{name}=={version}\n" for name, version in sorted(pins.items()))
    return Path(path)


def run_visibly(command: Sequence[str]) -> int:
    """Run a command, whose output the user sees, and give its exit code.

    Raises:
        ConfigError: It cannot be started.
    """
    sys.stdout.flush()
    try:
        return subprocess.run(list(command), check=False).returncode  # noqa: S603 - a list, and no shell
    except OSError as error:
        raise ConfigError(f"{command[0]} cannot be run: {error.strerror or error}") from error


def _carry_out(command: Sequence[str], *, dry_run: bool, run: Run | None, tell: Callable[[str], None]) -> int:
    if dry_run:
        tell(f"would run: {shlex.join(command)}")
        return 0
    return (run or run_visibly)(command)


# --- names ---


def _looks_like_path(text: str) -> bool:
    # A requirement with an address (`name @ https://…`) has slashes, too.
    looks_so = _PATH.match(text) or text.lower().endswith(_ARCHIVES)
    return "@" not in text and bool(looks_so)


def _path_of(text: str) -> str:
    try:
        path = Path(text).expanduser().absolute()
        fault = _fault_of_path(path)
    except (OSError, RuntimeError, ValueError) as error:  # a name that is too long, an unknown ~user, a NUL
        raise ConfigError(f"{text!r:.200} is not a valid path: {error}") from error
    if fault:
        raise ConfigError(f"{text!r:.200} {fault}; a plugin's name does not contain '/'")
    return str(path)


def _fault_of_path(path: Path) -> str:
    """Why a path cannot be installed, '' if it can."""
    sources = (path / "pyproject.toml", path / "setup.py", *([path] if path.name.lower().endswith(_ARCHIVES) else ()))
    if any(map(Path.is_file, sources)):
        return ""
    return "is neither a wheel nor a folder with a pyproject.toml" if path.exists() else "does not exist"


def _distribution_named(name: str, *, anything: bool) -> str:
    """The distribution that a name means, by the list of known ones; with `anything`, whatever has it."""
    wanted = normalise(name)
    offers = _offers()
    meant = offers.get(wanted, set())
    # One that is called so itself comes before others that offer the name.
    meant = meant & {f"{CORE}-{wanted}"} or meant
    if len(meant) > 1:
        raise ConfigError(f"{name!r} is offered by {', '.join(sorted(meant))}: name the one you mean")
    if not (meant or anything or wanted == CORE):
        _refuse_doubtful(name, offers)
    return next(iter(meant), wanted)


def _offers() -> dict[str, set[str]]:
    """The known distributions by all names that mean one of them."""
    offers: dict[str, set[str]] = {}
    for component, known in known_components().items():
        distribution = known.distribution
        kind, _, short = component.partition(".")
        for form in (distribution, distribution.removeprefix(f"{CORE}-"), f"{kind}-{short}", short):
            offers.setdefault(normalise(form), set()).add(distribution)
    return offers


def _refuse_doubtful(name: str, offers: Mapping[str, Set[str]]) -> None:
    """Raise ConfigError for a name that is nearly a known one, or is not named as plugins are."""
    wanted, prefix = normalise(name), f"{CORE}-"
    # Without the prefix, which would make all names alike.
    near = get_close_matches(wanted.removeprefix(prefix), {form.removeprefix(prefix) for form in offers}, 1, cutoff=0.8)
    if near:
        # A slip of the pen would install whatever somebody else has put under that name.
        intended = min(offers.get(near[0]) or offers[f"{prefix}{near[0]}"])
        raise ConfigError(
            f"{name!r} is similar to {near[0]!r}: run jackfield plugins install {intended}; "
            f"if you really mean the package {wanted!r}: jackfield plugins install --any {wanted}"
        )
    if not wanted.startswith(prefix):
        # A word is not a distribution: somebody may have put anything under it.
        raise ConfigError(
            f"no known plugin is called {name!r}, and its name is not a plugin's (jackfield-NAME), so it could be "
            f"anything. To search: jackfield plugins search. To install it: jackfield plugins install --any {wanted}"
        )


def names_of(requirements: Iterable[str], found: Mapping[str, Distribution]) -> set[str]:
    """The distributions that requirements and paths have installed, among those that are found afterwards."""
    requirements = list(requirements)
    named = set(map(normalise, map(_name_in, requirements))) - {""}
    folders = {path.as_uri() for path in map(Path, requirements) if path.is_absolute()}
    return named | {one.name for one in found.values() if one.direct.get("url") in folders}


def _as_link(link: str) -> str:
    """A folder becomes an absolute one; an address stays."""
    return link if "://" in link else str(Path(link).expanduser().absolute())


# --- environments ---


def _working_uv(env: Environment) -> str | None:
    found = (shutil.which("uv", path=folders) for folders in (str(Path(env.python).parent), env.search_path))
    # It is run: a shim of a version manager may be there for another Python, and only say so.
    return next((uv for uv in found if uv and _answers([uv, "--version"])), None)


def _answers(command: Sequence[str]) -> bool:
    try:
        done = subprocess.run(  # noqa: S603 - a list, and no shell
            list(command), capture_output=True, check=False, timeout=_ASKING_TIMEOUT_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def tool_command(env: Environment, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> str | None:
    """The command that changes the environment of `uv tool` or pipx; None if it is neither."""
    if (env.prefix / "uv-receipt.toml").is_file():
        return _uv_tool_command(env, add, remove)
    if (env.prefix / "pipx_metadata.json").is_file():
        verb, names = ("inject", add) if add else ("uninject", remove)
        return shlex.join(["pipx", verb, env.prefix.name, *names])
    return None


def _uv_tool_command(env: Environment, add: Sequence[str], remove: Sequence[str]) -> str:
    entries, python = _receipt(env)
    main, *others = entries or [{"name": env.prefix.name}]
    gone = set(map(normalise, (*remove, *map(_name_in, add))))
    kept = [entry for entry in others if normalise(str(entry.get("name", ""))) not in gone]
    words = ["uv", "tool", "install", *["--python", python] * bool(python)]
    words += filter(None, _tool_requirement(main, as_is="", editable="--editable"))
    for entry in kept:
        words += _tool_requirement(entry, as_is="--with", editable="--with-editable")
    return shlex.join([*words, *(word for one in add for word in ("--with", one))])


def _receipt(env: Environment) -> tuple[list[dict[str, Any]], str]:
    """The requirements of a tool, itself first, and the Python it was installed with, as far as they are told."""
    import tomllib

    try:
        tool: Any = tomllib.loads((env.prefix / "uv-receipt.toml").read_text(encoding="utf-8")).get("tool", {})
        entries = [entry for entry in tool.get("requirements", []) if isinstance(entry, dict)]
        return entries, str(tool.get("python", ""))
    except (OSError, ValueError, AttributeError, TypeError):
        return [], ""


# How a requirement of a receipt is written that has one of these keys.
_FORMS = {
    "editable": "{place}", "git": "{name} @ git+{place}", "url": "{name} @ {place}", "path": "{place}",
    "directory": "{place}", "specifier": "{name}{place}",
}  # fmt: skip


def _tool_requirement(entry: Mapping[str, object], *, as_is: str, editable: str) -> tuple[str, str]:
    """One requirement of a receipt, behind the one or the other option."""
    extras = entry.get("extras")
    name = str(entry.get("name", ""))
    if isinstance(extras, list) and extras:
        name += f"[{','.join(map(str, extras))}]"
    key = next(filter(entry.__contains__, _FORMS), "")
    form = _FORMS.get(key, "{name}")
    return {"editable": editable}.get(key, as_is), form.format(name=name, place=entry.get(key))


def _name_in(requirement: str) -> str:
    """The name in a requirement or at the front of a wheel's file name; '' for a folder."""
    from packaging.requirements import InvalidRequirement, Requirement

    if Path(requirement).is_absolute():
        return Path(requirement).name.partition("-")[0] if requirement.endswith(".whl") else ""
    try:
        return Requirement(requirement).name
    except InvalidRequirement:
        return ""
