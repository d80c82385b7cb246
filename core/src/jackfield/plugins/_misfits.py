"""Explain errors about missing names that incompatible package versions cause."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from jackfield.errors import BrokenPluginError
from jackfield.settings import normalise

_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*\(?(?P<bounds>[^;)]*)")
_FLOOR = re.compile(r"(?:>=|==|~=)\s*v?(\d+(?:\.\d+)*)")
_CEILING = re.compile(r"<\s*v?(\d+(?:\.\d+)*)")
_IMPORTED_NAME = re.compile(r"cannot import name '(\w+)'")


@dataclass(frozen=True, slots=True)
class Misfit:
    """A name that one distribution uses but that the installed version of another distribution does not define.

    Attributes:
        user: The distribution that uses the name, with its version.
        name: The name, including its module.
        owner: The distribution that should define the name, with its version.
        command: The command that installs compatible versions.
    """

    user: str
    name: str
    owner: str
    command: str

    def __str__(self) -> str:
        return f"{self.user} uses {self.name}, which {self.owner} does not provide"


def misfit_of(error: BaseException | None) -> Misfit | None:
    """Return the version mismatch behind an error, or None.

    There is a mismatch if an installed distribution does not define a name that another distribution uses.
    """
    if not isinstance(error, ImportError | AttributeError):
        return None
    user = _module_that_failed(error).partition(".")[0]
    for module, name in _missing_names(error):
        owner = module.partition(".")[0]
        if owner != user and not {owner, user} & {"", *sys.stdlib_module_names}:
            return misfit_between(user, owner, f"{module}.{name}")
    return None


def explain_error(error: BaseException) -> BaseException:
    """Return a `BrokenPluginError` that explains the version mismatch behind an error, or the error itself."""
    misfit = misfit_of(error)
    if misfit is None:
        return error
    explained = BrokenPluginError(f"{misfit}. To fix it, run: {misfit.command}")
    explained.__cause__ = error
    return explained


def misfit_between(user_package: str, owner_package: str, name: str) -> Misfit | None:
    """Return the mismatch between two top-level packages.

    Return None unless they belong to two installed distributions.
    """
    user, owner = _distribution_of(user_package), _distribution_of(owner_package)
    if user is None or owner is None or user.name == owner.name:
        return None
    return Misfit(f"{user.name} {user.version}", name, f"{owner.name} {owner.version}", _command(user, owner))


def _missing_names(error: ImportError | AttributeError) -> Iterator[tuple[str, str]]:
    """Yield the modules that may be responsible for the missing name, each with the name inside the module."""
    if isinstance(error, ModuleNotFoundError):
        parent, dot, child = (error.name or "").rpartition(".")
        if dot:
            yield parent, child
    elif isinstance(error, ImportError):
        if error.name and (match := _IMPORTED_NAME.search(str(error))):
            yield error.name, match[1]
    elif error.name and not error.name.startswith("_"):
        yield from _owners(error.obj, error.name)


def _owners(value: object, name: str) -> Iterator[tuple[str, str]]:
    """Yield the modules that define a value's classes, subclasses first.

    If the value is a module, yield the value itself.
    """
    if isinstance(value, ModuleType):
        yield value.__name__, name
        return
    first, *bases = type.__dict__["__mro__"].__get__(value if isinstance(value, type) else type(value))
    yield first.__module__, f"{first.__qualname__}.{name}"
    for base in bases:
        # A third-party class may lack a name through its own fault, so suspect only bases that we publish.
        if base.__module__.startswith("jackfield"):
            yield base.__module__, f"{base.__qualname__}.{name}"


def _module_that_failed(error: BaseException) -> str:
    """Return the module of an error's innermost frame, ignoring the import system and `__getattr__`."""
    module, trace = "", error.__traceback__
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__", ""))
        if not name.startswith("importlib.") and trace.tb_frame.f_code.co_name != "__getattr__":
            module = name
        trace = trace.tb_next
    return module


def _distribution_of(package: str) -> Any:
    """Return the metadata of the distribution that owns a top-level package, or None."""
    import importlib_metadata  # only needed for errors

    candidates = [normalise(package)]
    try:
        return importlib_metadata.distribution(candidates[0])
    except importlib_metadata.PackageNotFoundError:
        names = importlib_metadata.packages_distributions().get(package)
    return importlib_metadata.distribution(names[0]) if names else None


def _command(user: Any, owner: Any) -> str:
    """Return the command that installs versions with the missing name, based on the requirements of `user`."""
    bounds = _bounds(user, owner.name)
    floor, ceiling = _FLOOR.search(bounds), _CEILING.search(bounds)
    version = _release(owner.version)
    if (floor and version < _release(floor[1])) or (ceiling and version >= _release(ceiling[1])):
        return f"pip install '{owner.name}{bounds}'"
    if floor and _series(version) > _series(_release(floor[1])):
        # The authors allowed versions that did not exist yet. Their package worked with the oldest allowed version.
        return f"pip install '{owner.name}>={floor[1]},<{_after(_series(_release(floor[1])))}'"
    return f"pip install --upgrade {user.name} {owner.name}"


def _bounds(user: Any, name: str) -> str:
    """Return the version specifier with which a distribution requires `name`, or '' if there is none."""
    for text in user.requires or ():
        match = _REQUIREMENT.match(text)
        if match and normalise(match["name"]) == normalise(name):
            return match["bounds"].replace(" ", "")
    return ""


def _release(version: str) -> tuple[int, ...]:
    """Return a version's release numbers, padded to at least three."""
    numbers = [int(part) for part in re.findall(r"\d+", re.split(r"[^\d.]", version.removeprefix("v"))[0])]
    return (*numbers, *[0] * (3 - len(numbers)))


def _series(release: tuple[int, ...]) -> tuple[int, ...]:
    """Return the part of a version that compatible releases have in common: major, or major and minor before 1.0."""
    return release[:1] if release[0] else release[:2]


def _after(series: tuple[int, ...]) -> str:
    return ".".join(str(number) for number in (*series[:-1], series[-1] + 1))
