"""Define the options of `jackfield run` and `chat`, and create the agent they describe."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jackfield.cli import Parser
from jackfield.defaults import STORE

if TYPE_CHECKING:
    from jackfield.agents import Agent
    from jackfield_documents import Expanded

MODEL_VARIABLE = "JACKFIELD_MODEL"
OUTPUT = "jackfield-output"
"""Default directory for `--output`."""
_RECORDS = f"""Runs are recorded in the store {STORE} if it is installed: in a file that only
you can read. jackfield runs lists, searches and deletes them. To record
nothing: --no-record, JACKFIELD_RECORD=0, or record = false in
jackfield/config.toml.
"""

_RUN_EPILOG = """examples:
  jackfield run -m openai:NAME "What is 2**100?" -t code_interpreter
  cat error.log | jackfield run -m openai:NAME "What went wrong?"
  jackfield run -m openai:NAME -f docs -f '*.pdf' "What about costs?"
  jackfield run -m openai:NAME -a picture.png "What is this?"
  jackfield run -c "And what is it worth?"
  jackfield run -m openai:NAME --schema 'name str, age int' "Invent a person."
  jackfield run -C explain.yaml -p topic=tides
"""


def run_parser() -> Parser:
    """Return the argument parser of `jackfield run`."""
    parser = Parser(prog="jackfield run", description="Ask an agent one question.", epilog=f"{_RUN_EPILOG}\n{_RECORDS}")
    parser.add_argument(
        "prompt", nargs="?", help="the question; piped input is appended to it, and - means piped input alone"
    )
    parser.add_argument(
        "-F",
        "--fragment",
        metavar="SOURCE",
        action="append",
        default=[],
        help="a file or URL whose whole text is put before the prompt; can be repeated",
    )
    add_schema_option(parser)
    _add_agent_options(parser)
    _add_output_options(parser)
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print one JSON object at the end, and nothing else")
    shown.add_argument("--events", action="store_true", help="print each event as a line of JSON as it happens")
    parser.add_argument("--save", metavar="FILE", help="save the conversation to this file, to continue it later")
    previous = parser.add_mutually_exclusive_group()
    previous.add_argument(
        "-c",
        "--continue",
        dest="continue_last",
        action="store_true",
        help="continue the last recorded run, with the same model unless -m is passed",
    )
    previous.add_argument("--resume", metavar="FILE", help="continue a saved conversation, instead of passing a prompt")
    _add_record_options(parser)
    answer = parser.add_mutually_exclusive_group()
    answer.add_argument("--approve", action="store_true", help="with --resume: allow the pending calls")
    answer.add_argument("--deny", action="store_true", help="with --resume: deny the pending calls")
    parser.add_argument(
        "--again", action="store_true", help="with --resume: resume a file again; its calls may run twice"
    )
    return parser


def chat_parser() -> Parser:
    """Return the argument parser of `jackfield chat`."""
    parser = Parser(
        prog="jackfield chat",
        description="Talk with an agent; /help lists the commands of the chat.",
        epilog=_RECORDS,
    )
    _add_agent_options(parser)
    _add_output_options(parser)
    previous = parser.add_mutually_exclusive_group()
    previous.add_argument("--resume", metavar="FILE", help="continue a conversation saved by /save")
    previous.add_argument(
        "--session", metavar="NAME", help="record the conversation under this name, and continue it if it exists"
    )
    previous.add_argument(
        "-c", "--continue", dest="continue_last", action="store_true", help="continue the last recorded chat"
    )
    _add_record_options(parser)
    return parser


def _add_record_options(parser: Parser) -> None:
    recording = parser.add_mutually_exclusive_group()
    recording.add_argument("--store", metavar="NAME", help=f"the store to record in ({STORE}), see jackfield runs")
    recording.add_argument("--no-record", action="store_true", help="do not record anything")


def add_schema_option(parser: Parser) -> None:
    """Add `--schema`."""
    parser.add_argument(
        "--schema",
        help="answer with JSON in this format: fields ('name str, age int'), a JSON Schema, or a file with one",
    )


def add_run_options(parser: Parser, *, agent: bool = True) -> None:
    """Add the options for an agent and its output to another command that runs one."""
    if agent:
        _add_agent_options(parser)
        parser.set_defaults(attach=[])
    _add_output_options(parser)


_AGENT_OPTIONS = (
    "config", "param", "model", "base_url", "option", "agent", "tool", "file", "index", "system", "max_turns", "ask",
    "allow", "forbid", "lang", "output",
)  # fmt: skip


def format_agent_options(options: argparse.Namespace) -> str:
    """Format the agent's options for a command line that continues its run."""
    words: list[str] = []
    for name in _AGENT_OPTIONS:
        chosen = getattr(options, name)
        values = chosen if isinstance(chosen, list) else [chosen]
        for value in values:
            if value is not None:
                option = f"--{name.replace('_', '-')}"
                # A value that starts with a dash would be parsed as an option.
                words += [f"{option}={value}"] if str(value).startswith("-") else [option, str(value)]
    if options.trust:
        words.append("--trust")
    if options.store not in (None, STORE):
        words += ["--store", options.store]
    return shlex.join(words)


