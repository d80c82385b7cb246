"""Look at every installed plugin, each in a process of its own, and say what is wrong and what to do."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from functools import partial
from itertools import chain, filterfalse
from os.path import commonprefix
from pathlib import Path
from typing import Any, Literal, NamedTuple

from jackfield.errors import PluginError, near
from jackfield.plugins import PluginHost, Problem, Row, hook, is_incompatible
from jackfield.settings import normalise
from jackfield_manage.distributions import CORE, Distribution, installed, required_by, requirements_of, requirers
from jackfield_manage.judging.absences import misspelt_groups
from jackfield_manage.judging.activation import remarks, standings
from jackfield_manage.judging.processes import TIMEOUT_S, probe_all
from jackfield_manage.names import by_distribution, whole_name
from jackfield_manage.record import changed_files, files_below

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
WAITED_MS = 250.0  # what loads a plugin reads files; it does not ask servers, or sleep
SLOW_MS = 50.0  # a light module should take 5; ten times that is felt by everybody who lists or resolves


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
    timeout_s: float = TIMEOUT_S,
    only: Sequence[str] = (),
    remembered: Sequence[str] = (),
) -> Iterator[Finding]:
    """Examine every distribution with plugins; one that hangs or crashes is a finding.

    Args:
        host: Whose plugins.
        deep: Import the components, too, with all they need, and let them check the machine.
        timeout_s: For each distribution.
        only: Names of distributions, normalised, to look at no others.
        remembered: Distributions that were here before, so that one that has gone is noticed.

    Yields:
        One finding for each distribution, by name, each as soon as it is known; one more for each fault of metadata
        that belongs to none of them.
    """
    wanted = partial(_is_wanted, only)
    rows = by_distribution(host.catalog.rows)
    neighbours = _Neighbours(host)
    with closing(_answers(host, {name: rows[name] for name in filter(wanted, rows)}, deep, timeout_s)) as found:
        for name, answer in found:
            yield _finding(rows[name], answer, host, neighbours)
    if wanted(CORE):
        yield from _core_findings(neighbours.installation)
    others = (*_metadata_findings(host), *map(_vanished, sorted(set(remembered) - rows.keys())))
    yield from (finding for finding in others if wanted(finding.distribution))


def _is_wanted(only: Collection[str], name: str) -> bool:
    return not only or name in only


def _answers(
    host: PluginHost, rows: Mapping[str, Sequence[Row]], deep: bool, timeout_s: float
) -> Generator[tuple[str, Mapping[str, Any] | None], None, None]:
    """What each distribution answers, in their order; None if none of it may load."""
    answers: dict[str, Any] = {name: None for name in rows if all(map(host.policy.why_not, rows[name]))}
    loadable = list(filterfalse(answers.__contains__, rows))
    with closing(probe_all(host, loadable, deep=deep, timeout_s=timeout_s)) as probed:
        for name in rows:
            while name not in answers:
                answered, answers[answered] = next(probed)
            yield name, answers[name]


def _vanished(name: str) -> Finding:
    return Finding(name, "", (), "vanished", None, "was installed here, but no longer is", f"pip install {name}")


def _metadata_findings(host: PluginHost) -> Iterator[Finding]:
    for problem in (*host.catalog.problems, *misspelt_groups(host.paths)):
        status: Status = "duplicate" if problem.used else "malformed"
        yield Finding(problem.distribution, "", (), status, None, problem.text, _remedy(problem, status))


def _core_findings(installation: Mapping[str, Distribution]) -> Iterator[Finding]:
    """What of the core is not as it was installed, and who has put files into its package."""
    core = installation.get(CORE, Distribution(CORE, "", ""))
    files = _Files() if core.editable or not core.location else _files_of(core.location)
    reinstall = f"pip install --force-reinstall {CORE}"
    if files.fault:
        yield Finding(CORE, core.version, (), "unproven", None, files.fault, reinstall)
    told = list(_put_into_core(installation))
    told += [f"the core was changed after it was installed: {_some(files.changed)}"] * bool(files.changed)
    if told:
        fix = f"{reinstall}, and remove whatever changed it"
        yield Finding(CORE, core.version, (), "changed", None, told[0], fix, more=tuple(told[1:]))


def _put_into_core(installation: Mapping[str, Distribution]) -> Iterator[str]:
    for name in sorted(installation.keys() - {CORE}):
        put = files_below(installation[name].location, f"{CORE}/")
        if put:
            yield f"{name} has put {_some(put)} into the core's package"


class _Files(NamedTuple):
    """What is not as the RECORD of a distribution has it, or the `fault` for which that cannot be told."""

    changed: Sequence[str] = ()
    missing: Sequence[str] = ()
    fault: str = ""


def _files_of(location: str) -> _Files:
    try:
        files = changed_files(location)
    except PluginError as error:
        return _Files(fault=str(error))
    return _Files([file.path for file in files], [file.path for file in files if file.state == "missing"])


def _some(paths: Sequence[str]) -> str:
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")


def _remedy(problem: Problem, status: Status) -> str:
    if status == "duplicate":
        return _remedy_of_two(problem)
    if any(sign in problem.text for sign in ("names the object", "in the group")):
        return f"tell the authors of {problem.distribution}"
    return f"pip install --force-reinstall {problem.distribution}, or look at {problem.location}"


def _remedy_of_two(problem: Problem) -> str:
    """Which of two metadata folders of one name has to go."""
    if Path(problem.used).parent != Path(problem.location).parent:
        return f"remove {problem.location} and its package: the one in {Path(problem.used).parent} hides it"
    stale = [location for location in (problem.used, problem.location) if any(_files_of(location))]
    if len(stale) == 1:
        return f"remove {stale[0]}: the files next to it belong to the other one"
    name = problem.distribution
    return f"run pip uninstall {name} until it is gone, then: pip install {name}"


class _Neighbours:
    """What only shows when distributions are seen beside each other."""

    def __init__(self, host: PluginHost) -> None:
        self.addresses: defaultdict[str, list[str]] = defaultdict(list)
        self.owners: defaultdict[str, set[str]] = defaultdict(set)
        for row in host.policy.rows():
            self.addresses[row.id].append(row.address)
            self.owners[_package(row)].add(row.distribution)
        self.prefer = host.settings.prefer
        self.standings = standings(host)
        self.installation = installed(None if host.paths is None else (*host.paths, *sys.path))
        self._requirers = requirers({row.distribution for row in host.catalog.rows}, self.installation)

    def bringers(self, distribution: str) -> tuple[str, ...]:
        """Who requires a distribution that nobody has asked for by name."""
        found = self.installation.get(distribution)
        return () if found is None or found.requested else tuple(self._requirers.get(distribution, ()))

    def may_act(self, row: Row) -> bool:
        """Whether nothing has to be enabled for it."""
        return row not in self.standings or self.standings[row].acts

    def contradicting(self, distribution: str, required: str, specifier: object) -> list[tuple[str, str]]:
        """Who else requires something in such versions that none fits both, each with what it requires."""
        # Who requires it only with an extra is not in the installation by that name: nobody may have chosen the extra.
        names = sorted((self.installation.keys() & required_by(required, self.installation)) - {distribution})
        return [
            (name, str(wanted.specifier))
            for name in names
            for wanted in requirements_of(self.installation[name])
            if normalise(wanted.name) == required and not _can_agree(specifier & wanted.specifier)
        ]

    def verdicts(self, row: Row, *, failed: bool) -> Iterator[Verdict]:
        """What neighbours make wrong with a component; `failed` is whether it could not be loaded."""
        yield from self._of_name(row)
        owners = self.owners[_package(row)] - {row.distribution}
        if owners:
            why = f"the package {_package(row)!r} also belongs to {', '.join(sorted(owners))}"
            yield ("broken" if failed else "duplicate"), why, "uninstall one of them, and reinstall the other"
        near = self._nearly(row)
        # Once for both: at the one that comes later in the alphabet.
        if near and row.address > min(near):
            yield "ok", f"its name is one letter away from {', '.join(near)}", "make sure that you mean this one"

    def _of_name(self, row: Row) -> Iterator[Verdict]:
        rivals = self.addresses[row.id]
        if len(rivals) > 1 and row.id not in self.prefer:
            why = f"{row.id} is offered by {', '.join(rivals)}"
            choose = f'[prefer] "{row.id}" = "{row.distribution}"'
            yield "ambiguous", why, f"write the address, or prefer one, in your config.toml: {choose}"

    def _nearly(self, row: Row) -> list[str]:
        """What others offer under a name that is one letter from a component's."""
        near = filter(partial(_differs_by_one, row.id), self.addresses)
        addresses = chain.from_iterable(map(self.addresses.__getitem__, near))
        return [address for address in addresses if address.partition("/")[0] != row.distribution]


