"""`jackfield plugins`: what is installed, whether it works, and what may load."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from jackfield.cli import (
    Parser,
    add_list_options,
    print_json,
    print_rows,
    print_table,
    printable,
    row_facts,
    state_of_source,
    states,
)
from jackfield.plugins import Known, PluginHost, Row, known_components
from jackfield_manage.judging.activation import remarks
from jackfield_manage.names import not_installed, rows_named


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield plugins …`, and return its exit code."""
    options = parser().parse_args(arguments)
    if options.action not in _SILENT:
        from jackfield_manage.cli.news import tell_news

        tell_news()
    handler: Callable[[argparse.Namespace], int] = options.handler
    return handler(options)


# These say or change what is there and what may load: a question in between would get into what they find.
_SILENT = ("install", "uninstall", "enable", "disable", "freeze", "sync", "why", "bisect")


def parser() -> Parser:
    """What `jackfield plugins` takes."""
    from jackfield_manage.cli import installing, judging

    made = Parser(prog="jackfield plugins", description="What is installed, whether it works, and what may load.")
    made.set_defaults(handler=list_plugins, action="list", long=False, json=False, kind=None)
    actions = made.add_subparsers(dest="action", metavar="ACTION", parser_class=Parser)
    listing = actions.add_parser("list", help="all plugins")
    listing.add_argument("--long", action="store_true", help="with a description of each")
    add_list_options(listing)
    listing.set_defaults(handler=list_plugins)
    about = actions.add_parser(
        "info", help="show everything about one package or component; loads it, in a separate process"
    )
    about.add_argument("name", help="a package, kind.name, or a component's name")
    about.add_argument("--json", action="store_true", help="as JSON")
    about.set_defaults(handler=info)
    searching = actions.add_parser("search", help="search the known plugins, installed or not")
    searching.add_argument(
        "words", nargs="*", metavar="WORD", help="words that must all occur; without any, everything is shown"
    )
    searching.add_argument("--json", action="store_true", help="as JSON")
    searching.set_defaults(handler=search)
    health = actions.add_parser("doctor", help="load each plugin in a separate process, and report what is wrong")
    health.add_argument("names", nargs="*", metavar="DISTRIBUTION", help="check only these")
    health.add_argument(
        "--deep", action="store_true", help="also import everything they need, and let them check the machine"
    )
    health.add_argument(
        "--timeout", type=judging.seconds, metavar="S", help="time limit for each package, in seconds (30)"
    )
    health.add_argument("--json", action="store_true", help="as JSON")
    health.set_defaults(handler=_doctor)
    for action, help_ in (
        ("enable", "allow it to load, and switch processors and observers on"),
        ("disable", "switch processors and observers off, and keep others from loading"),
    ):
        changing = actions.add_parser(action, help=help_)
        changing.add_argument("names", nargs="+", metavar="NAME", help="a package, kind.name, or package/name")
        changing.set_defaults(handler=_enable if action == "enable" else _disable)
    installing.add_commands(actions)
    judging.add_commands(actions)
    return made


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
    """Print every component. Nothing is loaded: what `--long` adds is read from the source."""
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
    return summary if isinstance(summary, str) else "(not known without loading it: see plugins info)"


# --- info ---


def info(options: argparse.Namespace) -> int:
    """Print all about a distribution, or about the components of a name."""
    host = PluginHost()
    rows = rows_named(options.name, host.catalog)
    if not rows:
        raise not_installed(options.name, host.catalog)
    answers = _answers(rows, host)
    facts = [_component_facts(row, host, answers.get(row.distribution, {})) for row in rows]
    if options.json:
        print_json(facts)
        return 0
    for line in chain.from_iterable(map(_lines_about, facts)):
        print(printable(line))
    return 0


def _lines_about(facts: Mapping[str, Any]) -> Iterator[str]:
    yield f"{facts['id']}  ({facts['distribution']} {facts['version']})"
    for key in list(facts)[3:]:
        if facts[key] not in ("", [], {}, None):
            yield from map("  {}".format, _lines(key, facts[key]))


def _answers(rows: list[Row], host: PluginHost) -> dict[str, Mapping[str, object]]:
    """What the distributions say when they are loaded apart: one that crashes or hangs costs this process nothing."""
    from jackfield_manage.judging.processes import probe_apart

    loadable = dict.fromkeys(row.distribution for row in rows if not host.policy.why_not(row))
    return {distribution: probe_apart(host, distribution, "--configs") for distribution in loadable}


