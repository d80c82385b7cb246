"""`jackfield plugins doctor`: check every plugin, and print each problem with the command that fixes it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from jackfield.cli import escape_line, print_json, terminal_columns, wrap_line
from jackfield.errors import JackfieldError, PluginNotFoundError
from jackfield.plugins import PluginHost
from jackfield.plurals import format_count
from jackfield.settings import ENABLED_KINDS, normalise
from jackfield.suggestions import suggest
from jackfield_manage.distributions import CORE
from jackfield_manage.judging.doctor import examine
from jackfield_manage.judging.findings import Finding
from jackfield_manage.judging.news import Memory
from jackfield_manage.judging.processes import TIMEOUT_S
from jackfield_manage.names import all_distributions, full_name

CHAIN = "(enabled processors)"
SETTINGS = "(settings)"
PROJECT = "(the project's file)"
_INDENT = " " * 6


def doctor(options: argparse.Namespace) -> int:
    """Check every plugin; return 1 if something is faulty."""
    host = PluginHost()
    only = [normalise(name) for name in options.names]
    remembered = list(Memory().seen())
    known = {*all_distributions(host.catalog), *remembered, CORE}
    for name in only:
        if name not in known:
            suggestion = suggest(name, all_distributions(host.catalog))
            raise PluginNotFoundError(f"no plugin package {name!r} is installed{suggestion}")
    width = max((len(f"{row.distribution} {row.version}") for row in host.catalog.rows), default=0)
    findings: list[Finding] = []
    for finding in _examine_all(host, options, only, remembered, findings):
        findings.append(finding)
        if not options.json:
            for line in _lines(finding, width):
                _print_wrapped(escape_line(line))
    if options.json:
        print_json([asdict(finding) for finding in findings])
    else:
        packages = set(only) or {finding.distribution for finding in findings} - {CHAIN, PROJECT, SETTINGS}
        print(f"{format_count(len(packages), 'package')}, {len(_faulty(findings)) or 'none'} with a fault")
    return int(any(finding.is_fault for finding in findings))


def _examine_all(
    host: PluginHost,
    options: argparse.Namespace,
    only: Sequence[str],
    remembered: Sequence[str],
    findings: Sequence[Finding],
) -> Iterator[Finding]:
    """Yield all findings. `findings` must contain those already yielded, since the caller adds them one by one."""
    yield from examine(
        host, deep=options.deep, timeout_s=options.timeout or TIMEOUT_S, only=only, remembered=remembered
    )
    if not only:
        yield from _project_findings(host)
        yield from _settings_findings(host)
        yield from _chain_findings(host, findings)


def _project_findings(host: PluginHost) -> list[Finding]:
    """Report the ignored part of the project file."""
    project = host.settings.project
    if project is None or not project.remark:
        return []
    return [Finding(PROJECT, "", project.ignored, "inactive", None, project.remark, "jackfield trust")]


def _settings_findings(host: PluginHost) -> Iterator[Finding]:
    """Report settings for components that are not installed."""
    known = {name for row in host.catalog.rows for name in (row.id, full_name(row))}
    for name in host.settings.options:
        if name not in known:
            suggestion = suggest(name, [form for form in known if form.startswith(ENABLED_KINDS)])
            why = f"settings for {name!r} are ignored: no such component is installed{suggestion}"
            fix = "correct the name in your config.toml, or remove the settings"
            yield Finding(SETTINGS, "", (name,), "inactive", None, why, fix)


def _chain_findings(host: PluginHost, findings: Sequence[Finding]) -> list[Finding]:
    """Report enabled processors that cannot be ordered, unless one of them has already been reported as broken."""
    rows = []
    try:
        rows = host.enabled("processor")
        is_reported = _faulty(findings).intersection(row.distribution for row in rows)
        if (rows or host.settings.order) and not is_reported:
            # Most installations enable none, and these imports are slow.
            from jackfield.models import load_processors
            from jackfield.processors import in_order

            in_order(load_processors((), host), host.settings.order)
    except JackfieldError as error:
        ids = tuple(full_name(row) for row in rows)
        return [
            Finding(CHAIN, "", ids, "broken", None, str(error), "disable one of them: jackfield plugins disable NAME")
        ]
    return []


def _faulty(findings: Sequence[Finding]) -> set[str]:
    return {finding.distribution for finding in findings if finding.is_fault}


def _print_wrapped(line: str) -> None:
    columns = terminal_columns(sys.stdout)
    parts = wrap_line(line, columns, indent=_INDENT) if columns else [line]
    print("\n".join(parts), flush=True)


def _lines(finding: Finding, width: int) -> Iterator[str]:
    name = f"{finding.distribution} {finding.version}".strip()
    time = "" if finding.ms is None else f"{finding.ms:.1f} ms"
    yield f"{name:{width}}  {finding.status:12} {time:>8}  {' '.join(finding.ids)}".rstrip()
    if finding.why:
        yield f"    {finding.why}"
    if finding.required_by and finding.status not in ("ok", "inactive"):
        yield f"    installed as a requirement of {', '.join(finding.required_by)}"
    if finding.fix:
        yield f"    → {finding.fix}"
    for problem in finding.more:
        yield f"    also: {problem}"
