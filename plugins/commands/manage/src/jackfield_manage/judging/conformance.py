"""What a distribution says of its contract tests: the `conformance.json` that `jackfield-testkit` wrote into its wheel.

It is the word of its authors. What it is worth is that anybody can run the same tests.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
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
    match table:
        case {
            "distribution": str(name), "version": str(version), "kit": str(kit), "core": str(core),
            "outcome": str(outcome),
        }:  # fmt: skip
            counts = Counter(_outcomes(table.get("suites")))
            return Conformance(name, version, kit, core, outcome, counts, is_stale=version != row.version)
    return None


def _outcomes(suites: object) -> Iterator[str]:
    """The outcome of every test."""
    for suite in suites if isinstance(suites, list) else ():
        match suite:
            case {"tests": dict(tests)}:
                for result in tests.values():
                    yield from _outcome(result)


def _outcome(result: object) -> Iterator[str]:
    match result:
        case {"outcome": outcome}:
            yield str(outcome)


def _table(row: Row) -> Mapping[str, object]:
    """The file's table; empty if there is none, or none that can be read."""
    with suppress(OSError, ValueError, TypeError, ImportError, RecursionError):
        found = PathFinder.find_spec(row.module.partition(".")[0])
        folders = getattr(found, "submodule_search_locations", None) or ()
        path = next(filter(_is_readable, (Path(folder, FILE) for folder in folders)), None)
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path else {}
    return {}


def _is_readable(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= MAX_FILE_BYTES
