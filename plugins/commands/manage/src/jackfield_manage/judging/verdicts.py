"""Judge a distribution by its probe result, metadata and files."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from jackfield.errors import PluginError
from jackfield.plugins import PluginHost, Row, hook, is_incompatible
from jackfield.settings import normalise
from jackfield.suggestions import close_names
from jackfield_manage.distributions import Distribution, requirements_of
from jackfield_manage.judging.activation import remarks
from jackfield_manage.judging.findings import Verdict
from jackfield_manage.judging.neighbours import Neighbours, package_of
from jackfield_manage.names import full_name
from jackfield_manage.record import changed_files

WAITED_MS = 250.0  # loading a plugin reads files, but must not contact servers or sleep
SLOW_MS = 50.0  # a light module should take 5; ten times as much slows down every command


class FileChanges(NamedTuple):
    """The files that differ from a distribution's RECORD, or the `fault` that prevents the comparison."""

    changed: Sequence[str] = ()
    missing: Sequence[str] = ()
    fault: str = ""


def compare_files(location: str) -> FileChanges:
    """Compare a distribution's files with its RECORD."""
    try:
        files = changed_files(location)
    except PluginError as error:
        return FileChanges(fault=str(error))
    return FileChanges([file.path for file in files], [file.path for file in files if file.state == "missing"])


def shorten(paths: Sequence[str]) -> str:
    """List the first three paths, and the number of remaining ones."""
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")


def judge_blocked(row: Row, host: PluginHost) -> Verdict:
    """Judge a distribution whose components are all blocked from loading."""
    reason = host.policy.why_not(row)
    if any(file.name == row.distribution and file.fault for file in host.settings.local):
        return Verdict("broken", reason, f"fix {row.location}, or correct `local`")
    if "did its authors mean" in reason:
        return Verdict("incompatible", reason, f"report this to the authors of {row.distribution}")
    if is_incompatible(row):
        return Verdict("incompatible", reason, f"pip install --upgrade jackfield {row.distribution}")
    return Verdict("blocked", reason, f"change the rule there, or run: jackfield plugins enable {row.distribution}")


def is_slow(result: Mapping[str, Any]) -> bool:
    """Return True if describing a distribution took too much CPU time, or waited too long."""
    return (result["ms"] or 0) > SLOW_MS or result["waited_ms"] > WAITED_MS


def judge(
    rows: Sequence[Row], result: Mapping[str, Any], host: PluginHost, neighbours: Neighbours
) -> Iterator[Verdict]:
    """Yield all problems of a distribution with components that may load."""
    loadable = [row for row in rows if not host.policy.why_not(row)]
    for row in loadable:
        yield from neighbours.judge(row, failed=bool(result["errors"]))
    yield from _judge_loading(rows, result, neighbours)
    yield from _judge_machine(result, host)
    yield from _judge_installation(rows[0], neighbours)
    for row in loadable:
        yield from _judge_identity(row, host)
    if not any(neighbours.may_act(row) for row in loadable):
        names = " ".join(full_name(row) for row in loadable)
        reason = neighbours.activations[loadable[0]].reason
        yield Verdict("inactive", f"it {reason}", f"jackfield plugins enable {names}")


def _judge_loading(rows: Sequence[Row], result: Mapping[str, Any], neighbours: Neighbours) -> Iterator[Verdict]:
    """Judge by errors, descriptors, side effects and loading times."""
    report = f"report this to the authors of {rows[0].distribution}"
    for why, command in result["misfits"]:
        yield Verdict("broken", why, command)
    if result["errors"] and not result["misfits"]:
        yield Verdict("broken", result["errors"][0], _fix_loading(rows, result["missing"], neighbours))
    for component, spec in result["specs"].items():
        if spec["extra"]:
            yield _judge_unknown_fields(component, sorted(spec["extra"]), report)
    undeclared = sorted(set(result["offered"]) - {row.id for row in rows})
    if undeclared:
        why = f"it declares no entry point for {', '.join(undeclared)}, which therefore cannot be found"
        yield Verdict("undeclared", why, report)
    yield from _judge_times(rows, result, report)
    if result["effects"]:
        why = f"importing it has a side effect: {result['effects'][0]}"
        yield Verdict("slow", why, f"{report}, or block it")


def _judge_unknown_fields(component: str, names: Sequence[str], report: str) -> Verdict:
    why = f"{component} sets {', '.join(names)}, which this version of jackfield does not support and ignores"
    known = [field.name for field in fields(hook.KINDS[component.partition(".")[0]].spec_class)]
    suggestions = {repr(close) for name in names for close in close_names(name, known)[:1]}
    if suggestions:
        return Verdict("undeclared", f"{why}; did its authors mean {', '.join(sorted(suggestions))}?", report)
    return Verdict("undeclared", why, f"pip install --upgrade jackfield, or {report}")


def _judge_times(rows: Sequence[Row], result: Mapping[str, Any], report: str) -> Iterator[Verdict]:
    light = {*sys.stdlib_module_names, "jackfield", "pluggy", *(package_of(row) for row in rows)}
    heavy = sorted({module.partition(".")[0] for module in result["imported"]} - light)
    if heavy:
        why = f"its light module imports {', '.join(heavy[:5])}"
        yield Verdict("slow", why, f"{report}: a light module imports none of these")
    elif (result["ms"] or 0) > SLOW_MS:
        yield Verdict("slow", "its light module takes too long to load", f"{report}: a light module should take 5 ms")
    if result["waited_ms"] > WAITED_MS:
        why = f"its light module spends {result['waited_ms'] / 1000:.1f} s waiting"
        yield Verdict("slow", why, f"{report}: a light module should never wait")


