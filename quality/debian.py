"""Debian packages that contain manuals, fetched on demand and unpacked below `.cache/manual`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "manual"
_LIMIT_S = 300


class NoManualError(Exception):
    """A manual cannot be fetched on this machine."""


def fetch_package(name: str, version: str) -> Path:
    """Return the folder of an unpacked package, downloading it on first use.

    Raises:
        NoManualError: The package cannot be fetched.
    """
    folder = CACHE / name
    if folder.exists():
        return folder
    apt, dpkg = shutil.which("apt-get"), shutil.which("dpkg-deb")
    if not apt or not dpkg:
        raise NoManualError("the manual comes as a package of Debian, and apt-get is not installed")
    CACHE.mkdir(parents=True, exist_ok=True)
    _run([apt, "download", "--quiet", f"{name}={version}"])
    (archive,) = CACHE.glob(f"{name}_*.deb")
    staging = CACHE / f"{name}.new"
    shutil.rmtree(staging, ignore_errors=True)
    _run([dpkg, "-x", str(archive), str(staging)])
    staging.rename(folder)
    return folder


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, cwd=CACHE, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise NoManualError(f"{command[0]} did not end in {_LIMIT_S} s") from error
    if done.returncode:
        raise NoManualError(f"{' '.join(command)} failed: {done.stderr.strip()[-300:]}")
