"""Install and uninstall plugins with the environment's installer. No plugin is loaded, and no shell is used.

The installer receives only normalised names, requirements parsed by `packaging`, and absolute paths, none of which can
be mistaken for an option.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from difflib import get_close_matches
from pathlib import Path

from jackfield.defaults import MANAGER
from jackfield.errors import ConfigError, PluginError
from jackfield.plugins import Catalog, known_components
from jackfield.settings import normalise
from jackfield_manage.distributions import CORE, Distribution
from jackfield_manage.installing.installers import (
    Environment,
    Run,
    Sources,
    find_installer,
    name_in,
    refuse_tool_environment,
    run_visibly,
)
from jackfield_manage.names import find_distributions, not_installed_error

_ARCHIVES = (".whl", ".zip", ".tar.gz")
_PATH = re.compile(rf"[.~]|.*[/{re.escape(os.sep)}]", re.DOTALL)
_PREFIX = f"{CORE}-"


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
    """Install plugins, and return the installer's exit code.

    Args:
        texts: Names, requirements, wheels or directories; see `requirement_of`.
        environment: The environment to change. Defaults to that of this process.
        sources: Package sources in addition to the index.
        upgrade: True to upgrade to the latest version.
        anything: True to allow packages that are unknown or not named like plugins.
        dry_run: True to print the command instead of running it.
        run: Runs the command.
        tell: Receives a line for each step.

    Raises:
        ConfigError: A text is invalid, or nothing can be installed into the environment.
    """
    env = environment or Environment.current()
    requirements = {text: requirement_of(text, anything=anything) for text in texts}
    _tell_resolved(requirements, tell)
    refuse_tool_environment(env, add=requirements.values())
    command = find_installer(env).install(list(requirements.values()), sources=sources, upgrade=upgrade)
    return _run(command, dry_run=dry_run, run=run, tell=tell)


def uninstall(
    texts: Sequence[str],
    catalog: Catalog,
    *,
    environment: Environment | None = None,
    dry_run: bool = False,
    run: Run | None = None,
    tell: Callable[[str], None] = print,
) -> int:
    """Uninstall plugins, including broken ones, and return the installer's exit code.

    Args:
        texts: Distributions, or components as `name`, `kind.name` or `distribution/name`.
        catalog: The installed components.
        environment, dry_run, run, tell: See `install`.

    Raises:
        PluginError: A text refers to no plugin or to several.
        ConfigError: Nothing can be removed from the environment.
    """
    env = environment or Environment.current()
    names = {text: installed_plugin(text, catalog) for text in texts}
    _tell_resolved(names, tell)
    unique = list(dict.fromkeys(names.values()))
    refuse_tool_environment(env, remove=unique)
    return _run(find_installer(env).uninstall(unique), dry_run=dry_run, run=run, tell=tell)


def _tell_resolved(names: Mapping[str, str], tell: Callable[[str], None]) -> None:
    for text, name in names.items():
        if text != name:
            tell(f"{text} → {name}")


def _run(command: Sequence[str], *, dry_run: bool, run: Run | None, tell: Callable[[str], None]) -> int:
    if dry_run:
        tell(f"would run: {shlex.join(command)}")
        return 0
    return (run or run_visibly)(command)


def installed_plugin(text: str, catalog: Catalog) -> str:
    """Return the only installed distribution with the given name, or with a component of that name.

    Raises:
        PluginError: There is no such distribution, there are several, or it is the manager and not named explicitly.
    """
    if normalise(text) == CORE:
        raise PluginError("jackfield is the core, not a plugin: to remove it, use pip or uv directly")
    names = find_distributions(text, catalog)
    if not names:
        raise not_installed_error(text, catalog)
    if len(names) > 1:
        raise PluginError(f"{text!r} is provided by {' and '.join(names)}: specify one of them")
    if names[0] == MANAGER != normalise(text):
        raise PluginError(
            f"{text!r} is provided by {MANAGER}, which manages this installation. To remove the package anyway, "
            f"run: jackfield plugins uninstall {MANAGER}"
        )
    return names[0]


def names_of(requirements: Iterable[str], installation: Mapping[str, Distribution]) -> set[str]:
    """Return the installed distributions to which requirements and paths refer."""
    names: set[str] = set()
    folders: set[object] = set()
    for requirement in requirements:
        names.add(normalise(name_in(requirement)))
        if Path(requirement).is_absolute():
            folders.add(Path(requirement).as_uri())
    names |= {distribution.name for distribution in installation.values() if distribution.direct.get("url") in folders}
    return names - {""}


def requirement_of(text: str, *, anything: bool = False) -> str:
    """Return the requirement or absolute path for what the user typed.

    `openai` and `llm.openai`, with or without a version, stand for the known distribution that offers the component.
    Names that resemble a known one, names that do not start with `jackfield-`, and URLs are refused. Anything that
    looks like a path is treated as one.

    Args:
        text: The text typed by the user.
        anything: True to accept any name and any URL.

    Raises:
        ConfigError: The text is refused. The message says what to type.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    # A requirement with a URL (`name @ https://…`) also contains slashes.
    if "@" not in text and (_PATH.match(text) or text.lower().endswith(_ARCHIVES)):
        return _resolve_path(text)
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise ConfigError(
            f"{text!r:.200} is not a valid plugin: specify a name (openai), a requirement "
            "(jackfield-openai>=0.1), or the path to a wheel or folder (./jackfield-mine)"
        ) from error
    if requirement.url and not anything:
        raise ConfigError(
            f"{text!r:.200} would install whatever code is at that URL. If you trust the source, run: "
            f"jackfield plugins install --any {shlex.quote(text)}"
        )
    name = requirement.name if requirement.url else _resolve_name(requirement.name, anything=anything)
    return name + str(requirement)[len(requirement.name) :]


