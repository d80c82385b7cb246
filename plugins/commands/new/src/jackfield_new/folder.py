"""Write a plugin to disk atomically."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from jackfield.errors import ConfigError


def write_folder(target: Path, files: Mapping[PurePosixPath, bytes]) -> None:
    """Write files to a new directory, creating missing parent directories.

    The files are written next to the target and moved at the end, so an error or Ctrl-C leaves nothing behind.

    Raises:
        ConfigError: The directory is in use or cannot be written.
    """
    _check_free(target)
    folder = Path(os.path.abspath(target))  # noqa: PTH100 - `resolve` would follow links
    # Move the topmost missing directory, so that all new directories appear at once.
    topmost = folder
    while not topmost.parent.exists():
        topmost = topmost.parent
    staging = topmost.parent / f".{topmost.name[:100]}-{secrets.token_hex(4)}"
    try:
        staging.mkdir()
        for path, content in files.items():
            file = staging / folder.relative_to(topmost) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        if topmost.is_dir():
            topmost.rmdir()  # empty; Windows cannot move one directory onto another
        staging.rename(topmost)
    except OSError as error:
        raise _not_created(target, error) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)  # already gone if the move succeeded


def _check_free(target: Path) -> None:
    """Refuse a directory that is already in use.

    Raises:
        ConfigError: The path is a file, contains unprintable characters, or is a directory that is unreadable or not
            empty.
    """
    fault = ""
    try:
        if not str(target).isprintable():
            fault = f"{str(target)!r} contains unprintable characters"
        elif target.is_dir() and not target.is_symlink():
            if any(target.iterdir()):
                fault = f"the folder {str(target)!r} is not empty"
        elif os.path.lexists(target):
            fault = f"{str(target)!r} already exists and is not a folder"
    except OSError as error:
        raise _not_created(target, error) from error
    if fault:
        raise ConfigError(f"{fault}: choose another folder with --dir")


def _not_created(target: Path, error: OSError) -> ConfigError:
    return ConfigError(f"{str(target)!r} cannot be created ({error.strerror}): choose another folder with --dir")
