"""Check every installed plugin in a separate process, and report each problem with the command that fixes it."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from jackfield.plugins import PluginHost, Problem, Row
from jackfield_manage.distributions import CORE, Distribution
from jackfield_manage.judging.absences import misspelt_groups
from jackfield_manage.judging.findings import Finding, Status, Verdict
from jackfield_manage.judging.neighbours import Neighbours
from jackfield_manage.judging.processes import TIMEOUT_S, probe_all, probe_in_interpreter
from jackfield_manage.judging.verdicts import FileChanges, compare_files, is_slow, judge, judge_blocked, shorten
from jackfield_manage.names import group_by_distribution
from jackfield_manage.record import files_below


def examine(
    host: PluginHost,
    *,
    deep: bool = False,
    timeout_s: float = TIMEOUT_S,
    only: Sequence[str] = (),
    remembered: Sequence[str] = (),
) -> Iterator[Finding]:
    """Check every distribution with plugins; hangs and crashes are reported as findings.

    Args:
        host: The host with the plugins.
        deep: True to also import the components with all their dependencies and run their checks of the machine.
        timeout_s: The time limit for each distribution.
        only: The normalised names of the distributions to check. If empty, all are checked.
        remembered: Previously installed distributions, so that missing ones can be reported.

    Yields:
        A finding for each distribution, sorted by name, as soon as it is available. Findings about the core, other
        metadata faults and missing distributions follow.
    """
    rows = group_by_distribution(host.catalog.rows)
    neighbours = Neighbours(host)
    examined = {name: rows[name] for name in rows if not only or name in only}
    with closing(_probe_in_order(host, examined, deep, timeout_s)) as results:
        for name, result in results:
            if result is None or not is_slow(result):
                yield _finding(rows[name], result, host, neighbours)
            else:
                yield _finding(rows[name], _measure_again(host, name, result, timeout_s), host, neighbours)
    if not only or CORE in only:
        yield from _core_findings(neighbours.installation)
    gone = [
        Finding(name, "", (), "vanished", None, "is no longer installed", f"pip install {name}")
        for name in sorted(set(remembered) - rows.keys())
    ]
    for finding in (*_metadata_findings(host), *gone):
        if not only or finding.distribution in only:
            yield finding


def _probe_in_order(
    host: PluginHost, rows: Mapping[str, Sequence[Row]], deep: bool, timeout_s: float
) -> Generator[tuple[str, Mapping[str, Any] | None], None, None]:
    """Yield each distribution's probe result, in the order of `rows`; None if nothing in it may load."""
    results: dict[str, Any] = {name: None for name in rows if all(host.policy.why_not(row) for row in rows[name])}
    loadable = [name for name in rows if name not in results]
    with closing(probe_all(host, loadable, deep=deep, timeout_s=timeout_s)) as probed:
        for name in rows:
            while name not in results:
                finished, result = next(probed)
                results[finished] = result
            yield name, results[name]


def _measure_again(host: PluginHost, name: str, result: Mapping[str, Any], timeout_s: float) -> Mapping[str, Any]:
    """Describe a slow distribution once more, and return its result with the shorter times.

    A cold disk or a busy machine can slow down one measurement, but a plugin that waits does so every time.
    """
    again = probe_in_interpreter(host, name, timeout_s=timeout_s)
    if again["errors"]:
        return result
    return {**result, **{key: min(result[key], again[key]) for key in ("ms", "waited_ms")}}


def _finding(
    rows: Sequence[Row], result: Mapping[str, Any] | None, host: PluginHost, neighbours: Neighbours
) -> Finding:
    """Return the finding about a distribution. `result` is None if nothing in it may load."""
    if result is None:
        verdicts = [judge_blocked(rows[0], host)]
    else:
        verdicts = sorted(judge(rows, result, host, neighbours), key=lambda verdict: verdict.severity)
    worst = verdicts[0] if verdicts else Verdict("ok", "", "")
    return Finding(
        rows[0].distribution,
        rows[0].version,
        tuple(row.id for row in rows),
        worst.status,
        None if result is None else result["ms"],
        worst.why,
        worst.fix,
        required_by=neighbours.requirers_of(rows[0].distribution),
        more=tuple(verdict.line() for verdict in verdicts[1:]),
    )


def _core_findings(installation: Mapping[str, Distribution]) -> Iterator[Finding]:
    """Find changes to the core's files, and files that other distributions added to its package."""
    core = installation.get(CORE, Distribution(CORE, "", ""))
    files = FileChanges() if core.editable or not core.location else compare_files(core.location)
    reinstall = f"pip install --force-reinstall {CORE}"
    if files.fault:
        yield Finding(CORE, core.version, (), "unproven", None, files.fault, reinstall)
    changes: list[str] = []
    for name in sorted(installation.keys() - {CORE}):
        foreign = files_below(installation[name].location, f"{CORE}/")
        if foreign:
            changes.append(f"{name} installed {shorten(foreign)} into the core's package")
    if files.changed:
        changes.append(f"the core was changed after it was installed: {shorten(files.changed)}")
    if changes:
        fix = f"{reinstall}, and remove whatever changed it"
        yield Finding(CORE, core.version, (), "changed", None, changes[0], fix, more=tuple(changes[1:]))


def _metadata_findings(host: PluginHost) -> Iterator[Finding]:
    for problem in (*host.catalog.problems, *misspelt_groups(host.paths)):
        status: Status = "duplicate" if problem.used else "malformed"
        fix = _fix_duplicate(problem) if problem.used else _fix_metadata(problem)
        yield Finding(problem.distribution, "", (), status, None, problem.text, fix)


def _fix_metadata(problem: Problem) -> str:
    if problem.is_authors_fault:
        return f"report this to the authors of {problem.distribution}"
    return f"pip install --force-reinstall {problem.distribution}, or check {problem.location}"


def _fix_duplicate(problem: Problem) -> str:
    """Return which of two metadata directories with the same name to remove."""
    if Path(problem.used).parent != Path(problem.location).parent:
        return f"remove {problem.location} and its package: the one in {Path(problem.used).parent} takes precedence"
    stale = [location for location in (problem.used, problem.location) if any(compare_files(location))]
    if len(stale) == 1:
        return f"remove {stale[0]}: the files next to it belong to the other installation"
    name = problem.distribution
    return f"run pip uninstall {name} until it is gone, then run: pip install {name}"
