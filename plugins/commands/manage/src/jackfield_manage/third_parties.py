"""The listed plugins of third parties, which `jackfield plugins search` finds.

The list is in `third_parties.json`, an object for each distribution. It does not recommend them: errors and `install`
propose our own packages only. `docs/authors/listing.md` has the rules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

FILE = "third_parties.json"


@dataclass(frozen=True, slots=True)
class Listed:
    """A listed distribution.

    Attributes:
        distribution: The normalised name of the distribution.
        version: The version that was listed.
        summary: One line for people.
        repository: The address of its source.
        licence: An SPDX expression.
        components: The distribution's components, as `kind.name`.
        listed: The day of the entry: `2026-11-28`.
        tested: The version that its record of contract tests is about; '' without a record.
        kit: The version of `jackfield-testkit` that tested it.
        counts: The number of tests by result.
    """

    distribution: str
    version: str
    summary: str
    repository: str
    licence: str
    components: tuple[str, ...]
    listed: str
    tested: str = ""
    kit: str = ""
    counts: Mapping[str, int] | None = None

    @property
    def mark(self) -> str:
        """The result of its authors' tests, in a few words."""
        if not self.tested:
            return "no test record"
        if self.tested != self.version:
            return f"tests passed for {self.tested} only"
        expected = (self.counts or {}).get("xfailed", 0)
        return f"tests passed, {expected} known deviations" if expected else "tests passed"

    @classmethod
    def of(cls, distribution: str, entry: Mapping[str, Any]) -> Listed:
        """Return an entry of the file."""
        return cls(distribution, **{**entry, "components": tuple(entry["components"])})


def third_parties() -> list[Listed]:
    """Return the listed distributions, sorted by name."""
    table = json.loads((files("jackfield_manage") / FILE).read_text(encoding="utf-8"))
    return [Listed.of(name, entry) for name, entry in sorted(table.items())]
