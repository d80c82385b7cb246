"""Which sandbox is used: `auto`, one by its name, or `none`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar, cast

from jackfield.defaults import FIRST_SANDBOX
from jackfield.errors import JackfieldError, SandboxError
from jackfield.plugins import PluginHost, SandboxSpec, known_components
from jackfield.sandboxes._contract import PREVENTED, CodeSandbox, ProgramSandbox, Sandbox

S = TypeVar("S", bound=Sandbox)

AUTO = "auto"
"""The setting for the best sandbox that works on this machine."""
NONE = "none"
"""The setting for running without a sandbox."""

_WARNING = (
    "sandbox='none': code that a model wrote runs with your own rights. It can read and change your files, find your "
    "API keys and use your network."
)
_log = logging.getLogger(__name__)


def choose_sandbox(
    name: str, ability: Callable[..., S], *, host: PluginHost, settings: Mapping[str, object] | None = None
) -> S | None:
    """The sandbox of a setting. It is tried, which may block for a second: call it in a worker thread.

    Args:
        name: `auto` for the one that protects from most, out of our own packages and those that the user has enabled
            or allowed, and never one that leaves files open; the name of one; or `none`.
        ability: What it must be able to do: `ProgramSandbox` or `CodeSandbox`.
        settings: Those of the named one; `auto` leaves each one's defaults.

    Returns:
        A sandbox that works on this machine; None for `none`. One that leaves files, network or processes open is
        logged once per process, and so is `none`.

    Raises:
        SandboxError: None works; the message says why, and how to do without.
        PluginError: The named one is not installed or cannot be loaded.
    """
    if name == NONE:
        _warn(_WARNING)
        return None
    named = name != AUTO
    made = _made(host, host.find("sandbox", name), settings or {}, ability) if named else _best(ability, host)
    protection = made.protection()
    if not PREVENTED.keys() <= protection.covers:
        _warn(f"sandbox={name!r} leaves something open on this machine: {protection}")
    return made


def needs_approval(name: str, ability: Callable[..., S], *, host: PluginHost) -> bool:
    """Return whether a person must agree to each run of code: its sandbox leaves files open here, or cannot be used.

    A sandbox that is named is tried, which may block for a second the first time. `auto` takes none that leaves them
    open, so it is not tried here.
    """
    if name == AUTO:
        return False
    try:
        made = choose_sandbox(name, ability, host=host)
        return made is None or "files" not in made.protection().covers
    except JackfieldError:
        return True


def _best(ability: Callable[..., S], host: PluginHost) -> S:
    programs = issubclass(_class(ability), ProgramSandbox)
    usable: list[tuple[int, bool, str, S]] = []
    problems: list[str] = []
    for row, spec in host.specs("sandbox", SandboxSpec):
        if not (spec.runs_programs if programs else spec.runs_code):
            continue
        try:
            made = _made(host, row, {}, ability)
            if "files" not in made.protection().covers:
                problems.append(
                    f"{spec.name}: it leaves your files open here; sandbox={spec.name!r} uses it all the same"
                )
                continue
            # Of two that cover as much, ours: else a package could draw all code to itself by its name.
            is_ours = row.distribution == getattr(known_components().get(f"sandbox.{spec.name}"), "distribution", "")
            usable.append((-len(made.protection().covers), not is_ours, spec.name, made))
        except JackfieldError as error:  # another one may work; if none does, this is part of the message
            problems.append(f"{spec.name}: {error}")
    left_out = [f"{row.address} {reason}" for row, reason in host.policy.left_out("sandbox").items()]
    if usable:
        return min(usable, key=lambda one: one[:3])[3]
    reasons = [f"no sandbox can be used to run {'programs' if programs else 'code'}", *problems, *left_out]
    raise SandboxError(
        f"{'; '.join(reasons)}. Install one (pip install {FIRST_SANDBOX}, and bubblewrap of your system), or set "
        "sandbox='none' to run code with your own rights."
    )


def _made(host: PluginHost, row: Any, settings: Mapping[str, object], ability: Callable[..., S]) -> S:
    made = host.make(row, settings, Sandbox)
    wanted = _class(ability)
    if not isinstance(made, wanted):
        can = [one.__name__ for one in (ProgramSandbox, CodeSandbox) if isinstance(made, one)]
        raise SandboxError(f"the sandbox {row.name!r} is a {' and '.join(can)}; a {wanted.__name__} is needed")
    return made


def _class(ability: Callable[..., S]) -> type[S]:
    # Type checkers refuse a class that is abstract as `type[S]`, and both are.
    return cast(type[S], ability)


@cache  # once in a process is enough
def _warn(text: str) -> None:
    _log.warning(text)