def parsers() -> dict[str, Parser]:
    """Return the parsers, by command name."""
    return {"run": run_parser(), "chat": chat_parser()}


def _add_agent_options(parser: Parser) -> None:
    parser.add_argument("-C", "--config", metavar="FILE", help="an agent as a YAML, TOML or JSON file")
    parser.add_argument(
        "-p",
        "--param",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="the value of a variable {{ NAME }} in FILE; can be repeated",
    )
    parser.add_argument(
        "--trust", action="store_true", help="allow everything that FILE and a saved run request, this time only"
    )
    parser.add_argument("-m", "--model", help="backend:model; or set JACKFIELD_MODEL")
    parser.add_argument("--base-url", help="the URL of the model's server")
    parser.add_argument(
        "-o",
        "--option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an option of the model, such as temperature=0 or max_tokens=500; can be repeated",
    )
    parser.add_argument("--agent", help="the kind of agent (default: assistant if there are files, else fncall)")
    parser.add_argument(
        "-t", "--tool", action="append", default=[], help="a tool that the agent may call; can be repeated"
    )
    parser.add_argument(
        "-f",
        "--file",
        action="append",
        default=[],
        help="a document, folder, pattern or URL for the agent; can be repeated",
    )
    parser.add_argument(
        "--index",
        action="append",
        default=[],
        metavar="NAME",
        help="an index of documents, see jackfield index; can be repeated",
    )
    parser.add_argument(
        "-a",
        "--attach",
        metavar="FILE",
        action="append",
        default=[],
        help="an image, audio or other file to attach, as a path or URL (- for piped input); can be repeated",
    )
    parser.add_argument("-s", "--system", type=str, help='the system message; "" for none')
    parser.add_argument("--max-turns", type=int, help="maximum calls of the model (20)")
    parser.add_argument(
        "--ask",
        choices=("marked", "ask", "read_only"),
        help="calls that need approval: those of tools that ask for it, all, or all except those of read-only tools",
    )
    parser.add_argument(
        "--allow",
        metavar="NAME",
        action="append",
        default=[],
        help="a tool that needs no approval, or a pattern (search_*); all others need it; can be repeated",
    )
    parser.add_argument(
        "--forbid",
        choices=("files", "network", "processes"),
        action="append",
        default=[],
        help="reject calls to tools with this effect (the model itself may still have it); can be repeated",
    )
    parser.add_argument("--lang", choices=("en", "zh"), help="language of the text that the agent adds to prompts")


def _add_output_options(parser: Parser) -> None:
    parser.add_argument("--output", metavar="DIR", help=f"folder for images and files that tools create ({OUTPUT})")
    parser.add_argument("-q", "--quiet", action="store_true", help="print only the answer, files and warnings")
    parser.add_argument("--plain", action="store_true", help="do not render Markdown")


