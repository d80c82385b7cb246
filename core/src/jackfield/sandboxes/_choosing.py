"""Select a sandbox: `auto`, a name, or `none`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeVar, cast

from jackfield.defaults import FIRST_SANDBOX
from jackfield.errors import JackfieldError, SandboxError
from jackfield.plugins import Plugins, Row, SandboxSpec, known_components
from jackfield.sandboxes._contract import PREVENTED, CodeSandbox, ProgramSandbox, Sandbox

S = TypeVar("S", bound=Sandbox)

AUTO = "auto"
"""The setting for the best sandbox that works on this machine."""
NONE = "none"
"""The setting for running without a sandbox."""

_WARNING = (
    "sandbox='none': model-written code runs with your full permissions. It can read and change your files, find your "
    "API keys and use your network."
)
_log = logging.getLogger(__name__)


def choose_sandbox(
    name: str, ability: Callable[..., S], *, host: Plugins, settings: Mapping[str, object] | None = None
) -> S | None:
    """Return the sandbox for a setting. Testing a sandbox may block for a second, so call this in a worker thread.

    Args:
        name: The name of a sandbox, `none`, or `auto`. `auto` selects the sandbox with the best protection from
            Jackfield's packages and packages that the user has enabled or allowed. A sandbox that leaves files
            unprotected is never selected.
        ability: The class that the sandbox must extend: `ProgramSandbox` or `CodeSandbox`.
        host: The plugin host.
        settings: Settings for a named sandbox. `auto` uses the defaults.

    Returns:
        A sandbox that works on this machine, or None for `none`. For `none`, and for a sandbox that leaves files,
        network or processes unprotected, a warning is logged once per process.

    Raises:
        SandboxError: No sandbox works. The message lists the reasons and the alternatives.
        PluginError: The named sandbox is not installed or cannot be loaded.
    """
    if name == NONE:
        _warn(_WARNING)
        return None
    if name == AUTO:
        sandbox = _make_best(ability, host)
    else:
        sandbox = _make(host, host.find("sandbox", name), settings or {}, ability)
    protection = sandbox.protection()
    if not PREVENTED.keys() <= protection.covers:
        _warn(f"sandbox={name!r} does not provide full protection on this machine: {protection}")
    return sandbox


def needs_approval(name: str, ability: Callable[..., S], *, host: Plugins) -> bool:
    """Return True if the user must approve each run of code.

    Approval is needed if the sandbox leaves files unprotected or does not work. The first test of a named sandbox may
    block for a second. `auto` never leaves files unprotected, so no test is needed.
    """
    if name == AUTO:
        return False
    try:
        sandbox = choose_sandbox(name, ability, host=host)
        return sandbox is None or "files" not in sandbox.protection().covers
    except JackfieldError:
        return True


def _make_best(ability: Callable[..., S], host: Plugins) -> S:
    programs = issubclass(_class(ability), ProgramSandbox)
    usable: list[tuple[int, bool, str, S]] = []
    problems: list[str] = []
    for row, spec in host.specs("sandbox", SandboxSpec):
        if not (spec.runs_programs if programs else spec.runs_code):
            continue
        try:
            sandbox = _make(host, row, {}, ability)
            covers = sandbox.protection().covers
            if "files" not in covers:
                problems.append(
                    f"{spec.name}: does not protect your files on this machine; to use it anyway, set "
                    f"sandbox={spec.name!r}"
                )
                continue
            # Jackfield's package wins a tie, so that no other package can attract all code by its name.
            known = known_components().get(f"sandbox.{spec.name}")
            is_ours = known is not None and row.distribution == known.distribution
            usable.append((-len(covers), not is_ours, spec.name, sandbox))
        except JackfieldError as error:  # another sandbox may work
            problems.append(f"{spec.name}: {error}")
    left_out = [f"{row.address} {reason}" for row, reason in host.policy.left_out("sandbox").items()]
    if usable:
        return min(usable, key=lambda candidate: candidate[:3])[3]
    reasons = [f"no sandbox is available to run {'programs' if programs else 'code'}", *problems, *left_out]
    raise SandboxError(
        f"{'; '.join(reasons)}. Install a sandbox (pip install {FIRST_SANDBOX}, plus your system's bubblewrap "
        "package), or set sandbox='none' to run code with your full permissions."
    )


def _make(host: Plugins, row: Row, settings: Mapping[str, object], ability: Callable[..., S]) -> S:
    sandbox = host.make(row, settings, Sandbox)
    required = _class(ability)
    if not isinstance(sandbox, required):
        classes = [each.__name__ for each in (ProgramSandbox, CodeSandbox) if isinstance(sandbox, each)]
        raise SandboxError(f"sandbox {row.name!r} is a {' and '.join(classes)}; expected a {required.__name__}")
    return sandbox


def _class(ability: Callable[..., S]) -> type[S]:
    # Callers pass abstract classes, which type checkers refuse as `type[S]`.
    return cast(type[S], ability)


@cache  # once per process
def _warn(text: str) -> None:
    _log.warning(text)