def _judge_machine(result: Mapping[str, Any], host: PluginHost) -> Iterator[Verdict]:
    """Judge by what is missing from the machine or the environment."""
    for problem in result["checks"]:
        yield Verdict("broken", problem, "fix this, then run the check again")
    unset = [name for name in result["secrets"] if not host.settings.secret(name)]
    if unset:
        step = (
            "set the key for each service that you use"
            if len(result["secrets"]) > 1
            else f"set {unset[0]} to use it, unless your server or model needs no key"
        )
        yield Verdict("ok", f"not set: {', '.join(unset)}", step)


def _judge_installation(row: Row, neighbours: Neighbours) -> Iterator[Verdict]:
    """Judge by metadata and files."""
    if not row.is_installed:
        return
    distribution = neighbours.installation.get(row.distribution)
    if distribution is None:
        fix = f"remove {row.location}, then run: pip install {row.distribution}"
        yield Verdict("ok", "its METADATA cannot be read, so its requirements are unknown", fix)
        return
    yield from _judge_requirements(distribution, neighbours)
    files = FileChanges(fault="installed as editable") if distribution.editable else compare_files(row.location)
    if files.fault:
        yield Verdict("ok", files.fault, "")
    if files.changed:
        fix = f"pip install --force-reinstall {row.distribution}"
        yield Verdict("changed", f"changed after it was installed: {shorten(files.changed)}", fix)


def _judge_requirements(distribution: Distribution, neighbours: Neighbours) -> Iterator[Verdict]:
    """Yield a verdict for each unmet requirement."""
    name = distribution.name
    for requirement in requirements_of(distribution):
        required = normalise(requirement.name)
        present = neighbours.installation.get(required)
        if present is None:
            why = f"it requires {requirement.name}, which is not installed"
            yield Verdict("broken", why, f"pip install --upgrade {name}")
        elif not requirement.specifier.contains(present.version, prereleases=True):
            needed = f"{requirement.name}{requirement.specifier}"
            why = f"it requires {needed}, but {present.version} is installed"
            others = neighbours.contradicting(name, required, requirement.specifier)
            if others:
                yield _judge_contradiction(name, requirement.name, why, others)
            else:
                yield Verdict("broken", why, f"pip install --upgrade {name} '{needed}'")


def _judge_contradiction(name: str, required: str, why: str, others: Sequence[tuple[str, str]]) -> Verdict:
    """Judge a requirement for which no single version satisfies every distribution."""
    other_needs = " and ".join(f"{other} requires {required}{specifier}" for other, specifier in others)
    everyone = " ".join([name, *(other for other, _ in others)])
    fix = (
        f"pip install --upgrade {everyone}; if none of their versions are "
        f"compatible, only one of them can be installed in this environment: pip uninstall {name}"
    )
    return Verdict("broken", f"{why}, while {other_needs}: no version satisfies both", fix)


def _judge_identity(row: Row, host: PluginHost) -> Iterator[Verdict]:
    """Judge by the distributions that offer a component."""
    unproven = host.policy.unproven(row)
    for remark in remarks(row, host):
        if remark == unproven:
            yield Verdict("unproven", f"{row.id} {remark}", f"pip install --force-reinstall {row.distribution}")
        else:
            yield Verdict("ok", f"{row.id} {remark}", "make sure this is the one you want")


def _fix_loading(rows: Sequence[Row], missing: Sequence[str], neighbours: Neighbours) -> str:
    """Return the command to type if a plugin cannot be loaded. `missing` are the modules that could not be imported."""
    row = rows[0]
    if not row.is_installed:
        return f"fix {row.location}"
    distribution = neighbours.installation.get(row.distribution)
    package = missing[0].partition(".")[0] if missing else ""
    if package in {package_of(row) for row in rows}:
        return _fix_missing_module(row, missing[0], distribution)
    if not package or distribution is None or any(_judge_requirements(distribution, neighbours)):
        return f"pip install --upgrade {row.distribution}, or pip uninstall {row.distribution}"
    return _fix_undeclared_import(distribution, package)


def _fix_missing_module(row: Row, module: str, distribution: Distribution | None) -> str:
    """Return the command to type if a plugin's own module is missing."""
    files = compare_files(row.location)
    if distribution is None or files.fault:
        return f"it was only partly uninstalled: remove {row.location}, then run: pip install {row.distribution}"
    if files.missing:
        return f"pip install --force-reinstall {row.distribution}"
    return f"report to the authors of {row.distribution} that its entry points refer to {module}, which is missing"


def _fix_undeclared_import(distribution: Distribution, package: str) -> str:
    """Return the command to type if a plugin imports a package that it requires only with an extra, or not at all."""
    for extra in distribution.extras:
        if normalise(package) in {normalise(wanted.name) for wanted in requirements_of(distribution, extra)}:
            return f"pip install '{distribution.name}[{extra}]'"
    return (
        f"report to the authors of {distribution.name} that it imports {package!r} but does not require it; "
        f"until then, install the package that contains it (perhaps: pip install {package.replace('_', '-')})"
    )
