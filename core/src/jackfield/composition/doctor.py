"""Look at every installed plugin, each in a process of its own, and say what is wrong and what to do."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from jackfield.composition.distributions import CORE, Distribution, installed, requirements_of, requirers
from jackfield.composition.record import changed_files, files_below
from jackfield.errors import PluginError
from jackfield.plugins.acting import standings
from jackfield.plugins.catalog import Problem, Row, misspelt_groups
from jackfield.plugins.host import PluginHost
from jackfield.plugins.policy import is_incompatible
from jackfield.settings import ENABLED_KINDS, normalise

Status = Literal[
    "ok", "inactive", "blocked", "ambiguous", "incompatible", "broken", "undeclared", "slow", "duplicate", "vanished",
    "malformed", "changed", "unproven",
]  # fmt: skip
FAULTS: tuple[Status, ...] = ("ambiguous", "broken", "malformed")
# The worst first: what cannot work, what works otherwise than its authors say, what only waits.
_SEVERITY: Mapping[Status, int] = {
    **dict.fromkeys(FAULTS, 0),
    **dict.fromkeys(("changed", "unproven", "undeclared", "slow", "duplicate"), 1),
    "inactive": 2,
    "ok": 3,
}
PROBE_TIMEOUT_S = 30.0
SLOW_MS = 50.0  # a light module should take 5; ten times that is felt by everybody who lists or resolves
# In the form of `probe`'s answer, for a process that gave none.
_NO_ANSWER: Mapping[str, Any] = {
    "ms": None,
    **dict.fromkeys(("errors", "secrets", "effects", "imported", "offered", "checks"), ()),
    "specs": {},
    "configs": {},
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of one distribution.

    Attributes:
        ids: What it offers, as `kind.name`.
        status: Its state.
        ms: The CPU that describing it took, in milliseconds.
        why, fix: The reason, and what to type next.
        required_by: The distributions that brought it, if nobody asked for it by name.
        more: What else is wrong with it, a sentence each.
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
        """Whether something that should work does not."""
        return self.status in FAULTS


# What is wrong, why, and what to type next.
Verdict = tuple[Status, str, str]


def examine(
    host: PluginHost,
    *,
    deep: bool = False,
    timeout_s: float = PROBE_TIMEOUT_S,
    only: Sequence[str] = (),
    remembered: Sequence[str] = (),
) -> list[Finding]:
    """Examine every distribution with plugins; one that hangs or crashes is a finding.

    Args:
        host: Whose plugins.
        deep: Import the components, too, with all they need, and let them check the machine.
        timeout_s: For each distribution.
        only: Names of distributions, normalised, to look at no others.
        remembered: Distributions that were here before, so that one that has gone is noticed.

    Returns:
        One finding for each distribution; one more for each fault of metadata that belongs to none of them.
    """
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    for row in host.catalog.rows:
        rows[row.distribution].append(row)
    wanted = sorted(name for name in rows if not only or name in only)
    loadable = [name for name in wanted if any(not host.why_not(row) for row in rows[name])]
    with ThreadPoolExecutor(max_workers=4) as pool:  # the threads only wait for processes
        probe = partial(probe_apart, host, timeout_s=timeout_s)
        options = ["--deep"] if deep else []
        answers = dict(zip(loadable, pool.map(lambda name: probe(name, *options), loadable), strict=True))
    neighbours = _Neighbours(host)
    findings = [_finding(rows[name], answers.get(name), host, neighbours) for name in wanted]
    if not only or CORE in only:
        findings += _core_findings(neighbours.installation)
    for problem in (*host.problems(), *misspelt_groups(host.paths)):
        if not only or problem.distribution in only:
            status: Status = "duplicate" if "twice" in problem.text else "malformed"
            findings.append(Finding(problem.distribution, "", (), status, None, problem.text, _remedy(problem, status)))
    gone = [name for name in remembered if name not in rows and (not only or name in only)]
    findings += [
        Finding(name, "", (), "vanished", None, "was installed here, and is no more", f"pip install {name}")
        for name in sorted(gone)
    ]
    return findings


def _core_findings(installation: Mapping[str, Distribution]) -> Iterator[Finding]:
    """What of the core is not as it was installed, and who has put files into its package."""
    core = installation.get(CORE)
    told = []
    for other in installation.values():
        put = [] if other.name == CORE else files_below(other.location, f"{CORE}/")
        if put:
            told.append(f"{other.name} has put {_some(put)} into the core's package")
    version = core.version if core else ""
    if core and not core.editable:
        try:
            changed = [file.path for file in changed_files(core.location)]
        except PluginError as error:
            yield Finding(CORE, version, (), "unproven", None, str(error), f"pip install --force-reinstall {CORE}")
            changed = []
        if changed:
            told.append(f"the core is not as it was installed: {_some(changed)}")
    if told:
        fix = f"pip install --force-reinstall {CORE}, and remove what has changed it"
        yield Finding(CORE, version, (), "changed", None, told[0], fix, more=tuple(told[1:]))


def _some(paths: Sequence[str]) -> str:
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")


def _remedy(problem: Problem, status: Status) -> str:
    if status == "duplicate":
        return f"remove {problem.location}, or: pip install --force-reinstall {problem.distribution}"
    if any(sign in problem.text for sign in ("names the object", "in the group")):
        return f"tell the authors of {problem.distribution}"
    return f"pip install --force-reinstall {problem.distribution}, or look at {problem.location}"


class _Neighbours:
    """What only shows when distributions are seen beside each other."""

    def __init__(self, host: PluginHost) -> None:
        self.addresses: defaultdict[str, list[str]] = defaultdict(list)
        self.packages: defaultdict[str, set[str]] = defaultdict(set)
        for row in host.rows():
            self.addresses[row.id].append(row.address)
            self.packages[row.module.partition(".")[0]].add(row.distribution)
        self.prefer = host.settings.prefer
        self.standings = standings(host)
        self.installation = installed(None if host.paths is None else (*host.paths, *sys.path))
        self._requirers = requirers(self.installation)

    def bringers(self, distribution: str) -> tuple[str, ...]:
        """Who requires a distribution that nobody has asked for by name."""
        found = self.installation.get(distribution)
        return () if found is None or found.requested else tuple(self._requirers.get(distribution, ()))

    def verdicts(self, row: Row, *, failed: bool) -> Iterator[Verdict]:
        """What neighbours make wrong with a component; `failed` is whether it could not be loaded."""
        rivals = self.addresses[row.id]
        if len(rivals) > 1 and row.id not in self.prefer:
            why = f"{row.id} is offered by {', '.join(rivals)}"
            choose = f'[prefer] "{row.id}" = "{row.distribution}"'
            yield "ambiguous", why, f"write the address, or prefer one, in your config.toml: {choose}"
        owners = self.packages[row.module.partition(".")[0]] - {row.distribution}
        if owners:
            why = f"the package {row.module.partition('.')[0]!r} belongs to {', '.join(sorted(owners))}, too"
            yield ("broken" if failed else "duplicate"), why, "uninstall one of them, and reinstall the other"
        near = [name for name in self.addresses if name != row.id and _differs_by_one(name, row.id)]
        others = [address for name in near for address in self.addresses[name] if _of_other(address, row)]
        if others and not _is_first_of_pair(row, others):
            yield "ok", f"its name is one letter from {', '.join(others)}", "make sure that you mean this one"


def _of_other(address: str, row: Row) -> bool:
    return address.partition("/")[0] != row.distribution


def _is_first_of_pair(row: Row, others: Sequence[str]) -> bool:
    """Said once: at the one that comes later in the alphabet."""
    return row.address < min(others)


def _differs_by_one(first: str, second: str) -> bool:
    """Whether one character was changed, added or left out."""
    if abs(len(first) - len(second)) > 1 or first.partition(".")[0] != second.partition(".")[0]:
        return False
    start = next(
        (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    rests = first[start:], second[start:]
    return rests[0][1:] == rests[1][1:] or rests[0][1:] == rests[1] or rests[0] == rests[1][1:]


def _finding(
    rows: Sequence[Row], answer: Mapping[str, Any] | None, host: PluginHost, neighbours: _Neighbours
) -> Finding:
    """What is known of one distribution; there is no answer if none of it may load."""
    distribution = rows[0].distribution
    bringers = neighbours.bringers(distribution)
    finding = partial(Finding, distribution, rows[0].version, tuple(row.id for row in rows), required_by=bringers)
    if answer is None:
        status, why, fix = _kept_out(rows[0], host)
        return finding(status, None, why, fix)
    failed = bool(answer["errors"])
    usable = [row for row in rows if not host.why_not(row)]
    verdicts = [verdict for row in usable for verdict in neighbours.verdicts(row, failed=failed)]
    verdicts += [*_of_answer(rows, answer, host), *_of_installation(rows[0], neighbours.installation)]
    verdicts += [verdict for row in usable for verdict in _of_identity(row, host)]
    if all(row.kind in ENABLED_KINDS and not neighbours.standings[row].acts for row in usable):
        names = " ".join(f"{row.kind}.{row.address}" for row in usable)
        why = f"it {neighbours.standings[usable[0]].why}"
        verdicts.append(("inactive", why, f"jackfield plugins enable {names}"))
    verdicts.sort(key=lambda verdict: _SEVERITY[verdict[0]])
    (status, why, fix), *others = verdicts or [("ok", "", "")]
    more = tuple(f"{why} → {fix}" if fix else why for _, why, fix in others)
    return finding(status, answer["ms"], why, fix, more=more)


def _of_identity(row: Row, host: PluginHost) -> Iterator[Verdict]:
    """Who offers it, as far as that can be told."""
    doubt = host.unproven(row)
    for remark in host.remarks(row):
        if remark == doubt:
            yield "unproven", f"{row.id} {doubt}", f"pip install --force-reinstall {row.distribution}"
        else:
            yield "ok", f"{row.id} {remark}", "make sure that you mean this one"


def _kept_out(row: Row, host: PluginHost) -> Verdict:
    reason = host.why_not(row)
    if "did its authors mean" in reason:
        return "incompatible", reason, f"tell the authors of {row.distribution}"
    if is_incompatible(row):
        return "incompatible", reason, f"pip install --upgrade jackfield {row.distribution}"
    return "blocked", reason, f"change it there, or: jackfield plugins enable {row.distribution}"


def _of_answer(rows: Sequence[Row], answer: Mapping[str, Any], host: PluginHost) -> Iterator[Verdict]:
    """What loading it has shown."""
    distribution = rows[0].distribution
    for error in answer["errors"][:1]:
        yield "broken", error, f"pip install --upgrade {distribution}, or pip uninstall {distribution}"
    tell = f"tell the authors of {distribution}"
    for component, spec in answer["specs"].items():
        if spec.get("extra"):
            names = ", ".join(sorted(spec["extra"]))
            why = f"{component} says {names}, which this version of jackfield does not know and does not act on"
            yield "undeclared", why, f"pip install --upgrade jackfield, or {tell}"
    extra = sorted(set(answer["offered"]) - {row.id for row in rows})
    if extra:
        yield "undeclared", f"it offers {', '.join(extra)} without an entry point: nobody can find it", tell
    own = {row.module.partition(".")[0] for row in rows}
    heavy = sorted({name.partition(".")[0] for name in answer["imported"]} - own - _light_packages())
    if heavy:
        yield "slow", f"describing it imports {', '.join(heavy[:5])}", f"{tell}: a light module imports none of these"
    elif (answer["ms"] or 0) > SLOW_MS:
        yield "slow", "describing it takes long", f"{tell}: a light module should take 5 ms"
    for effect in answer["effects"][:1]:
        yield "slow", f"being imported does more than it should: {effect}", f"{tell}, or block it"
    for problem in answer["checks"]:
        yield "broken", problem, "mend it, and run this again"
    missing = [variable for variable in answer["secrets"] if not host.settings.secret(variable)]
    if missing:
        yield "ok", f"not set: {', '.join(missing)}", f"set {missing[0]} to use it"


def _light_packages() -> frozenset[str]:
    return sys.stdlib_module_names | {"jackfield", "pluggy"}


def _of_installation(row: Row, installation: Mapping[str, Distribution]) -> Iterator[Verdict]:
    """What its metadata shows."""
    found = installation.get(row.distribution)
    if found is None:
        yield "ok", "its METADATA cannot be read, so its requirements are not known", ""
        return
    yield from _of_requirements(found, installation)
    if found.editable:
        yield "ok", "installed as editable", ""
        return
    try:
        changed = [file.path for file in changed_files(row.location)]
    except PluginError as error:
        yield "ok", str(error), ""
        return
    if changed:
        yield (
            "changed",
            f"not as it was installed: {_some(changed)}",
            f"pip install --force-reinstall {row.distribution}",
        )


def _of_requirements(found: Distribution, installation: Mapping[str, Distribution]) -> Iterator[Verdict]:
    for wanted in requirements_of(found):
        have = installation.get(normalise(wanted.name))
        if have is None:
            yield "broken", f"it needs {wanted.name}, which is not installed", f"pip install --upgrade {found.name}"
        elif not wanted.specifier.contains(have.version, prereleases=True):
            why = f"it needs {wanted.name}{wanted.specifier}, and {have.version} is installed"
            yield "broken", why, f"pip install --upgrade {found.name} '{wanted.name}{wanted.specifier}'"


def probe_apart(
    host: PluginHost, distribution: str, *options: str, timeout_s: float = PROBE_TIMEOUT_S
) -> dict[str, Any]:
    """Load a distribution's plugins in a process of its own, by the host's rules; options and answer are `probe`'s.

    A plugin that hangs, crashes or leaves the program is an answer, too: an error that says so.
    """
    command = [sys.executable, "-BP", "-m", "jackfield.composition.probe", distribution, *options]
    # Files and not pipes: a process that a plugin leaves behind would hold a pipe open, and us up.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
        process = subprocess.Popen(  # noqa: S603 - our own module, in our own interpreter
            command, stdin=subprocess.PIPE, stdout=out, stderr=said, start_new_session=True
        )
        try:
            process.communicate(pickle.dumps(host), timeout=timeout_s)
        except subprocess.TimeoutExpired:
            return {**_NO_ANSWER, "errors": [f"loading it did not end within {timeout_s:g} s"]}
        finally:
            _end_all_of(process)
        out.seek(0)
        said.seek(0)
        return _read_answer(process.returncode, out.read(), said.read())


def _end_all_of(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads a session, and whatever it has left behind there."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read_answer(code: int, out: bytes, said: bytes) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(out)
    except ValueError:
        last = said.decode(errors="replace").strip().rpartition("\n")[2][:300]
        ended = f"by signal {-code}" if code < 0 else f"with code {code}"
        return {**_NO_ANSWER, "errors": [f"loading it ended the process {ended}" + (f": {last}" if last else "")]}
    return answer