def read_agent_file(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings from the agent file, with its variables substituted; empty if there is no file.

    Raises:
        ConsentNeededError: The user has not agreed to the file's effects.
        ConfigError: The file cannot be read, or a variable has no value.
    """
    from jackfield.cli import with_consent
    from jackfield.errors import ConfigError
    from jackfield_agent_files.files import load_agent_config

    params = dict(_split_pair(text, "-p topic=tides") for text in options.param)
    if not options.config:
        if params:
            raise ConfigError("-p sets a variable in an agent file, so it requires --config FILE")
        return {}
    config = with_consent(lambda: load_agent_config(options.config, trust=options.trust, params=params))
    _check_files(Path(options.config), config.files)
    return {key: getattr(config, key) for key in config.model_fields_set}


def _split_pair(text: str, example: str) -> tuple[str, str]:
    from jackfield.errors import ConfigError

    name, equals, value = text.partition("=")
    if not (equals and name.strip()):
        raise ConfigError(f"expected NAME=VALUE, such as {example}, got {text!r}")
    return name.strip(), value


def create_agent_from(options: argparse.Namespace, settings: Mapping[str, Any] | None = None) -> tuple[Agent, Expanded]:
    """Create an agent from the agent file, if any, overridden by the options.

    Args:
        options: The command's options.
        settings: The file's settings, if `read_agent_file` has already been called.

    Returns:
        The agent, and the documents from `--file` and `--index` with the files skipped.

    Raises:
        ConfigError: The file or an option is invalid.
    """
    # Imported here, because neither --help nor an invalid option needs an agent.
    from jackfield import create_agent
    from jackfield.agents import NameAllMissing
    from jackfield.defaults import AGENT_WITH_FILES
    from jackfield.plugins import default_host
    from jackfield_documents import why_nothing_reads
    from jackfield_terminal.inputs import find_documents, why_not_sent
    from jackfield_terminal.recording import open_recording

    names = [*options.file, *(f"index:{name}" for name in options.index)]
    if settings is None:
        settings = read_agent_file(options)
    config = {"agent": AGENT_WITH_FILES if names else "fncall", **settings}
    if options.agent:
        config["agent"] = options.agent
    config["llm"] = _choose_model(options, config.get("llm"))
    if options.tool:
        config["function_list"] = (*config.get("function_list", ()), *options.tool)
    why_not_parsed = why_nothing_reads(default_host())
    if config["agent"] == AGENT_WITH_FILES:
        documents = find_documents(names, why_not_parsed)
    elif config.get("function_list"):
        documents = find_documents(names, None)  # a tool may read other formats than the installed parsers
    else:
        documents = find_documents(names, why_not_sent(why_not_parsed))
    if documents.files:
        config["files"] = (*config.get("files", ()), *documents.files)
        if config["agent"] == AGENT_WITH_FILES:
            config["rag_cfg"] = _allow_hosts(config.get("rag_cfg") or {}, options.file)
    config |= _overrides(options, config)
    # Without parsers, the configuration contains no documents.
    files = [*names, *config.get("files", ()), *options.attach]
    with NameAllMissing(config["agent"], {**config, "files": files}, default_host()):
        # Other commands have their own store.
        if hasattr(options, "no_record") and not config.get("store"):
            recording = None if options.no_record else open_recording(default_host())
            return create_agent(config, store=recording), documents
        return create_agent(config), documents


def _allow_hosts(rag_cfg: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return document settings that allow these URLs' hosts to be local or in a private network.

    The user typed the URLs, but redirects are still checked.
    """
    from urllib.parse import urlsplit

    from jackfield_documents import is_url

    hosts = [host for name in names if is_url(name) and (host := urlsplit(name).hostname)]
    if not hosts:
        return dict(rag_cfg)
    fetching = rag_cfg.get("fetch_cfg") or {}
    return {**rag_cfg, "fetch_cfg": {**fetching, "allow": [*fetching.get("allow", ()), *hosts]}}


def _check_files(agent_file: Path, files: Sequence[str]) -> None:
    """Raise ConfigError if a file named by the agent file does not exist."""
    from jackfield.errors import ConfigError
    from jackfield_documents import expand

    missing = expand(files).missing
    if missing:
        path = Path(missing[0])
        raise ConfigError(f"{agent_file} refers to the file {path.name!r}, which is not in {path.resolve().parent}")


def _choose_model(options: argparse.Namespace, of_file: str | Mapping[str, Any] | None) -> str | Mapping[str, Any]:
    """Return the model from the options, the agent file or the user's default, in this order."""
    if options.model or of_file is None:
        return _model_config(options.model or os.environ.get(MODEL_VARIABLE), options.base_url)
    if not options.base_url:
        return of_file
    if isinstance(of_file, str):
        return _model_config(of_file, options.base_url)
    return {**{name: value for name, value in of_file.items() if name != "api_base"}, "base_url": options.base_url}


def _model_config(model: str | None, base_url: str | None) -> dict[str, Any] | str:
    from jackfield.defaults import FIRST_BACKEND
    from jackfield.errors import ConfigError
    from jackfield.plugins import default_host
    from jackfield_terminal.model_names import load_names

    names = load_names()
    model = names.resolve(model or names.default)
    if not model:
        backends: Sequence[str] = default_host().names("llm")
        listed = ", ".join(backends) or f"none; try pip install {FIRST_BACKEND}"
        raise ConfigError(
            f"no model: pass --model backend:model, set {MODEL_VARIABLE}, or run: "
            f"jackfield models default backend:model. Installed backends: {listed}"
        )
    if not base_url:
        return model
    backend, colon, name = model.partition(":")
    settings = {"model_type": backend, "model": name} if colon else {"model": model}
    return {**settings, "base_url": base_url}


def _overrides(options: argparse.Namespace, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the agent settings that options override."""
    from jackfield import Limits
    from jackfield.errors import ConfigError
    from jackfield.plugins import default_host
    from jackfield_terminal.recording import configure_store

    if options.ask and options.allow:
        raise ConfigError("--ask and --allow cannot be combined: remove one of them")
    overrides: dict[str, Any] = {}
    if options.option:
        overrides["extra_generate_cfg"] = {**(config.get("extra_generate_cfg") or {}), **_model_options(options.option)}
    if options.system is not None:
        overrides["system_message"] = options.system
    if options.allow:
        overrides["approve"] = {"allow": options.allow}
    elif options.ask is not None:
        overrides["approve"] = options.ask
    if options.forbid:
        overrides["forbid"] = options.forbid
    if options.max_turns is not None:
        overrides["limits"] = {**Limits.parse(config.get("limits")).model_dump(), "turns": options.max_turns}
    if getattr(options, "no_record", False):
        overrides["store"] = None
    store = getattr(options, "store", None)
    # The option's default does not replace the file's store.
    if store and not (store == STORE and config.get("store")):
        overrides["store"] = configure_store(store, default_host())
    return overrides


def _model_options(texts: Sequence[str]) -> dict[str, Any]:
    """Parse the model's options. A value is parsed as JSON if possible, and is otherwise a string.

    Raises:
        ConfigError: An option is unknown or its value is invalid.
    """
    import json

    from jackfield.config import GenerateConfig

    options: dict[str, Any] = {}
    for text in texts:
        name, value = _split_pair(text, "-o temperature=0")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    GenerateConfig.parse(options, what="-o")
    return options
