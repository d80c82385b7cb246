"""Define the options of `jackfield index`, and derive the settings for reading and searching."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence

from jackfield.cli import Parser, with_consent
from jackfield.errors import ConfigError
from jackfield_agent_files.files import load_agent_config
from jackfield_documents import RAGConfig

Action = Callable[[argparse.Namespace], int]
"""Runs a command and returns its exit code."""

_EXAMPLES = """\
examples:
  jackfield index build notes ~/notes "papers/**/*.pdf"
  jackfield index build notes                     # update the index
  jackfield index build notes --type hybrid --embedding-model openai:text-embedding-3-small
  jackfield index watch notes                     # until Ctrl-C
  jackfield index search notes how are invoices paid
  jackfield index search notes --where 'year>=2023' --where 'path=reports/*' invoices
  jackfield index set notes team=sales --where 'path=reports/*'

An assistant uses an index like a file: files=["index:notes"].
NAME consists of letters, digits, '.', '-' and '_', or is a path with a slash.
"""
_CONDITION = re.compile(r"(?P<key>[^=<>!]+)(?P<operator>!=|>=|<=|=|>|<)(?P<value>.+)", re.DOTALL)
_OPERATORS = {"!=": "not", ">=": "gte", ">": "gt", "<=": "lte", "<": "lt"}
_VECTORS = "vector_search"
_SET_BY_SEARCHERS = ("retrieval_type", "embedding_model", "embedder_settings", "index_path")
_SEARCHER_JSON = """'{"name": "vector_search", "embedding_model": "openai:text-embedding-3-small"}'"""


def make_parser(
    *,
    build: Action,
    add: Action,
    remove: Action,
    set_values: Action,
    watch: Action,
    list_all: Action,
    info: Action,
    search: Action,
) -> Parser:
    """Return the argument parser; each command stores its action as `work`."""
    parser = Parser(
        prog="jackfield index",
        description="Keep documents in an index on disk and search it. Only changed files are read again.",
        epilog=_EXAMPLES,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    files = "files, folders, URLs and patterns"
    building = _add_command(commands, "build", "build an index of files, or update it if FILES are omitted", build)
    building.add_argument("files", nargs="*", metavar="FILES", help=f"{files}, such as 'docs/**/*.md'")
    building.add_argument(
        "--chunk-size", type=_at_least(1), metavar="N", help="size of a chunk in tokens (default for a new index: 500)"
    )
    building.add_argument(
        "--chunk-overlap",
        type=_at_least(0),
        metavar="N",
        help="characters that a chunk repeats from the previous one (default for a new index: 150)",
    )
    _add_search_options(building, "type of search to prepare for")
    _add_reading_options(building)
    adding = _add_command(commands, "add", "add files and update the others", add)
    adding.add_argument("files", nargs="+", metavar="FILES", help=files)
    _add_reading_options(adding)
    removing = _add_command(commands, "remove", "remove files and update the others", remove)
    removing.add_argument("files", nargs="*", metavar="FILES", help=files)
    _add_where(removing, "also remove documents that match")
    _add_reading_options(removing)
    setting = _add_command(commands, "set", "set values of documents for use in search filters", set_values)
    setting.add_argument("values", nargs="+", metavar="KEY=VALUE", help="values, such as year=2024 or team=sales")
    _add_where(setting, "set the values only on documents that match (default: all)")
    watching = _add_command(commands, "watch", "keep an index up to date while files change, until Ctrl-C", watch)
    watching.add_argument("files", nargs="*", metavar="FILES", help=f"{files} to index first")
    watching.add_argument(
        "--interval", type=_seconds, default=2.0, metavar="SECONDS", help="pause between checks in seconds (default: 2)"
    )
    _add_reading_options(watching)
    _add_command(commands, "list", "list all indexes", list_all, takes_name=False)
    _add_command(commands, "info", "show the contents of an index", info)
    searching = _add_command(commands, "search", "search an index", search)
    searching.add_argument("query", nargs="+", metavar="QUERY", help="a question, or keywords")
    _add_where(searching, "search only documents that match")
    searching.add_argument("--limit", type=_at_least(1), default=10, metavar="N", help="maximum hits (default: 10)")
    _add_search_options(searching, "type of search (default: as the index was built)")
    _add_reading_options(searching)
    return parser


def _add_command(
    commands: argparse._SubParsersAction[Parser], name: str, text: str, work: Action, *, takes_name: bool = True
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False)
    parser.set_defaults(work=work, agent=None, searcher=(), type=None, embedding_model=None)
    if takes_name:
        parser.add_argument("name", metavar="NAME", help="a name, or a path with a slash")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_where(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="CONDITION",
        help=f"{text}: year=2024, year>=2023, author!=Ada, path='reports/*'; can be repeated",
    )


def _add_search_options(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--type", choices=("keyword", "vector", "hybrid"), help=text)
    parser.add_argument(
        "--searcher",
        action="append",
        default=[],
        metavar="NAME",
        help="a searcher, or JSON with its 'name' and settings; can be repeated",
    )
    parser.add_argument(
        "--embedding-model", metavar="MODEL", help="model for vectors, such as openai:text-embedding-3-small"
    )


def _add_reading_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--agent", metavar="FILE", help="an agent file whose rag_cfg sets parsers, searchers and chunk sizes"
    )
    parser.add_argument(
        "--trust", action="store_true", help="allow everything that the agent file and the index ask for"
    )


def _at_least(minimum: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}") from None
        if value < minimum:
            raise argparse.ArgumentTypeError(f"must be at least {minimum}, got {value}")
        return value

    return number


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number of seconds, such as 0.5, got {text!r}") from None
    if not 0.1 <= value <= 86_400:
        raise argparse.ArgumentTypeError(f"must be between 0.1 and 86400, got {text}")
    return value


# --- filters ---


def read_where(conditions: Sequence[str]) -> dict[str, object] | None:
    """Return the filter from `--where`, or None without conditions. Several values for a key are alternatives.

    Raises:
        ConfigError: A condition is invalid.
    """
    equal: dict[str, list[object]] = {}
    others: dict[str, dict[str, object]] = {}
    for condition in conditions:
        match = _CONDITION.fullmatch(condition)
        if match is None:
            raise ConfigError(f"--where: invalid condition {condition!r}; use KEY=VALUE, KEY!=VALUE or KEY>=VALUE")
        key, operator, value = match["key"].strip(), match["operator"], read_value(match["value"])
        if operator == "=":
            equal.setdefault(key, []).append(value)
            continue
        bounds = others.setdefault(key, {})
        if _OPERATORS[operator] in bounds:
            raise ConfigError(f"--where: {key}{operator} was specified twice; remove one")
        bounds[_OPERATORS[operator]] = value
    if both := equal.keys() & others.keys():
        raise ConfigError(f"--where: {min(both)} has both '=' and another condition; remove one")
    return {**equal, **others} or None


def read_values(texts: Sequence[str]) -> dict[str, object]:
    """Parse `KEY=VALUE` pairs.

    Raises:
        ConfigError: A text contains no `=`.
    """
    values: dict[str, object] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"{text!r} must have the form KEY=VALUE, such as year=2024")
        values[key.strip()] = read_value(value)
    return values


def read_value(text: str) -> object:
    """Parse a number, true, false or a quoted string as JSON; return any other text unchanged."""
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, str | int | float) else text


# --- settings ---


def read_config(options: argparse.Namespace) -> RAGConfig:
    """Return the agent file's `rag_cfg`, overridden by the options.

    Raises:
        ConfigError: An option or the agent file is invalid.
    """
    rag_cfg = None
    if options.agent:
        rag_cfg = with_consent(lambda: load_agent_config(options.agent, trust=options.trust, params=None)).rag_cfg
    config = RAGConfig.parse(rag_cfg)
    settings = {key: getattr(config, key) for key in config.model_fields_set}
    searchers = _parse_searchers(options)
    if searchers:
        settings = {key: value for key, value in settings.items() if key not in _SET_BY_SEARCHERS}
        settings["rag_searchers"] = searchers
    if options.type:
        settings["retrieval_type"] = options.type
    if options.embedding_model and not searchers:
        settings["embedding_model"] = options.embedding_model
    return RAGConfig.parse(settings)


def _parse_searchers(options: argparse.Namespace) -> list[dict[str, object]]:
    """Return the searchers given by the options.

    Raises:
        ConfigError: A searcher is invalid, or there is an embedding model but no vector search.
    """
    model = options.embedding_model
    searchers = [_parse_searcher(text) for text in options.searcher]
    uses_vectors = False
    for searcher in searchers:
        if searcher["name"] == _VECTORS:
            uses_vectors = True
            if model:
                searcher["embedding_model"] = model
    if model and searchers and not options.type and not uses_vectors:
        raise ConfigError(
            "--embedding-model requires vector search: add --searcher vector_search, or remove --searcher"
        )
    return searchers


def _parse_searcher(text: str) -> dict[str, object]:
    if not text.lstrip().startswith("{"):
        return {"name": text}
    try:
        searcher = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"--searcher: invalid JSON ({error}): pass a name, or {_SEARCHER_JSON}") from error
    if not isinstance(searcher, dict) or not isinstance(searcher.get("name"), str):
        raise ConfigError(f"--searcher: missing 'name': pass a name, or {_SEARCHER_JSON}")
    return searcher


def chosen_searchers(config: RAGConfig) -> dict[str, dict[str, object]] | None:
    """Return the searchers chosen by the user, or None to leave the choice to the index."""
    return config.searchers if {"rag_searchers", "retrieval_type", "rerank"} & config.model_fields_set else None


def chosen_number(config: RAGConfig, setting: str, option: int | None) -> int | None:
    """Return the option or else the setting, or None to leave the number to the index."""
    if option is not None or setting not in config.model_fields_set:
        return option
    return int(getattr(config, setting))
