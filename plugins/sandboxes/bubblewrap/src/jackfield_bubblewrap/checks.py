"""Checks for `doctor --deep`."""

from __future__ import annotations

from jackfield.errors import SandboxError
from jackfield.sandboxes import Sandbox
from jackfield_bubblewrap.bubblewrap import Bubblewrap
from jackfield_bubblewrap.landlock import LandlockSandbox


def problems() -> list[str]:
    """Return the reasons why neither sandbox is usable here. If one of them is, there are none."""
    found = [_problem(sandbox) for sandbox in (Bubblewrap(), LandlockSandbox())]
    return found if all(found) else []


def _problem(sandbox: Sandbox) -> str:
    try:
        sandbox.protection()
    except SandboxError as error:
        return str(error)
    return ""