def _component_facts(row: Row, host: PluginHost, answer: Mapping[str, Any]) -> dict[str, object]:
    named = {"id": row.id, "distribution": row.distribution, "version": row.version}
    return {**named, **_state_facts(row, host, answer), **_distribution_facts(row)}


def _state_facts(row: Row, host: PluginHost, answer: Mapping[str, Any]) -> dict[str, object]:
    """Whether it may load, and what it says then."""
    reason = host.policy.why_not(row)
    if reason:
        return {"state": reason}
    if row.is_source and not answer["errors"]:
        return {"state": state_of_source(row, host), "offers": [] if row.is_installed else list(answer["specs"])}
    if row.id in answer["specs"]:
        return {**_described(row, host, answer["specs"][row.id]), "settings": answer["configs"].get(row.id, {})}
    # The first that is about this one, if any is.
    errors = sorted(answer["errors"], key=lambda error: row.distribution not in error)
    return {"state": "broken", "why": "".join(errors[:1])}


def _described(row: Row, host: PluginHost, spec: Mapping[str, Any]) -> dict[str, object]:
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

    found, conformance = read_distribution(row.location), read_conformance(row)
    facts: dict[str, object] = {"licence": "", "needs": "its METADATA cannot be read"}
    if found:
        facts = {"licence": found.licence, "needs": list(found.requires)}
    return {**facts, "conformance": conformance.sentence() if conformance else "", "location": row.location}


def _lines(key: str, value: Any) -> list[str]:
    """A fact as lines for people; what is a JSON Schema, as a line for each property."""
    from jackfield.jsontext import dumps
    from jackfield.plugins import in_language

    match key, value:
        case "parameters" | "settings", {"properties": dict()}:
            return [f"{key}:", *map("  {}".format, _of_properties(value))]
        case "description", dict():
            value = in_language(value, "en")
        case _, list() if all(isinstance(entry, str) for entry in value):
            value = ", ".join(value)
    return [f"{key}: {value if isinstance(value, str) else dumps(value)}"]


def _of_properties(schema: Mapping[str, Any]) -> Iterator[str]:
    from jackfield.jsontext import dumps

    for name, about in schema["properties"].items():
        facts = about if isinstance(about, dict) else {}
        default = f" = {dumps(facts.get('default'))}" * ("default" in facts)
        needed = ", required" * (name in schema.get("required", ()))
        text = f": {facts.get('description')}" * bool(facts.get("description"))
        yield f"{name} ({' or '.join(_types(facts)) or 'any'}{default}{needed}){text}"


def _types(facts: Mapping[str, Any]) -> Iterator[str]:
    """The types that a JSON Schema allows, as far as it names them."""
    for kind in (facts, *facts.get("anyOf", ())):
        if isinstance(kind, dict) and "type" in kind:
            yield str(kind["type"])


# --- search ---


def search(options: argparse.Namespace) -> int:
    """Print the known components that fit, with what installs them; 1 if none does."""
    words = " ".join(options.words)
    rows = _known_rows(words)
    if options.json:
        print_json(rows)
    elif rows:
        _print_known(rows)
    else:
        print(f"No known plugin matches {words!r}. Others may be in the package index: jackfield-NAME")
    return int(not rows)


def _known_rows(words: str) -> list[dict[str, str]]:
    here = {row.distribution for row in PluginHost().catalog.rows}
    return [
        {
            "name": component,
            "distribution": known.distribution,
            "state": "installed" * (known.distribution in here),
            "summary": known.summary,
        }
        for component, known in known_components().items()
        if _fits(words, component, known)
    ]


def _print_known(rows: Sequence[Mapping[str, str]]) -> None:
    print_table(["name", "distribution", "", "summary"], [list(row.values()) for row in rows])
    lacking = sorted({row["distribution"] for row in rows if not row["state"]})
    if lacking:
        print(f"To install: jackfield plugins install {' '.join(lacking)}")


def _fits(words: str, component: str, known: Known) -> bool:
    """Whether each of the words stands in the name, the distribution or the summary of a component."""
    text = f"{component} {known.distribution} {known.summary}".lower()
    return all(word in text for word in words.lower().split())
