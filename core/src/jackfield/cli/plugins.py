"""`jackfield plugins`: what is installed, and whether it works."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from jackfield.errors import PluginError, PluginNotFoundError
from jackfield.plugins.catalog import Row
from jackfield.plugins.host import PluginHost
from jackfield.plugins.policy import why_not
from jackfield.settings import closest, normalise


def run(options: argparse.Namespace) -> int:
    """Run one of the actions and return the exit code."""
    host = PluginHost()
    match options.action:
        case "info":
            return info(host, options.name, as_json=options.json)
        case "doctor":
            return doctor(host, deep=options.deep, as_json=options.json)
        case _:
            return list_plugins(host, long=options.long, as_json=options.json)


def list_plugins(host: PluginHost, *, long: bool, as_json: bool) -> int:
    """Print every component; without `long`, nothing is loaded."""
    rows = [_row_facts(row, host, long=long) for row in host.catalog.rows]
    if as_json:
        _print_json({"plugins": rows, "problems": [_problem_facts(problem) for problem in host.problems()]})
        return 0
    if not rows:
        print("No plugins are installed. Begin with: pip install jackfield-openai")
    columns = ["kind", "name", "distribution", "version", "state", *(["summary"] if long else [])]
    print_table(columns, [[str(row[column]) for column in columns] for row in rows])
    for problem in host.problems():
        sys.stderr.write(f"{problem.distribution} {problem.text}\n")
    return 0


def _row_facts(row: Row, host: PluginHost, *, long: bool) -> dict[str, Any]:
    reason = why_not(row, host.settings)
    facts: dict[str, Any] = {
        "kind": row.kind,
        "name": row.name,
        "distribution": row.distribution,
        "version": row.version,
        "state": reason or "ready",
    }
    if long:
        facts["summary"] = "" if reason else _summary(row, host)
    return facts


def _summary(row: Row, host: PluginHost) -> str:
    from jackfield.plugins.descriptors import ComponentSpec

    try:
        return host.spec_of(row, ComponentSpec).summary
    except PluginError as error:
        return f"BROKEN: {error}"


def _problem_facts(problem: Any) -> dict[str, str]:
    return {"distribution": problem.distribution, "text": problem.text, "location": problem.location}


def info(host: PluginHost, name: str, *, as_json: bool) -> int:
    """Print all about a distribution, or about the components of a name."""
    wanted = normalise(name)
    rows = [row for row in host.catalog.rows if wanted == row.distribution or name in (row.name, row.id, row.address)]
    if not rows:
        known = sorted({row.distribution for row in host.catalog.rows} | {row.name for row in host.catalog.rows})
        raise PluginNotFoundError(f"no plugin {name!r} is installed{closest(name, known)}")
    facts = [_component_facts(row, host) for row in rows]
    if as_json:
        _print_json(facts)
        return 0
    for fact in facts:
        print(f"{fact['id']}  ({fact['distribution']} {fact['version']})")
        for key, value in fact.items():
            if key not in ("id", "distribution", "version") and value:
                print(f"  {key}: {value if isinstance(value, str) else ', '.join(map(str, value))}")
    return 0


def _component_facts(row: Row, host: PluginHost) -> dict[str, Any]:
    from jackfield.plugins.descriptors import ComponentSpec, ToolSpec, in_language

    facts: dict[str, Any] = {"id": row.id, "distribution": row.distribution, "version": row.version}
    reason = why_not(row, host.settings)
    if reason:
        return {**facts, "state": reason}
    try:
        spec = host.spec_of(row, ComponentSpec)
    except PluginError as error:
        return {**facts, "state": "broken", "why": str(error)}
    facts |= {
        "state": "ready",
        "address": row.address,
        "summary": spec.summary,
        "class": spec.target,
        "effects": sorted(spec.effects),
        "network": list(spec.network),
        "secrets": [f"{name} ({'set' if host.settings.secret(name) else 'not set'})" for name in spec.secrets],
    }
    if isinstance(spec, ToolSpec):
        facts["description"] = in_language(spec.description, "en")
        facts["parameters"] = list(spec.parameters.get("properties", {}))
    facts |= _distribution_facts(row)
    return facts


def _distribution_facts(row: Row) -> dict[str, Any]:
    import importlib_metadata

    try:
        metadata = importlib_metadata.metadata(row.distribution)
    except importlib_metadata.PackageNotFoundError:
        return {"location": row.location}
    return {
        "licence": metadata.get("License-Expression") or metadata.get("License") or "",
        "needs": importlib_metadata.requires(row.distribution) or [],
        "location": row.location,
    }


def doctor(host: PluginHost, *, deep: bool, as_json: bool) -> int:
    """Examine every plugin; 1 if something that should work does not."""
    from dataclasses import asdict

    from jackfield.plugins.doctor import examine

    findings = examine(host, deep=deep)
    if as_json:
        _print_json([asdict(finding) for finding in findings])
    else:
        columns = ["distribution", "version", "status", "ms", "why", "what to do"]
        rows = [
            [f.distribution, f.version, f.status, "" if f.ms is None else f"{f.ms:.1f}", f.why, f.fix] for f in findings
        ]
        print_table(columns, rows)
        faults = sum(finding.is_fault for finding in findings)
        print(f"{len(findings)} distributions, {faults or 'none'} with a fault")
    return 1 if any(finding.is_fault for finding in findings) else 0


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a heading, columns aligned, the last one as long as it is."""
    if not rows:
        return
    shown = [[_printable(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(len(row[index]) for row in shown) for index in range(len(columns))]
    for row in shown:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _printable(text: str) -> str:
    """Metadata comes from anybody: no escape sequence of it reaches the terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "�" for char in text)


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))