def _package(row: Row) -> str:
    return _top_level(row.module)


def _top_level(module: str) -> str:
    return module.partition(".")[0]


def _can_agree(specifier: Any) -> bool:
    """Whether some version fits: if one does, then also one that is a bound, just above one, or the lowest of all."""
    bounds = [clause.version.removesuffix(".*") for clause in specifier]
    near_them = [version for bound in bounds for version in (bound, f"{bound}.0.0.0.1", _next(bound))]
    return any(specifier.contains(version, prereleases=True) for version in ("0", *near_them))


def _next(version: str) -> str:
    """The version after all that begin with this one, as `1.5` after `1.4.*`."""
    head, dot, last = version.rpartition(".")
    return f"{head}{dot}{int(last) + 1}" if last.isdecimal() else version


def _differs_by_one(first: str, second: str) -> bool:
    """Whether two components of a kind have names of which one character was changed, added or left out."""
    start = len(commonprefix((first, second)))  # noqa: RUF071 - of texts, not of paths
    if first == second or "." not in first[:start]:
        return False
    one, other = first[start:], second[start:]
    return one[1:] in (other, other[1:]) or one == other[1:]


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
    verdicts = sorted(_verdicts(rows, answer, host, neighbours), key=_severity)
    (status, why, fix), *others = verdicts or [("ok", "", "")]
    return finding(status, answer["ms"], why, fix, more=tuple(map(_in_a_line, others)))


