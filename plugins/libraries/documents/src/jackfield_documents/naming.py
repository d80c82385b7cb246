"""Resolve file names given by a model, which may read only files from its conversation and its workspace."""

from __future__ import annotations

from collections.abc import Sequence

from jackfield.errors import ToolArgumentError
from jackfield.messages import PART_SEPARATOR, basename_of
from jackfield.tools import Workspace


def file_meant(name: str, files: Sequence[str], workspace: Workspace, *, if_several: str = "use the full path") -> str:
    """Return the path of the file that a model refers to.

    Args:
        name: A path in `files`, the last component of one, or a path in the workspace.
        files: The conversation's files.
        workspace: The folder where tools write.
        if_several: Advice for the model if several conversation files have that name.

    Raises:
        ToolArgumentError: The name matches several files, or none that the model may read. The message is for the
            model.
    """
    if name in files:
        return name
    outer = name.partition(PART_SEPARATOR)[0]  # results may name files inside others
    matches = [file for file in files if basename_of(file) in (name, outer)]
    if len(matches) > 1:
        raise ToolArgumentError(f"{len(matches)} documents are named {name!r}: {if_several}")
    if matches:
        return matches[0]
    try:
        path = workspace.resolve(name)
        if path.is_file():
            return str(path)
    except (ToolArgumentError, OSError):
        pass  # outside the workspace, or too long: report it like a missing file
    known = ", ".join(dict.fromkeys(basename_of(file) for file in files)) or "none"
    raise ToolArgumentError(f"no document named {name!r} in this conversation; available: {known}")
