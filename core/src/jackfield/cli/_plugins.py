"""`jackfield plugins list`, which shows the installed components. The manager provides the other subcommands."""

from __future__ import annotations

import argparse
import sys

from jackfield.cli._tables import print_json, print_table
from jackfield.cli._terminal import escape_line
from jackfield.defaults import FIRST_BACKEND
from jackfield.hookspecs import KINDS
from jackfield.plugins._acting import default_chain, enabled_by
from jackfield.plugins._catalog import Row
from jackfield.plugins._host import PluginHost
from jackfield.plugins._known import known_distribution
from jackfield.settings import ENABLED_KINDS


def add_list_options(parser: argparse.ArgumentParser) -> None:
    """Add the options and handler of `list`."""
    parser.add_argument(
        "--kind", choices=tuple(KINDS), metavar="KIND", help="list only plugins of this kind: llm, tool, searcher …"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(handler=list_plugins)


def list_plugins(options: argparse.Namespace) -> int:
    """Print all components without loading any of them."""
    host = PluginHost()
    print_rows(host, [facts for _, facts in row_facts(host, options.kind)], options.kind, as_json=options.json)
    return 0


def row_facts(host: PluginHost, kind: str | None = None) -> list[tuple[Row, dict[str, str]]]:
    """Return the components of one kind, or of all kinds, with the values to print for each."""
    return [(row, _facts(row, state)) for row, state in states(host).items() if kind in (None, row.kind)]


def print_rows(host: PluginHost, rows: list[dict[str, str]], kind: str | None, *, as_json: bool) -> None:
    """Print the list, followed by faults in plugin metadata."""
    problems = host.catalog.problems
    if as_json:
        faults = [{"distribution": one.distribution, "text": one.text, "location": one.location} for one in problems]
        print_json({"plugins": rows, "problems": faults})
        return
    if rows:
        print_table(list(rows[0]), [list(row.values()) for row in rows])
    else:
        _print_absence(kind)
    if not (kind or host.policy.rows("llm")):  # `names` would query local files
        print(f"To use a model, install a backend first: pip install {FIRST_BACKEND}")
    sys.stderr.writelines(f"{escape_line(one.distribution)} {escape_line(one.text)}\n" for one in problems)


def _print_absence(kind: str | None) -> None:
    if kind:
        print(f"No plugins of kind {kind!r} are installed. To find some, run: jackfield plugins search {kind}")
    else:
        print("No plugins are installed. To find some, run: jackfield plugins search")


def _facts(row: Row, state: str) -> dict[str, str]:
    return {
        "kind": row.kind,
        "name": row.name,
        "distribution": row.distribution,
        "version": row.version,
        "state": f"{state}{_borrowed_name(row)}",
    }


def states(host: PluginHost) -> dict[Row, str]:
    """Map each component to its state: the reason why it must not load, or whether it is active. Nothing is loaded."""
    acts: dict[Row, str] = {}
    for kind in ENABLED_KINDS:
        enabled = enabled_by(host, kind)
        acts |= dict.fromkeys(default_chain(host, kind, besides=enabled), "acts by default")
        acts |= dict.fromkeys(enabled, "enabled")
    idle = dict.fromkeys(ENABLED_KINDS, "not enabled")
    policy = host.policy
    return {
        row: policy.why_not(row) or state_of_source(row, host) or acts.get(row) or idle.get(row.kind, "ready")
        for row in policy.catalog.rows
    }


def state_of_source(row: Row, host: PluginHost) -> str:
    """Return the conditions under which a source is queried, or '' for other rows."""
    if not row.is_source:
        return ""
    if not row.is_installed:
        return "searched on every name lookup"
    is_enabled = f"{row.kind}.{row.address}" in host.settings.enabled
    return "enabled: searched if no other plugin has the name" if is_enabled else "searched only by full address"


def _borrowed_name(row: Row) -> str:
    """Return a note if another distribution uses the name of one of Jackfield's components, otherwise ''."""
    owner = known_distribution(row.kind, row.name)
    return f"; has the same name as a plugin of {owner}" if owner not in (None, row.distribution) else ""
