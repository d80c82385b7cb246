"""A folder that paths cannot leave: what tools use for every file whose name came from outside."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from urllib.parse import unquote

from jackfield.errors import ToolArgumentError

WORKSPACE_VARIABLE = "JACKFIELD_WORKSPACE"


class Workspace:
    """A folder for a tool's files, made when it is first needed.

    Args:
        root: The folder; None for `$JACKFIELD_WORKSPACE`, or `workspace` in the working directory.
    """

    def __init__(self, root: str | Path | None = None) -> None:
        self.root = Path(root or os.environ.get(WORKSPACE_VARIABLE) or "workspace")

    def resolve(self, name: str) -> Path:
        """The path of a file below the root; the file need not exist.

        Raises:
            ToolArgumentError: The name leads outside: absolute, `..`, percent-encoded, through a symbolic link.
        """
        _refuse_what_is_outside(name)
        try:
            root = self.root.resolve()
            path = (root / name).resolve()
            goes_round = _is_link(path)
        except (OSError, RuntimeError, ValueError) as error:  # a link to itself, a name that is too long
            raise ToolArgumentError(f"{name!r} is not a valid file name: {type(error).__name__}") from error
        if goes_round:
            raise ToolArgumentError(f"{name!r} is not a valid file name: it is a link to itself")
        if not path.is_relative_to(root):
            raise ToolArgumentError(f"{name!r} leads out of the workspace through a link")
        return path


def _refuse_what_is_outside(name: str) -> None:
    """Refuse what needs no look at the folder."""
    decoded = unquote(name)
    if "\0" in decoded or not decoded.strip():
        raise ToolArgumentError(f"{name!r} is not a valid file name")
    if _leads_outside(name) or _leads_outside(decoded):
        raise ToolArgumentError(f"{name!r} is outside of the workspace: use a path relative to it, without '..'")


def _leads_outside(name: str) -> bool:
    is_absolute = name.startswith(("/", "\\", "~")) or Path(name).drive
    return bool(is_absolute) or ".." in Path(name.replace("\\", "/")).parts


def _is_link(path: Path) -> bool:
    """Whether a path is a link after all links were followed, which newer Pythons give for one that leads to itself.

    Raises:
        OSError: No file can have this path, because it is too long, or leads through such a link.
    """
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
