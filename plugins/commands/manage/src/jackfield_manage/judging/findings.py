"""The doctor's findings: a distribution's status, the reason, and the command that fixes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

Status = Literal[
    "ok", "inactive", "blocked", "ambiguous", "incompatible", "broken", "undeclared", "slow", "duplicate", "vanished",
    "malformed", "changed", "unproven",
]  # fmt: skip
FAULTS: tuple[Status, ...] = ("ambiguous", "broken", "malformed")
# Worst first: does not work, differs from what its authors declare, only awaits the user.
_SEVERITY: Mapping[Status, int] = {
    **dict.fromkeys(FAULTS, 0),
    **dict.fromkeys(("changed", "unproven", "undeclared", "slow", "duplicate"), 1),
    "inactive": 2,
    "ok": 3,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """The status of a distribution.

    Attributes:
        ids: The components it offers, as `kind.name`.
        status: The status.
        ms: The CPU time needed to describe its components, or None if they were not described.
        why: The reason for the status.
        fix: The command to type next.
        required_by: The distributions that require it, unless a user requested it by name.
        more: The distribution's other problems, one sentence each.
    """

    distribution: str
    version: str
    ids: tuple[str, ...]
    status: Status
    ms: float | None = None
    why: str = ""
    fix: str = ""
    required_by: tuple[str, ...] = ()
    more: tuple[str, ...] = ()

    @property
    def is_fault(self) -> bool:
        """True if something that should work does not."""
        return self.status in FAULTS


class Verdict(NamedTuple):
    """A problem of a distribution: its status, the reason, and the command that fixes it."""

    status: Status
    why: str
    fix: str

    @property
    def severity(self) -> int:
        """Sort key; lower values are worse."""
        return _SEVERITY[self.status]

    def line(self) -> str:
        """Format the problem as one line."""
        return f"{self.why} → {self.fix}" if self.fix else self.why
