"""Determine a repository's public URL from its git remote."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

_REMOTE = re.compile(
    r"(?:(?:https|ssh|git)://)?(?:[^@/\s]+@)?([a-z0-9.-]+\.[a-z]{2,})(?::\d+)?[:/]([\w./~+-]+)", re.IGNORECASE
)
_NOT_PUBLIC = (".local", ".internal", ".localhost", ".localdomain", ".lan")


def public_url(remote: str) -> str:
    """Return a git remote's web URL, without credentials, or '' for a path or a host that is not public."""
    match = _REMOTE.fullmatch(remote)
    if match is None or match[1].lower().endswith(_NOT_PUBLIC):
        return ""
    return f"https://{match[1].lower()}/{match[2].strip('/').removesuffix('.git')}"


def url_of_repository(folder: Path) -> str:
    """Return the public URL of the repository that contains a directory, or '' if there is no repository or no git."""
    try:
        done = run_git(folder, "remote", "get-url", "origin")
    except OSError:
        return ""
    return public_url(done.stdout.decode(errors="replace").strip())


def run_git(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Run git in a directory.

    Raises:
        OSError: Git or the directory does not exist.
    """
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=False)  # noqa: S603, S607
