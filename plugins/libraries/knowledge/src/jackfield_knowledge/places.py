"""Locate the folders of indexes, in the user's data folder or at a path."""

from __future__ import annotations

import os
import re
from pathlib import Path

from jackfield.errors import ConfigError
from jackfield.retrieval import shown_path

PREFIX = "index:"
"""The prefix that marks an index name in a list of files."""
FILE = "index.sqlite"
"""The file that holds the whole index. All other files in its folder are derived from it."""

_NAME = re.compile(r"[^\W_][\w.-]{0,99}", re.ASCII)


def index_folder(name: str) -> Path:
    """Return an index's folder.

    Args:
        name: A name made of letters, digits, `.`, `-` and `_`, for an index in the user's data folder; or a path, which
            contains a slash.

    Raises:
        ConfigError: The name is neither.
    """
    if "/" in name or os.sep in name:
        return Path(os.path.abspath(os.path.expanduser(name)))  # noqa: PTH100, PTH111 - links stay as they are named
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{shown_path(name)!r} is not a valid index name: use ASCII letters, digits, '.', '-' and '_', "
            f"or a path with a slash, such as ./notes.index"
        )
    return data_folder() / name


def data_folder() -> Path:
    """Return the folder for named indexes: `jackfield/indexes` below `$XDG_DATA_HOME` or `~/.local/share`."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share").absolute() / "jackfield" / "indexes"


def index_names() -> list[str]:
    """Return the names of all existing indexes, sorted."""
    try:
        return sorted(folder.name for folder in data_folder().iterdir() if (folder / FILE).is_file())
    except FileNotFoundError:
        return []
