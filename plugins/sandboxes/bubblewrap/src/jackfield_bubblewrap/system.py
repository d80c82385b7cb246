"""Paths that every program may read: system programs, this Python and a few files in /etc, but no home folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from jackfield.errors import SandboxError
from jackfield.sandboxes import Program
from jackfield_confine.interpreters import find_python

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Folders of programs and libraries. All but the first are often symlinks into the first."""

_ETC = ("ld.so.cache", "alternatives", "fonts", "localtime", "timezone", "mime.types", "ssl/certs", "matplotlibrc")
_ETC_OF_NETWORKS = ("resolv.conf", "hosts", "nsswitch.conf", "services", "protocols")
_SBIN = "/usr/bin:/usr/sbin:/bin:/sbin"


def files_of_etc(*, network: bool) -> list[str]:
    """Return the existing files in /etc that programs need."""
    return [path for name in (*_ETC, *(_ETC_OF_NETWORKS if network else ())) if Path(path := f"/etc/{name}").exists()]


def folders_of_python() -> list[str]:
    """Return the folders of this Python: its virtual environment, installation, packages, and links to them."""
    return sorted(path for path in find_python().readable if not _is_below(path, SYSTEM[0]))


def program_of_system(name: str) -> str:
    """Return the path of a system program that is also visible inside the sandbox.

    Raises:
        SandboxError: The program is not installed.
    """
    from shutil import which

    found = which(name, path=_SBIN)
    if found is None:
        raise SandboxError(f"the program {name!r} is not installed")
    return found


def resolved(program: Program) -> Program:
    """Resolve the folders of a program, and drop readable paths that do not exist."""
    work_dir = os.path.realpath(program.work_dir)
    named = [work_dir, program.work_dir, *map(os.path.realpath, program.writable), *program.writable]
    readable = [*map(os.path.realpath, program.readable), *program.readable]
    return replace(
        program,
        work_dir=work_dir,
        writable=tuple(path for path in dict.fromkeys(named) if path != work_dir),
        readable=tuple(path for path in dict.fromkeys(readable) if os.path.exists(path)),  # noqa: PTH110 - as text
    )


def parents(paths: list[str]) -> Iterator[str]:
    """Return the distinct parent folders of the paths, outermost first."""
    above = {str(parent) for path in paths for parent in Path(path).parents}
    return iter(sorted(above - {"/"}))


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
