"""Look at every installed plugin, each in a process of its own, and say what is wrong and what to do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from jackfield.plugins.catalog import Row
from jackfield.plugins.host import PluginHost
from jackfield.plugins.policy import is_incompatible, why_not

Status = Literal["ok", "blocked", "ambiguous", "incompatible", "broken", "slow", "malformed"]
PROBE_TIMEOUT_S = 30.0
SLOW_MS = 50.0  # a light module should take 5; ten times that is felt by everybody who lists or resolves


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of one distribution: its state, the reason, and what to type next."""

    distribution: str
    version: str
    ids: tuple[str, ...]
    status: Status
    ms: float | None = None
    why: str = ""
    fix: str = ""

    @property
    def is_fault(self) -> bool:
        """Whether something that should work does not."""
        return self.status in ("ambiguous", "broken", "malformed")


def examine(host: PluginHost, *, deep: bool = False, timeout_s: float = PROBE_TIMEOUT_S) -> list[Finding]:
    """Examine every distribution with plugins; one that hangs or crashes is a finding.

    Args:
        host: Whose plugins.
        deep: Import the components, too, with all they need.
        timeout_s: For each distribution.
    """
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    for row in host.catalog.rows:
        rows[row.distribution].append(row)
    clashing = _clashes(host)
    with ThreadPoolExecutor(max_workers=4) as pool:  # it only waits for processes
        look = partial(_examine_one, host=host, clashing=clashing, deep=deep, timeout_s=timeout_s)
        findings = list(pool.map(lambda name: look(name, rows[name]), sorted(rows)))
    malformed = [
        Finding(problem.distribution, "", (), "malformed", None, problem.text, f"look at {problem.location}")
        for problem in host.problems()
    ]
    return findings + malformed


def _clashes(host: PluginHost) -> dict[str, list[str]]:
    """`kind.name` → addresses, for names that several distributions offer and nobody has chosen from."""
    offers: defaultdict[str, list[str]] = defaultdict(list)
    for row in host.rows():
        offers[row.id].append(row.address)
    return {name: found for name, found in offers.items() if len(found) > 1 and name not in host.settings.prefer}


def _examine_one(
    distribution: str,
    rows: Sequence[Row],
    *,
    host: PluginHost,
    clashing: dict[str, list[str]],
    deep: bool,
    timeout_s: float,
) -> Finding:
    version, ids = rows[0].version, tuple(row.id for row in rows)
    usable = [row for row in rows if not why_not(row, host.settings)]
    if not usable:
        reason = why_not(rows[0], host.settings)
        status: Status = "incompatible" if is_incompatible(rows[0]) else "blocked"
        fix = f"pip install --upgrade jackfield {distribution}" if status == "incompatible" else "change the policy"
        return Finding(distribution, version, ids, status, None, reason, fix)
    answer = _probe(distribution, deep=deep, timeout_s=timeout_s)
    finding = partial(Finding, distribution, version, ids)
    if answer["errors"]:
        fix = f"pip install --upgrade {distribution}, or pip uninstall {distribution}"
        return finding("broken", answer["ms"], answer["errors"][0], fix)
    for row in usable:
        if row.id in clashing:
            why = f"{row.id} is offered by {', '.join(clashing[row.id])}"
            fix = f'write the address, or prefer one: [tool.jackfield.prefer] "{row.id}" = "{distribution}"'
            return finding("ambiguous", answer["ms"], why, fix)
    if answer["ms"] > SLOW_MS:
        return finding("slow", answer["ms"], "describing it takes long", "tell its authors: it imports too much")
    missing = [variable for variable in answer["secrets"] if not host.settings.secret(variable)]
    if missing:
        return finding("ok", answer["ms"], f"not set: {', '.join(missing)}", f"set {missing[0]} to use it")
    return finding("ok", answer["ms"])


def _probe(distribution: str, *, deep: bool, timeout_s: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "jackfield.plugins.probe", distribution, *(["--deep"] if deep else [])]
    try:
        done = subprocess.run(  # noqa: S603 - our own module, in our own interpreter
            command, capture_output=True, timeout=timeout_s, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return {"ms": None, "errors": [f"loading it did not end within {timeout_s:g} s"], "secrets": []}
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2][:300]
        ended = f"by signal {-done.returncode}" if done.returncode < 0 else f"with code {done.returncode}"
        why = f"loading it ended the process {ended}" + (f": {said}" if said else "")
        return {"ms": None, "errors": [why], "secrets": []}
    return answer
