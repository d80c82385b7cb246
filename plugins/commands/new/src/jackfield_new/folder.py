"""Put a plugin on the disk: whole, or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from jackfield.errors import ConfigError


def check_free(target: Path) -> None:
    """Refuse a folder that is already in use.

    Raises:
        ConfigError: It is a file, a folder that is not empty, not readable, or has a name that cannot be shown.
    """
    try:
        fault = _fault_of(target)
    except OSError as error:
        raise _refused(target, error) from error
    if fault:
        raise ConfigError(f"{fault}: choose another one with --dir")


def _fault_of(target: Path) -> str:
    """Why nothing can be made at a place, '' if it can."""
    if not str(target).isprintable():
        return f"{str(target)!r} has characters that cannot be shown"
    if target.is_dir() and not target.is_symlink():
        return f"the folder {str(target)!r} is not empty" * any(target.iterdir())
    return f"{str(target)!r} already exists and is not a folder" * os.path.lexists(target)


def write_folder(target: Path, files: Mapping[PurePosixPath, bytes]) -> None:
    """Write files into a new folder; missing parent folders are made too.

    They are written beside their place and moved there at the end, so that an error or Ctrl-C leaves nothing behind.

    Raises:
        ConfigError: The place is taken or cannot be written to.
    """
    check_free(target)
    place = Path(os.path.abspath(target))  # noqa: PTH100 - `resolve` would follow links: the place is what was written
    # The topmost folder that has to be made is what is moved, so that those below it come and go with it.
    new = place
    while not new.parent.exists():
        new = new.parent
    staging = new.parent / f".{new.name[:100]}-{secrets.token_hex(4)}"
    try:
        staging.mkdir()
        _fill(staging / place.relative_to(new), files)
        if new.is_dir():
            new.rmdir()  # it is empty; Windows does not move a folder onto another
        staging.rename(new)
    except OSError as error:
        raise _refused(target, error) from error
    finally:
        # After the move there is nothing by this name any more.
        shutil.rmtree(staging, ignore_errors=True)


def _fill(folder: Path, files: Mapping[PurePosixPath, bytes]) -> None:
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _refused(target: Path, error: OSError) -> ConfigError:
    return ConfigError(f"{str(target)!r} cannot be made ({error.strerror or error}): choose another place with --dir")
