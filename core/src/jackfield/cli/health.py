"""`jackfield plugins doctor`: every plugin, what is wrong with it, and what to type next."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from jackfield.cli.tables import print_json, printable
from jackfield.composition.consent import Memory
from jackfield.composition.doctor import PROBE_TIMEOUT_S, Finding, examine
from jackfield.errors import ConfigError, JackfieldError, PluginNotFoundError
from jackfield.models.base import load_processors
from jackfield.plugins.host import PluginHost
from jackfield.processors import in_order
from jackfield.settings import closest, normalise

CHAIN = "(enabled processors)"
PROJECT = "(the project's file)"


def doctor(options: argparse.Namespace) -> int:
    """Examine every plugin; 1 if something that should work does not."""
    if options.timeout is not None and not 0 < options.timeout < 1e6:
        raise ConfigError("--timeout is a number of seconds above 0")
    host = PluginHost()
    only = [normalise(name) for name in options.names]
    findings = examine(
        host,
        deep=options.deep,
        timeout_s=options.timeout or PROBE_TIMEOUT_S,
        only=only,
        remembered=list(Memory().seen()),
    )
    for name in only:
        if not any(finding.distribution == name for finding in findings):
            known = sorted({row.distribution for row in host.catalog.rows})
            raise PluginNotFoundError(f"no plugin distribution {name!r} is installed{closest(name, known)}")
    if not only:
        findings += [*_project_findings(host), *_chain_findings(host, findings)]
    if options.json:
        print_json([asdict(finding) for finding in findings])
    else:
        _print(findings)
    return 1 if any(finding.is_fault for finding in findings) else 0


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
        if any(finding.is_fault and finding.distribution in {row.distribution for row in rows} for finding in findings):
            return []
        in_order(load_processors((), host), host.settings.order)
    except JackfieldError as error:
        ids = tuple(f"{row.kind}.{row.address}" for row in rows)
        return [Finding(CHAIN, "", ids, "broken", None, str(error), "jackfield plugins disable one of them")]
    return []


def _print(findings: Sequence[Finding]) -> None:
    width = max((len(f"{finding.distribution} {finding.version}") for finding in findings), default=0)
    for finding in findings:
        name = f"{finding.distribution} {finding.version}".strip()
        took = "" if finding.ms is None else f"{finding.ms:.1f} ms"
        print(printable(f"{name:{width}}  {finding.status:12} {took:>8}  {' '.join(finding.ids)}".rstrip()))
        if finding.why:
            print(printable(f"    {finding.why}"))
        if finding.required_by and finding.status not in ("ok", "inactive"):
            print(printable(f"    it was brought by {', '.join(finding.required_by)}"))
        if finding.fix:
            print(printable(f"    → {finding.fix}"))
        for sentence in finding.more:
            print(printable(f"    also: {sentence}"))
    distributions = {finding.distribution for finding in findings} - {CHAIN, PROJECT}
    faulty = {finding.distribution for finding in findings if finding.is_fault}
    print(f"{len(distributions)} distributions, {len(faulty) or 'none'} with a fault")
