"""Explain from metadata why no installed distribution offers a name."""

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
_GROUP_HEADING = re.compile(rb"^\s*\[\s*jackfield\.v(\d+)\s*\]", re.MULTILINE)
_SIMILAR_HEADING = re.compile(rb"^\s*\[\s*j[\w.-]{3,20}\s*\]", re.MULTILINE | re.IGNORECASE)
_SECTION = re.compile(r"\[\s*(.*?)\s*\]$")
_MIN_SIMILARITY = 0.7


def explain_absence(host: PluginHost, kind: str, address: str) -> str:
    """Explain why no package provides a component, or return '' if the reason is unknown."""
    entry = f"{kind}.{address.rpartition('/')[2]}"
    return "".join(
        f". {problem.distribution} {problem.text}"
        for problem in misspelt_groups(host.paths)
        if entry in problem.text.split("'")
    )


def misspelt_groups(paths: Iterable[str] | None = None) -> list[Problem]:
    """Return the distributions with entry points in a group whose name nearly matches ours.

    `scan` does not read such groups, so their entry points are never found.
    """
    problems: list[Problem] = []
    for location in _metadata_folders(sys.path if paths is None else paths):
        raw = read_file(f"{location}/entry_points.txt")
        if raw and _SIMILAR_HEADING.search(raw) and not _GROUP_HEADING.search(raw):
            problems += _misspelt_groups_in(raw.decode(errors="replace"), location)
    return problems


def _metadata_folders(paths: Iterable[str]) -> Iterator[str]:
    for path in dict.fromkeys(paths):
        yield from sorted(glob.glob(os.path.join(glob.escape(path or "."), "*.*-info")))  # noqa: PTH118, PTH207


def _misspelt_groups_in(text: str, location: str) -> Iterator[Problem]:
    distribution = normalise(location.rpartition("/")[2].partition("-")[0])
    for group, entries in _entries_by_group(text).items():
        similarity = difflib.SequenceMatcher(None, group.lower(), _GROUP).ratio()
        if group.startswith("jackfield") or similarity > _MIN_SIMILARITY:
            listed = ", ".join(repr(entry) for entry in entries[:8])
            problem = (
                f"declares {listed} in the group {group!r:.80}, which is never read: did its authors mean {_GROUP!r}?"
            )
            yield Problem(distribution, problem, location, is_authors_fault=True)


def _entries_by_group(text: str) -> dict[str, list[str]]:
    """Return each group's entry points that name one of our kinds."""
    group = ""
    entries: dict[str, list[str]] = {}
    for line in text.splitlines():
        stripped = line.strip()
        if section := _SECTION.match(stripped):
            group = section[1]
        elif "=" in stripped and stripped.partition(".")[0] in hook.KINDS:
            entries.setdefault(group, []).append(stripped.partition("=")[0].strip())
    return entries
