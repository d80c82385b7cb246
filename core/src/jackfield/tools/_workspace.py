"""Directory that confines files whose names come from an untrusted source."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from urllib.parse import unquote

from jackfield._fitting import check_argument
from jackfield.errors import ToolArgumentError

WORKSPACE_VARIABLE = "JACKFIELD_WORKSPACE"


class Workspace:
    """The directory for files written by tools, created on first use.

    Args:
        root: The directory. Defaults to `$JACKFIELD_WORKSPACE`, or to `workspace` in the working directory.
    """

    def __init__(self, root: str | Path | None = None) -> None:
        check_argument("root", root, str | os.PathLike | None, "a folder")
        self.root = Path(root or os.environ.get(WORKSPACE_VARIABLE) or "workspace")

    def resolve(self, name: str) -> Path:
        """Return the path of a file inside the workspace. The file need not exist.

        Raises:
            ToolArgumentError: The name leads outside the workspace: it is absolute, contains `..` (possibly
                percent-encoded), or passes through a link.
        """
        _check_name(name)
        try:
            root = self.root.resolve()
            path = (root / name).resolve()
            is_loop = _is_link(path)
        except (OSError, RuntimeError, ValueError) as error:  # a link to itself, or a name that is too long
            raise ToolArgumentError(f"{name!r} is not a valid file name: {type(error).__name__}") from error
        if is_loop:
            raise ToolArgumentError(f"{name!r} is not a valid file name: it is a link to itself")
        if not path.is_relative_to(root):
            raise ToolArgumentError(f"{name!r} leads to a path outside the workspace through a link")
        return path


def _check_name(name: str) -> None:
    """Raise ToolArgumentError if the name is invalid in any directory."""
    decoded = unquote(name)
    if "\0" in decoded or not decoded.strip():
        raise ToolArgumentError(f"{name!r} is not a valid file name")
    if _leads_outside(name) or _leads_outside(decoded):
        raise ToolArgumentError(
            f"{name!r} is outside the workspace: use a path relative to the workspace, without '..'"
        )


def _leads_outside(name: str) -> bool:
    is_absolute = name.startswith(("/", "\\", "~")) or Path(name).drive
    return bool(is_absolute) or ".." in Path(name.replace("\\", "/")).parts


def _is_link(path: Path) -> bool:
    """Return True if a resolved path is still a link. Newer Python versions return such a path for a link to itself.

    Raises:
        OSError: No file can have this path, because the path is too long or leads through a link to itself.
    """
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