def _severity(verdict: Verdict) -> int:
    return _SEVERITY[verdict[0]]


def _in_a_line(verdict: Verdict) -> str:
    _, why, fix = verdict
    return f"{why} → {fix}" if fix else why


def _verdicts(
    rows: Sequence[Row], answer: Mapping[str, object], host: PluginHost, neighbours: _Neighbours
) -> Iterator[Verdict]:
    """All that is wrong with a distribution of which something may load."""
    usable = [row for row in rows if not host.policy.why_not(row)]
    for row in usable:
        yield from neighbours.verdicts(row, failed=bool(answer["errors"]))
    yield from _of_answer(rows, answer, neighbours)
    yield from _of_machine(answer, host)
    yield from _of_installation(rows[0], neighbours)
    for row in usable:
        yield from _of_identity(row, host)
    if not any(map(neighbours.may_act, usable)):
        names = " ".join(map(whole_name, usable))
        yield "inactive", f"it {neighbours.standings[usable[0]].why}", f"jackfield plugins enable {names}"


def _of_identity(row: Row, host: PluginHost) -> Iterator[Verdict]:
    """Who offers it, as far as that can be told."""
    doubt = host.policy.unproven(row)
    for remark in remarks(row, host):
        if remark == doubt:
            yield "unproven", f"{row.id} {doubt}", f"pip install --force-reinstall {row.distribution}"
        else:
            yield "ok", f"{row.id} {remark}", "make sure that you mean this one"


def _kept_out(row: Row, host: PluginHost) -> Verdict:
    reason = host.policy.why_not(row)
    if any(file.name == row.distribution and file.fault for file in host.settings.local):
        return "broken", reason, f"repair {row.location}, or correct `local`"
    if "did its authors mean" in reason:
        return "incompatible", reason, f"tell the authors of {row.distribution}"
    if is_incompatible(row):
        return "incompatible", reason, f"pip install --upgrade jackfield {row.distribution}"
    return "blocked", reason, f"change it there, or: jackfield plugins enable {row.distribution}"


def _of_answer(rows: Sequence[Row], answer: Mapping[str, Any], neighbours: _Neighbours) -> Iterator[Verdict]:
    """What loading it has shown."""
    tell = f"tell the authors of {rows[0].distribution}"
    for error in answer["errors"][:1]:
        yield "broken", error, _remedy_of_failure(rows, answer["missing"], neighbours)
    yield from _of_descriptors(rows, answer, tell)
    yield from _of_time(answer, set(map(_package, rows)), tell)
    for effect in answer["effects"][:1]:
        yield "slow", f"importing it does more than it should: {effect}", f"{tell}, or block it"


def _of_machine(answer: Mapping[str, Any], host: PluginHost) -> Iterator[Verdict]:
    """What is missing here."""
    for problem in answer["checks"]:
        yield "broken", problem, "repair it, and run this again"
    missing = list(filterfalse(host.settings.secret, answer["secrets"]))
    if missing:
        yield "ok", f"not set: {', '.join(missing)}", f"set {missing[0]} to use it"


def _of_descriptors(rows: Sequence[Row], answer: Mapping[str, Any], tell: str) -> Iterator[Verdict]:
    for component, spec in answer["specs"].items():
        if spec["extra"]:
            yield _of_unknown_words(component, sorted(spec["extra"]), tell)
    extra = sorted(set(answer["offered"]).difference(row.id for row in rows))
    if extra:
        yield "undeclared", f"it offers {', '.join(extra)} without an entry point, so it cannot be found", tell


