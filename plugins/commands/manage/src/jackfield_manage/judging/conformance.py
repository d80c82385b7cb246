"""Read the results of a distribution's contract tests from the `conformance.json` written by `jackfield-testkit`.

The file contains claims by the authors, which anyone can verify by running the same tests.
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
    """The contents of `conformance.json`.

    Attributes:
        distribution, version: The tested distribution.
        kit, core: The versions of `jackfield-testkit` and `jackfield` used for the tests.
        outcome: The overall result, such as `passed`.
        counts: The number of tests by result: `passed`, `failed`, `xfailed` and so on.
        is_stale: True if the tested version is not the installed one.
    """

    distribution: str
    version: str
    kit: str
    core: str
    outcome: str
    counts: Mapping[str, int]
    is_stale: bool

    def sentence(self) -> str:
        """Summarise the results in one line."""
        counts = ", ".join(f"{count} {outcome}" for outcome, count in self.counts.items() if count) or "no tests"
        stale = f", for version {self.version} instead of this one" if self.is_stale else ""
        by = f"run by its authors with jackfield-testkit {self.kit} and jackfield {self.core}"
        return f"{self.outcome} ({counts}), {by}{stale}"


def read_conformance(row: Row) -> Conformance | None:
    """Return the test results of a component's distribution; None if missing or malformed. Nothing is imported."""
    table = _read_table(row)
    match table:
        case {
            "distribution": str(name), "version": str(version), "kit": str(kit), "core": str(core),
            "outcome": str(outcome),
        }:  # fmt: skip
            counts = Counter(_test_outcomes(table.get("suites")))
            return Conformance(name, version, kit, core, outcome, counts, is_stale=version != row.version)
    return None


def _test_outcomes(suites: object) -> Iterator[str]:
    for suite in suites if isinstance(suites, list) else ():
        if not (isinstance(suite, dict) and isinstance(suite.get("tests"), dict)):
            continue
        for test in suite["tests"].values():
            if isinstance(test, dict) and "outcome" in test:
                yield str(test["outcome"])


def _read_table(row: Row) -> Mapping[str, object]:
    """Return the table in the file, or an empty one if it is missing or unreadable."""
    with suppress(OSError, ValueError, TypeError, ImportError, RecursionError):
        spec = PathFinder.find_spec(row.module.partition(".")[0])
        for folder in getattr(spec, "submodule_search_locations", None) or ():
            path = Path(folder, FILE)
            if path.is_file() and path.stat().st_size <= MAX_FILE_BYTES:
                return dict(json.loads(path.read_text(encoding="utf-8")))
    return {}
