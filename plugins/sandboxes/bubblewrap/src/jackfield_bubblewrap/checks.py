"""What `doctor --deep` reports."""

from __future__ import annotations

from jackfield.errors import SandboxError
from jackfield.sandboxes import Sandbox
from jackfield_bubblewrap.bubblewrap import Bubblewrap
from jackfield_bubblewrap.landlock import LandlockSandbox


def problems_of_bubblewrap() -> list[str]:
    """Why bubblewrap cannot be used here, or what it leaves open."""
    return _problems(Bubblewrap())


def problems_of_landlock() -> list[str]:
    """Why Landlock cannot be used here."""
    return _problems(LandlockSandbox())


def _problems(sandbox: Sandbox) -> list[str]:
    try:
        sandbox.protection()
    except SandboxError as error:
        return [str(error)]
    return []