def _resolve_path(text: str) -> str:
    try:
        path = Path(text).expanduser().absolute()
        sources = [path / "pyproject.toml", path / "setup.py"]
        if path.name.lower().endswith(_ARCHIVES):
            sources.append(path)
        is_installable, exists = any(source.is_file() for source in sources), path.exists()
    except (OSError, RuntimeError, ValueError) as error:  # too long, an unknown ~user, or contains NUL
        raise ConfigError(f"{text!r:.200} is not a valid path: {error}") from error
    if not is_installable:
        fault = "is neither a wheel nor a folder with a pyproject.toml" if exists else "does not exist"
        raise ConfigError(f"{text!r:.200} {fault}; plugin names do not contain '/'")
    return str(path)


def _resolve_name(name: str, *, anything: bool) -> str:
    """Return the known distribution for a name, or the normalised name if it is allowed."""
    wanted = normalise(name)
    publishers = _known_publishers()
    candidates = publishers.get(wanted, set())
    # A distribution with this exact name takes precedence over others that offer the name.
    if _PREFIX + wanted in candidates:
        return _PREFIX + wanted
    if len(candidates) > 1:
        raise ConfigError(f"{name!r} is provided by {', '.join(sorted(candidates))}: specify one of them")
    if candidates:
        return min(candidates)
    if not anything and wanted != CORE:
        _refuse_doubtful(name, publishers)
    return wanted


def _known_publishers() -> dict[str, set[str]]:
    """Return the known distributions, by each name that can stand for one of them."""
    publishers: dict[str, set[str]] = {}
    for component, known in known_components().items():
        distribution = known.distribution
        kind, _, short = component.partition(".")
        for form in (distribution, distribution.removeprefix(_PREFIX), f"{kind}-{short}", short):
            publishers.setdefault(normalise(form), set()).add(distribution)
    return publishers


def _refuse_doubtful(name: str, publishers: Mapping[str, Set[str]]) -> None:
    """Raise ConfigError for a name that resembles a known one or is not named like a plugin."""
    wanted = normalise(name)
    # Compared without the prefix, which would make all names similar.
    known = {form.removeprefix(_PREFIX) for form in publishers}
    similar = get_close_matches(wanted.removeprefix(_PREFIX), known, 1, cutoff=0.8)
    if similar:
        # A typo would install whatever anyone may have published under that name.
        intended = min(publishers[similar[0]])
        raise ConfigError(
            f"{name!r} is similar to {similar[0]!r}. To install {similar[0]!r}, run: jackfield plugins install "
            f"{intended}. To install {wanted!r} anyway, run: jackfield plugins install --any {wanted}"
        )
    if not wanted.startswith(_PREFIX):
        raise ConfigError(
            f"no known plugin is named {name!r}, and the name does not start with {_PREFIX!r}, so it could be any "
            "package. To search, run: jackfield plugins search. To install it anyway, run: jackfield plugins install "
            f"--any {wanted}"
        )
