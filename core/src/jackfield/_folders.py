"""The user's directories."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def user_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the user's configuration directory, which contains `config.toml`.

    Args:
        environ: Environment variables to use instead of `os.environ`.
    """
    env = os.environ if environ is None else environ
    base = env.get("XDG_CONFIG_HOME") or os.path.join(env.get("HOME") or os.path.expanduser("~"), ".config")  # noqa: PTH111, PTH118
    return Path(base) / "jackfield"
