"""Why nobody offers a name, as far as the metadata of what is installed shows it."""

from __future__ import annotations

import difflib
import glob
import os
import re
import sys
from collections.abc import Iterable, Iterator

from jackfield.plugins import API, PluginHost, Problem, hook, read_file
from jackfield.settings import normalise

_GROUP = f"jackfield.v{API}"
_OURS = re.compile(rb"^\s*\[\s*jackfield\.v(\d+)\s*\]", re.MULTILINE)
_NEARLY = re.compile(rb"^\s*\[\s*j[\w.-]{3,20}\s*\]", re.MULTILINE | re.IGNORECASE)
_SECTION = re.compile(r"\[\s*(.*?)\s*\]$")
_NEAR = 0.7


def reasons(host: PluginHost, kind: str, address: str) -> str:
    """Why nothing offers a component, as sentences that go on after the core's own; '' if nothing shows it."""
    entry = f"{kind}.{address.rpartition('/')[2]}"
    silent = [problem for problem in misspelt_groups(host.paths) if entry in problem.text.split("'")]
    return "".join(f". {problem.distribution} {problem.text}" for problem in silent)


def misspelt_groups(paths: Iterable[str] | None = None) -> list[Problem]:
    """Distributions whose group of entry points is nearly ours, so that nobody finds what they offer.

    It reads what `scan` leaves out, and is asked when something is missing.
    """
    problems: list[Problem] = []
    for location in _metadata_folders(sys.path if paths is None else paths):
        raw = read_file(f"{location}/entry_points.txt")
        if raw and _is_nearly_ours(raw):
            problems += _misspelt(raw.decode(errors="replace"), location)
    return problems


def _is_nearly_ours(raw: bytes) -> bool:
    return bool(_NEARLY.search(raw)) and not _OURS.search(raw)


def _metadata_folders(paths: Iterable[str]) -> Iterator[str]:
    for path in dict.fromkeys(paths):
        yield from sorted(glob.glob(os.path.join(glob.escape(path or "."), "*.*-info")))  # noqa: PTH118, PTH207


def _misspelt(text: str, location: str) -> Iterator[Problem]:
    name = normalise(location.rpartition("/")[2].partition("-")[0])
    for group, offered in _entries(text).items():
        if group.startswith("jackfield") or difflib.SequenceMatcher(None, group.lower(), _GROUP).ratio() > _NEAR:
            listed = ", ".join(map(repr, offered[:8]))
            text = f"has {listed} in the group {group!r:.80}, which is never read: did its authors mean {_GROUP!r}?"
            yield Problem(name, text, location)


def _entries(text: str) -> dict[str, list[str]]:
    """The entry points of each group that could be ours."""
    group = ""
    entries: dict[str, list[str]] = {}
    for line in map(str.strip, text.splitlines()):
        if section := _SECTION.match(line):
            group = section[1]
        elif "=" in line and line.partition(".")[0] in hook.KINDS:
            entries.setdefault(group, []).append(line.partition("=")[0].strip())
    return entries
