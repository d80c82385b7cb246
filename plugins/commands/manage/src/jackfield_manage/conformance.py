"""What a distribution says of its contract tests: the `conformance.json` that `jackfield-testkit` wrote into its wheel.

It is the word of its authors. What it is worth is that anybody can run the same tests.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from jackfield.plugins import Row

FILE = "conformance.json"
MAX_FILE_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Conformance:
    """What such a file says, as far as it is understood.

    Attributes:
        distribution, version: What was tested.
        kit, core: The versions it was tested with.
        outcome: Of the whole, such as `passed`.
        counts: How many tests ended how: `passed`, `failed`, `xfailed` and so on.
        is_stale: Another version was tested than the one that is installed.
    """

    distribution: str
    version: str
    kit: str
    core: str
    outcome: str
    counts: Mapping[str, int]
    is_stale: bool

    def sentence(self) -> str:
        """All of it in one line."""
        told = ", ".join(f"{count} {outcome}" for outcome, count in self.counts.items() if count) or "no tests"
        stale = f", for version {self.version}, not this one" if self.is_stale else ""
        by = f"by its authors, with jackfield-testkit {self.kit} and jackfield {self.core}"
        return f"{self.outcome} ({told}), {by}{stale}"


def read_conformance(row: Row) -> Conformance | None:
    """What the distribution of a component says; None if it says nothing that is understood. Nothing is imported."""
    table = _table(row)
    if table is None:
        return None
    texts = {key: table.get(key) for key in ("distribution", "version", "kit", "core", "outcome")}
    if not all(isinstance(text, str) for text in texts.values()):
        return None
    return Conformance(
        **{key: str(text) for key, text in texts.items()},
        counts=Counter(_outcomes(table.get("suites"))),
        is_stale=texts["version"] != row.version,
    )


def _outcomes(suites: object) -> Iterator[str]:
    """The outcome of every test."""
    for suite in suites if isinstance(suites, list) else ():
        match suite:
            case {"tests": dict(tests)}:
                yield from (
                    str(result["outcome"])
                    for result in tests.values()
                    if isinstance(result, dict) and "outcome" in result
                )


def _table(row: Row) -> Mapping[str, object] | None:
    try:
        found = PathFinder.find_spec(row.module.partition(".")[0])
        folders = (found.submodule_search_locations if found else None) or []
        for folder in folders:
            path = Path(folder, FILE)
            if path.is_file() and path.stat().st_size <= MAX_FILE_BYTES:
                table = json.loads(path.read_text(encoding="utf-8"))
                return table if isinstance(table, dict) else None
    except (OSError, ValueError, ImportError, RecursionError):
        return None
    return None