def _of_time(answer: Mapping[str, Any], own: Collection[str], tell: str) -> Iterator[Verdict]:
    heavy = sorted(set(map(_top_level, answer["imported"])).difference(own, _light_packages()))
    if heavy:
        yield "slow", f"describing it imports {', '.join(heavy[:5])}", f"{tell}: a light module imports none of these"
    elif (answer["ms"] or 0) > SLOW_MS:
        yield "slow", "describing it takes long", f"{tell}: a light module should take 5 ms"
    if answer["waited_ms"] > WAITED_MS:
        why = f"describing it spends {answer['waited_ms'] / 1000:.1f} s waiting"
        yield "slow", why, f"{tell}: a light module should never wait"


def _of_unknown_words(component: str, words: Sequence[str], tell: str) -> Verdict:
    why = f"{component} says {', '.join(words)}, which this version of jackfield does not know and ignores"
    known = [one.name for one in fields(hook.KINDS[component.partition(".")[0]].spec_class)]
    meant = {repr(close) for word in words for close in near(word, known)[:1]}
    if meant:
        return "undeclared", f"{why}; did its authors mean {', '.join(sorted(meant))}?", tell
    return "undeclared", why, f"pip install --upgrade jackfield, or {tell}"


def _remedy_of_failure(rows: Sequence[Row], missing: Sequence[str], neighbours: _Neighbours) -> str:
    """What to type when a plugin cannot be loaded."""
    row = rows[0]
    if not row.is_installed:
        return f"repair {row.location}"
    found = neighbours.installation.get(row.distribution)
    package = "".join(missing[:1]).partition(".")[0]
    if package in map(_package, rows):
        return _remedy_of_remains(row, missing[0], found)
    if not package or found is None or any(_unmet(found, neighbours)):
        return f"pip install --upgrade {row.distribution}, or pip uninstall {row.distribution}"
    return _remedy_of_import(found, package)


def _remedy_of_remains(row: Row, module: str, found: Distribution | None) -> str:
    """What to do when a plugin's own module is not there."""
    files = _files_of(row.location)
    if found is None or files.fault:
        return f"it was only partly uninstalled: remove {row.location}, then: pip install {row.distribution}"
    if files.missing:
        return f"pip install --force-reinstall {row.distribution}"
    return f"tell the authors of {row.distribution}: its entry points name {module}, which it does not contain"


def _remedy_of_import(found: Distribution, package: str) -> str:
    """What to do when a plugin imports what it does not require, or only with an extra."""
    for extra in found.extras:
        if normalise(package) in (normalise(wanted.name) for wanted in requirements_of(found, extra)):
            return f"pip install '{found.name}[{extra}]'"
    return (
        f"tell the authors of {found.name} that it imports {package!r} and does not require it; "
        f"until then, install what has it (pip install {package.replace('_', '-')}, if it is named so)"
    )


def _light_packages() -> frozenset[str]:
    return sys.stdlib_module_names | {"jackfield", "pluggy"}


def _of_installation(row: Row, neighbours: _Neighbours) -> Iterator[Verdict]:
    """What its metadata shows."""
    if not row.is_installed:
        return
    found = neighbours.installation.get(row.distribution)
    if found is None:
        fix = f"remove {row.location}, then: pip install {row.distribution}"
        yield "ok", "its METADATA cannot be read, so its requirements are unknown", fix
        return
    yield from _unmet(found, neighbours)
    files = _Files(fault="installed as editable") if found.editable else _files_of(row.location)
    if files.fault:
        yield "ok", files.fault, ""
    if files.changed:
        fix = f"pip install --force-reinstall {row.distribution}"
        yield "changed", f"changed after it was installed: {_some(files.changed)}", fix


def _unmet(found: Distribution, neighbours: _Neighbours) -> Iterator[Verdict]:
    """What a distribution requires and does not have."""
    for wanted in requirements_of(found):
        name = normalise(wanted.name)
        have = neighbours.installation.get(name)
        if have is None:
            yield "broken", f"it needs {wanted.name}, which is not installed", f"pip install --upgrade {found.name}"
        elif not wanted.specifier.contains(have.version, prereleases=True):
            others = neighbours.contradicting(found.name, name, wanted.specifier)
            why = f"it needs {wanted.name}{wanted.specifier}, and {have.version} is installed"
            fix = f"pip install --upgrade {found.name} '{wanted.name}{wanted.specifier}'"
            yield _contradiction(found.name, wanted.name, why, others) if others else ("broken", why, fix)


def _contradiction(name: str, required: str, why: str, others: Sequence[tuple[str, str]]) -> Verdict:
    """A requirement of which no version fits all who have it."""
    told = " and ".join(f"{other} needs {required}{specifier}" for other, specifier in others)
    everyone = " ".join([name, *(other for other, _ in others)])
    fix = (
        f"pip install --upgrade {everyone}; if no versions of them agree, "
        f"only one of them can be in this environment: pip uninstall {name}"
    )
    return "broken", f"{why}, while {told}: no version of it fits both", fix
