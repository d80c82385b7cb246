"""`jackfield plugins doctor`: every plugin, what is wrong with it, and what to type next."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain, filterfalse

from jackfield.cli import print_json, printable
from jackfield.errors import JackfieldError, PluginNotFoundError, closest
from jackfield.plugins import PluginHost
from jackfield.settings import ENABLED_KINDS, normalise
from jackfield_manage.distributions import CORE
from jackfield_manage.judging.doctor import Finding, examine
from jackfield_manage.judging.news import Memory
from jackfield_manage.judging.processes import TIMEOUT_S
from jackfield_manage.names import distributions_in, whole_name

CHAIN = "(enabled processors)"
SETTINGS = "(settings)"
PROJECT = "(the project's file)"


def doctor(options: argparse.Namespace) -> int:
    """Examine every plugin; 1 if something that should work does not."""
    host = PluginHost()
    only = list(map(normalise, options.names))
    remembered = list(Memory().seen())
    _check_names(only, remembered, host)
    findings: list[Finding] = []
    width = max((len(f"{row.distribution} {row.version}") for row in host.catalog.rows), default=0)
    for finding in _all_findings(host, options, only, remembered, findings):
        findings.append(finding)
        if not options.json:
            _print(finding, width)
    if options.json:
        print_json(list(map(asdict, findings)))
    else:
        _print_sum(findings)
    return int(any(finding.is_fault for finding in findings))


def _check_names(names: Sequence[str], remembered: Sequence[str], host: PluginHost) -> None:
    here = distributions_in(host.catalog)
    for name in filterfalse(here.union(remembered, (CORE,)).__contains__, names):
        raise PluginNotFoundError(f"no plugin package {name!r} is installed{closest(name, here)}")


def _all_findings(
    host: PluginHost,
    options: argparse.Namespace,
    only: Sequence[str],
    remembered: Sequence[str],
    before: Sequence[Finding],
) -> Iterator[Finding]:
    yield from examine(
        host, deep=options.deep, timeout_s=options.timeout or TIMEOUT_S, only=only, remembered=remembered
    )
    if not only:
        yield from _project_findings(host)
        yield from _settings_findings(host)
        yield from _chain_findings(host, before)


def _settings_findings(host: PluginHost) -> Iterator[Finding]:
    """Settings of components that are not installed: nobody reads them."""
    known = set(chain.from_iterable((row.id, whole_name(row)) for row in host.catalog.rows))
    for name in filterfalse(known.__contains__, host.settings.options):
        close = closest(name, [form for form in known if form.startswith(ENABLED_KINDS)])
        why = f"the settings of {name!r} are not used: it is not installed{close}"
        fix = "correct its name in your config.toml, or take it out"
        yield Finding(SETTINGS, "", (name,), "inactive", None, why, fix)


def _project_findings(host: PluginHost) -> list[Finding]:
    """What of the project's file does not count."""
    project = host.settings.project
    if project is None or not project.remark:
        return []
    return [Finding(PROJECT, "", project.ignored, "inactive", None, project.remark, "jackfield trust")]


def _chain_findings(host: PluginHost, findings: Sequence[Finding]) -> list[Finding]:
    """Whether what is enabled can be put into an order. A broken one has been told, and is not loaded here."""
    rows = []
    try:
        rows = host.enabled("processor")
        is_told = _faulty(findings).intersection(row.distribution for row in rows)
        if (rows or host.settings.order) and not is_told:
            _put_in_order(host)
    except JackfieldError as error:
        ids = tuple(map(whole_name, rows))
        return [Finding(CHAIN, "", ids, "broken", None, str(error), "jackfield plugins disable one of them")]
    return []


def _put_in_order(host: PluginHost) -> None:
    from jackfield.models import load_processors  # most installations enable none, and this imports much
    from jackfield.processors import in_order

    in_order(load_processors((), host), host.settings.order)


def _faulty(findings: Sequence[Finding]) -> set[str]:
    return {finding.distribution for finding in findings if finding.is_fault}


def _print(finding: Finding, width: int) -> None:
    for line in _lines(finding, width):
        print(printable(line), flush=True)


def _lines(finding: Finding, width: int) -> Iterator[str]:
    name = f"{finding.distribution} {finding.version}".strip()
    took = "" if finding.ms is None else f"{finding.ms:.1f} ms"
    yield f"{name:{width}}  {finding.status:12} {took:>8}  {' '.join(finding.ids)}".rstrip()
    if finding.why:
        yield f"    {finding.why}"
    if finding.required_by and finding.status not in ("ok", "inactive"):
        yield f"    it was installed as a requirement of {', '.join(finding.required_by)}"
    if finding.fix:
        yield f"    → {finding.fix}"
    yield from map("    also: {}".format, finding.more)


def _print_sum(findings: Sequence[Finding]) -> None:
    distributions = {finding.distribution for finding in findings} - {CHAIN, PROJECT, SETTINGS}
    print(f"{len(distributions)} packages, {len(_faulty(findings)) or 'none'} with a fault")
