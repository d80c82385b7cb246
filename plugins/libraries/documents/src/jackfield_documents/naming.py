"""Which file a model means by a name: it may read those of its conversation and of its workspace, and no others."""

from __future__ import annotations

from collections.abc import Sequence

from jackfield.errors import ToolArgumentError
from jackfield.messages import basename_of
from jackfield.tools import Workspace


def file_meant(
    name: str, files: Sequence[str], workspace: Workspace, *, if_several: str = "name it by its whole path"
) -> str:
    """The path of the file that a model names.

    Args:
        name: A path as it is in `files`, the last part of one, or a path in the workspace.
        files: The files of the conversation.
        workspace: Where tools write.
        if_several: What a model should do if several files of the conversation have the name.

    Raises:
        ToolArgumentError: It means no file that the model may read, or several; the text is for the model.
    """
    named = _named(name, files)
    if len(named) > 1:
        raise ToolArgumentError(f"{name!r} is the name of {len(named)} documents: {if_several}")
    path = named[0] if named else _in_workspace(name, workspace)
    if path is None:
        known = ", ".join(dict.fromkeys(map(basename_of, files))) or "none"
        raise ToolArgumentError(f"there is no document {name!r} in this conversation; there are: {known}")
    return path


def _named(name: str, files: Sequence[str]) -> list[str]:
    return [name] if name in files else [file for file in files if basename_of(file) == name]


def _in_workspace(name: str, workspace: Workspace) -> str | None:
    try:
        path = workspace.resolve(name)
        return str(path) if path.is_file() else None
    except (ToolArgumentError, OSError):
        return None  # it leads out, or is too long for a name: the answer is that of a name of nothing
