"""`jackfield plugins`: list, search, inspect and manage plugins."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jackfield.cli import (
    Parser,
    add_list_options,
    escape_line,
    print_json,
    print_rows,
    print_table,
    row_facts,
    state_of_source,
    states,
)
from jackfield.plugins import PluginHost, Row, known_components
from jackfield_manage.judging.activation import remarks
from jackfield_manage.names import find_rows, not_installed_error
from jackfield_manage.third_parties import third_parties


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield plugins …` and return its exit code."""
    options = parser().parse_args(arguments)
    if options.action not in _SILENT:
        from jackfield_manage.cli.news import tell_news

        tell_news()
    handler: Callable[[argparse.Namespace], int] = options.handler
    return handler(options)


# These change or explain what is installed or may load, so a question asked first could change their result.
_SILENT = ("install", "uninstall", "enable", "disable", "freeze", "sync", "why", "bisect")


def parser() -> Parser:
    """Return the argument parser of `jackfield plugins`."""
    from jackfield_manage.cli import installing, judging

    plugins_parser = Parser(prog="jackfield plugins", description="List, check, install and configure plugins.")
    plugins_parser.set_defaults(handler=list_plugins, action="list", long=False, json=False, kind=None)
    actions = plugins_parser.add_subparsers(dest="action", metavar="ACTION", parser_class=Parser)
    listing = actions.add_parser("list", help="list all plugins")
    listing.add_argument("--long", action="store_true", help="include descriptions")
    add_list_options(listing)
    listing.set_defaults(handler=list_plugins)
    about = actions.add_parser(
        "info", help="show all details of a package or component, which is loaded in a separate process"
    )
    about.add_argument("name", help="a package, kind.name, or a component's name")
    about.add_argument("--json", action="store_true", help="print JSON")
    about.set_defaults(handler=info)
    searching = actions.add_parser("search", help="search the known plugins, installed or not")
    searching.add_argument(
        "words", nargs="*", metavar="WORD", help="words that must all match; if omitted, all plugins are listed"
    )
    searching.add_argument("--json", action="store_true", help="print JSON")
    searching.set_defaults(handler=search)
    health = actions.add_parser("doctor", help="load each plugin in a separate process and report problems")
    health.add_argument("names", nargs="*", metavar="DISTRIBUTION", help="check only these packages")
    health.add_argument(
        "--deep", action="store_true", help="also import dependencies, and run each plugin's own checks of this machine"
    )
    health.add_argument(
        "--timeout", type=judging.seconds, metavar="S", help="time limit for each package, in seconds (default: 30)"
    )
    health.add_argument("--json", action="store_true", help="print JSON")
    health.set_defaults(handler=_doctor)
    for action, help_ in (
        ("enable", "allow plugins to load, and processors and observers to act"),
        ("disable", "stop processors and observers from acting, and other plugins from loading"),
    ):
        changing = actions.add_parser(action, help=help_)
        changing.add_argument("names", nargs="+", metavar="NAME", help="a package, kind.name, or package/name")
        changing.set_defaults(handler=_enable if action == "enable" else _disable)
    installing.add_commands(actions)
    judging.add_commands(actions)
    return plugins_parser


def _doctor(options: argparse.Namespace) -> int:
    from jackfield_manage.cli.doctor import doctor

    return doctor(options)


def _enable(options: argparse.Namespace) -> int:
    from jackfield_manage.cli.policy import enable

    return enable(PluginHost(), options.names)


def _disable(options: argparse.Namespace) -> int:
    from jackfield_manage.cli.policy import disable

    return disable(PluginHost(), options.names)


def list_plugins(options: argparse.Namespace) -> int:
    """Print all components without loading any; `--long` reads descriptions from the source code."""
    host = PluginHost()
    rows = [
        {**facts, "summary": _summary(row, host)} if options.long else facts
        for row, facts in row_facts(host, options.kind)
    ]
    print_rows(host, rows, options.kind, as_json=options.json)
    return 0


def _summary(row: Row, host: PluginHost) -> str:
    from jackfield_manage.judging.source import described_in_source

    described = described_in_source(row, host.paths)
    summary = described.values.get("summary") if described else None
    return summary if isinstance(summary, str) else "(unknown until loaded; see plugins info)"


# --- info ---


def info(options: argparse.Namespace) -> int:
    """Print all details of the components with a given name."""
    host = PluginHost()
    rows = find_rows(options.name, host.catalog)
    if not rows:
        raise not_installed_error(options.name, host.catalog)
    results = _probe(rows, host)
    facts = [_component_facts(row, host, results.get(row.distribution, {})) for row in rows]
    if options.json:
        print_json(facts)
        return 0
    for component in facts:
        print(escape_line(f"{component['id']}  ({component['distribution']} {component['version']})"))
        for key in list(component)[3:]:
            if component[key] not in ("", [], {}, None):
                for line in _fact_lines(key, component[key]):
                    print(escape_line(f"  {line}"))
    return 0


def _probe(rows: list[Row], host: PluginHost) -> dict[str, Mapping[str, object]]:
    """Load the components' distributions in separate processes, where a crash or hang does no harm."""
    from jackfield_manage.judging.processes import probe_in_interpreter

    loadable = dict.fromkeys(row.distribution for row in rows if not host.policy.why_not(row))
    return {distribution: probe_in_interpreter(host, distribution, "--configs") for distribution in loadable}


