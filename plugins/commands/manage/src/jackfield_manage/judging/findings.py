"""Findings of the doctor: the state of a distribution, the reason, and the command to type next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

Status = Literal[
    "ok", "inactive", "blocked", "ambiguous", "incompatible", "broken", "undeclared", "slow", "duplicate", "vanished",
    "malformed", "changed", "unproven",
]  # fmt: skip
FAULTS: tuple[Status, ...] = ("ambiguous", "broken", "malformed")
# The worst first: it cannot work, it differs from what its authors declare, it only waits for the user.
_SEVERITY: Mapping[Status, int] = {
    **dict.fromkeys(FAULTS, 0),
    **dict.fromkeys(("changed", "unproven", "undeclared", "slow", "duplicate"), 1),
    "inactive": 2,
    "ok": 3,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of one distribution.

    Attributes:
        ids: The components that it offers, as `kind.name`.
        status: The distribution's state.
        ms: CPU time for describing it.
        why: The reason for its state.
        fix: The command to type next.
        required_by: The distributions that require it, if no user asked for it by name.
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
    """One problem of a distribution: a status, the reason, and the command to type next."""

    status: Status
    why: str
    fix: str

    @property
    def severity(self) -> int:
        """Sort key: the worst is the lowest."""
        return _SEVERITY[self.status]

    def line(self) -> str:
        """Return the problem as one line."""
        return f"{self.why} → {self.fix}" if self.fix else self.why
