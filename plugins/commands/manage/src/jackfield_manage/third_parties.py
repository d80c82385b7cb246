"""The listed third-party plugins, which `jackfield plugins search` finds.

The list is `third_parties.json`, with an object for each distribution. A listing is not a recommendation: errors and
`install` suggest only our own packages. The rules are in `docs/authors/listing.md`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jackfield.plurals import format_count

FILE = "third_parties.json"


@dataclass(frozen=True, slots=True)
class Listed:
    """A listed distribution.

    Attributes:
        distribution: The normalised name.
        version: The listed version.
        summary: A one-line summary.
        repository: The URL of the source code.
        licence: An SPDX expression.
        components: The components, as `kind.name`.
        listed: The date of the listing, such as `2026-11-28`.
        tested: The version covered by the contract test results, or '' if there are none.
        kit: The version of `jackfield-testkit` used for the tests.
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
        """A short summary of the authors' test results."""
        if not self.tested:
            return "no test record"
        if self.tested != self.version:
            return f"tests passed for {self.tested} only"
        expected = (self.counts or {}).get("xfailed", 0)
        return f"tests passed, {format_count(expected, 'known deviation')}" if expected else "tests passed"

    @classmethod
    def of(cls, distribution: str, entry: Mapping[str, Any]) -> Listed:
        """Create an instance from an entry in the file."""
        return cls(distribution, **{**entry, "components": tuple(entry["components"])})


def third_parties() -> list[Listed]:
    """Return the listed distributions, sorted by name."""
    table = json.loads((files("jackfield_manage") / FILE).read_text(encoding="utf-8"))
    return [Listed.of(name, entry) for name, entry in sorted(table.items())]