def _component_facts(row: Row, host: PluginHost, result: Mapping[str, Any]) -> dict[str, object]:
    identity = {"id": row.id, "distribution": row.distribution, "version": row.version}
    return {**identity, **_state_facts(row, host, result), **_distribution_facts(row)}


def _state_facts(row: Row, host: PluginHost, result: Mapping[str, Any]) -> dict[str, object]:
    """Return a component's state, and its descriptor if it may load."""
    reason = host.policy.why_not(row)
    if reason:
        return {"state": reason}
    if row.is_source and not result["errors"]:
        return {"state": state_of_source(row, host), "offers": [] if row.is_installed else list(result["specs"])}
    if row.id in result["specs"]:
        return {**_spec_facts(row, host, result["specs"][row.id]), "settings": result["configs"].get(row.id, {})}
    # An error that names the distribution comes first.
    errors = sorted(result["errors"], key=lambda error: row.distribution not in error)
    return {"state": "broken", "why": errors[0] if errors else ""}


def _spec_facts(row: Row, host: PluginHost, spec: Mapping[str, Any]) -> dict[str, object]:
    facts = {
        "state": states(host)[row],
        "remarks": remarks(row, host),
        "address": row.address,
        "class": spec["target"],
        "secrets": [f"{name} ({'set' if host.settings.secret(name) else 'not set'})" for name in spec["secrets"]],
    }
    return facts | {key: value for key, value in spec.items() if key not in ("name", "target", "secrets")}


def _distribution_facts(row: Row) -> dict[str, object]:
    if not row.is_installed:
        return {"location": row.location}
    from jackfield_manage.distributions import read_distribution
    from jackfield_manage.judging.conformance import read_conformance

    distribution, conformance = read_distribution(row.location), read_conformance(row)
    facts: dict[str, object] = {"licence": "", "needs": "unknown, because METADATA cannot be read"}
    if distribution:
        facts = {"licence": distribution.licence, "needs": list(distribution.requires)}
    return {**facts, "conformance": conformance.sentence() if conformance else "", "location": row.location}


def _fact_lines(key: str, value: Any) -> list[str]:
    """Format a value as lines of text; a JSON Schema gets one line per property."""
    from jackfield.jsontext import dumps
    from jackfield.plugins import in_language

    match key, value:
        case "parameters" | "settings", {"properties": dict()}:
            return [f"{key}:", *(f"  {line}" for line in _property_lines(value))]
        case "description", dict():
            value = in_language(value, "en")
        case _, list() if all(isinstance(entry, str) for entry in value):
            value = ", ".join(value)
    return [f"{key}: {value if isinstance(value, str) else dumps(value)}"]


def _property_lines(schema: Mapping[str, Any]) -> Iterator[str]:
    from jackfield.jsontext import dumps

    for name, property_schema in schema["properties"].items():
        facts = property_schema if isinstance(property_schema, dict) else {}
        alternatives = [facts, *facts.get("anyOf", ())]
        types = [str(entry["type"]) for entry in alternatives if isinstance(entry, dict) and "type" in entry]
        line = " or ".join(types) or "any"
        if "default" in facts:
            line += f" = {dumps(facts['default'])}"
        if name in schema.get("required", ()):
            line += ", required"
        description = facts.get("description")
        yield f"{name} ({line}): {description}" if description else f"{name} ({line})"


# --- search ---


def search(options: argparse.Namespace) -> int:
    """Print matching known components and how to install them; return 1 if there are none."""
    words = " ".join(options.words)
    rows = _known_rows(words)
    if options.json:
        print_json(rows)
    elif rows:
        _print_known(rows)
    else:
        print(f"No known plugin matches {words!r}. The package index may have others, named jackfield-NAME.")
    return int(not rows)


def _known_rows(words: str) -> list[dict[str, str]]:
    installed = {row.distribution for row in PluginHost().catalog.rows}
    ours = [
        {
            "name": component,
            "distribution": known.distribution,
            "state": "installed" if known.distribution in installed else "",
            "summary": known.summary,
        }
        for component, known in known_components().items()
        if _matches(words, component, known.distribution, known.summary)
    ]
    others = [
        {
            "name": component,
            "distribution": listed.distribution,
            "state": f"{'installed, ' if listed.distribution in installed else ''}third party, {listed.mark}",
            "summary": listed.summary,
        }
        for listed in third_parties()
        for component in listed.components
        if _matches(words, component, listed.distribution, listed.summary)
    ]
    return ours + others


def _print_known(rows: Sequence[Mapping[str, str]]) -> None:
    print_table(["name", "distribution", "", "summary"], [list(row.values()) for row in rows])
    missing = sorted({row["distribution"] for row in rows if not row["state"]})
    if missing:
        print(f"To install, run: jackfield plugins install {' '.join(missing)}")
    if any("third party" in row["state"] for row in rows):
        print("We have not reviewed third-party packages: check their source code before installing them.")


def _matches(words: str, component: str, distribution: str, summary: str) -> bool:
    """Return True if every word occurs in the component's name, distribution or summary."""
    text = f"{component} {distribution} {summary}".lower()
    return all(word in text for word in words.lower().split())
