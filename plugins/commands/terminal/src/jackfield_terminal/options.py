"""The options of `jackfield run` and `chat`, and the agent that they describe."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jackfield.cli import Parser

if TYPE_CHECKING:
    from jackfield.agents import Agent
    from jackfield_documents import Expanded

MODEL_VARIABLE = "JACKFIELD_MODEL"
OUTPUT = "jackfield-output"
"""Where files are saved without `--output`."""
STORE = "sqlite"
"""The store of runs, where one is needed and none is named."""

_RUN_EPILOG = """examples:
  jackfield run -m openai:NAME "What is 2**100?" -t code_interpreter
  cat error.log | jackfield run -m openai:NAME "What went wrong?"
  jackfield run -m openai:NAME -f docs -f '*.pdf' "What do they say about costs?"
  jackfield run -m openai:NAME -a picture.png "What is this?"
"""


def run_parser() -> Parser:
    """What `jackfield run` takes."""
    parser = Parser(prog="jackfield run", description="Ask an agent one thing.", epilog=_RUN_EPILOG)
    parser.add_argument(
        "prompt", nargs="?", help="what to ask; piped input is added to it, and - means the piped input alone"
    )
    _add_agent_options(parser)
    _add_output_options(parser)
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print one JSON object at the end, and nothing else")
    shown.add_argument("--events", action="store_true", help="print every event as a line of JSON, as it happens")
    parser.add_argument("--save", metavar="FILE", help="write the conversation to this file, to continue it later")
    parser.add_argument("--resume", metavar="FILE", help="continue a saved conversation, instead of passing a prompt")
    parser.add_argument("--store", metavar="NAME", help=f"record the run in a store ({STORE}), see jackfield runs")
    answer = parser.add_mutually_exclusive_group()
    answer.add_argument("--approve", action="store_true", help="with --resume: allow the waiting calls")
    answer.add_argument("--refuse", action="store_true", help="with --resume: refuse the waiting calls")
    parser.add_argument(
        "--again", action="store_true", help="with --resume: resume a file once more; its calls may be made twice"
    )
    return parser


def chat_parser() -> Parser:
    """What `jackfield chat` takes."""
    parser = Parser(prog="jackfield chat", description="Talk with an agent; /help lists the commands of the chat.")
    _add_agent_options(parser)
    _add_output_options(parser)
    earlier = parser.add_mutually_exclusive_group()
    earlier.add_argument("--resume", metavar="FILE", help="continue a conversation that was written by /save")
    earlier.add_argument(
        "--session", metavar="NAME", help="keep the conversation by this name, and continue it if it exists"
    )
    earlier.add_argument(
        "--continue", dest="go_on", action="store_true", help="continue the session that was used last"
    )
    parser.add_argument("--store", metavar="NAME", help=f"the store of sessions ({STORE})")
    return parser


def add_run_options(parser: Parser, *, agent: bool = True) -> None:
    """The options of an agent and its output, for another command that runs one."""
    if agent:
        _add_agent_options(parser)
        parser.set_defaults(attach=[])
    _add_output_options(parser)


_OF_AN_AGENT = (
    "config", "model", "base_url", "agent", "tool", "file", "index", "system", "max_turns", "ask", "allow", "forbid",
    "lang", "output",
)  # fmt: skip


def typed_again(options: argparse.Namespace) -> str:
    """The options of an agent as somebody types them for another command that goes on with its run."""
    words: list[str] = []
    for name in _OF_AN_AGENT:
        given = getattr(options, name)
        for value in given if isinstance(given, list) else {given} - {None}:
            words += [f"--{name.replace('_', '-')}", str(value)]
    words += ["--trust"] * options.trust
    words += ["--store", options.store] if options.store not in (None, STORE) else []
    return shlex.join(words)


def parsers() -> dict[str, Parser]:
    """Both, by the name of the command."""
    return {"run": run_parser(), "chat": chat_parser()}


def _add_agent_options(parser: Parser) -> None:
    parser.add_argument("-c", "--config", metavar="FILE", help="a YAML, TOML or JSON file that describes the agent")
    parser.add_argument(
        "--trust", action="store_true", help="let FILE and a saved run do what they ask for, this time and unasked"
    )
    parser.add_argument("-m", "--model", help="backend:model; or set JACKFIELD_MODEL")
    parser.add_argument("--base-url", help="the address of the model's server")
    parser.add_argument("--agent", help="the kind of agent; assistant if there are files, else fncall")
    parser.add_argument("-t", "--tool", action="append", default=[], help="a tool it may call; repeat for more")
    parser.add_argument(
        "-f",
        "--file",
        action="append",
        default=[],
        help="a document, folder or glob that the agent can use; repeat for more",
    )
    parser.add_argument(
        "--index",
        action="append",
        default=[],
        metavar="NAME",
        help="an index of documents, see jackfield index; repeat for more",
    )
    parser.add_argument(
        "-a",
        "--attach",
        metavar="FILE",
        action="append",
        default=[],
        help="a picture, sound or file to attach, as a path or URL (- for piped input); repeat for more",
    )
    parser.add_argument("-s", "--system", help="the system message")
    parser.add_argument("--max-turns", type=int, help="how often the model may be asked (20)")
    parser.add_argument(
        "--ask",
        choices=("marked", "ask", "read_only"),
        help="which calls need approval: those of tools that say so, all, or all but those of tools that only read",
    )
    parser.add_argument(
        "--allow",
        metavar="NAME",
        action="append",
        default=[],
        help="a tool that is called without asking, or a pattern (search_*); all others need approval; repeat for more",
    )
    parser.add_argument(
        "--forbid",
        choices=("files", "network", "processes"),
        action="append",
        default=[],
        help="refuse calls of tools with this effect; repeat for more",
    )
    parser.add_argument("--lang", choices=("en", "zh"), help="language of the texts that the agent adds")


def _add_output_options(parser: Parser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="DIR", help=f"the folder for pictures and files that code makes ({OUTPUT})"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print only the answer, files and warnings")
    parser.add_argument("--plain", action="store_true", help="show the answer as the model wrote it")


def agent_of(options: argparse.Namespace) -> tuple[Agent, Expanded]:
    """The agent of the configuration file, if there is one, with what the command line says over it.

    Returns:
        The agent, and the documents of `--file` and `--index`, with what was left out of them.

    Raises:
        ConfigError: The file or an option cannot be followed.
    """
    # Here, because neither help nor a wrong option needs an agent.
    from jackfield import create_agent
    from jackfield.defaults import AGENT_WITH_FILES
    from jackfield.plugins import default_host
    from jackfield_documents import why_nothing_reads
    from jackfield_terminal.given import documents_of

    wanted = [*options.file, *map("index:{}".format, options.index)]
    given = {"agent": AGENT_WITH_FILES if wanted else "fncall", **_from_file(options.config, trust=options.trust)}
    given |= _named(options, has_model="llm" in given)
    # A tool knows best what it reads.
    documents = documents_of(wanted, why_nothing_reads(default_host()) if given["agent"] == AGENT_WITH_FILES else None)
    more = {"function_list": options.tool, "files": documents.files}
    given |= {name: (*given.get(name, ()), *more[name]) for name in filter(more.get, more)}
    return create_agent(given | _said(options, given)), documents


def _named(options: argparse.Namespace, *, has_model: bool) -> dict[str, Any]:
    """The kind of agent and the model that options name; a model must be named somewhere."""
    named = {"agent": options.agent} if options.agent else {}
    if options.model or options.base_url or not has_model:
        named["llm"] = _model_config(options.model or os.environ.get(MODEL_VARIABLE), options.base_url)
    return named


def _from_file(path: str | None, *, trust: bool) -> dict[str, Any]:
    """What the file of an agent says, and nothing that it leaves out; nothing if there is no file."""
    from jackfield.cli import with_consent
    from jackfield_agent_files.files import load_agent_config

    if not path:
        return {}
    config = with_consent(lambda: load_agent_config(path, trust=trust))
    _check_files(Path(path), config.files)
    return {key: getattr(config, key) for key in config.model_fields_set}


def _said(options: argparse.Namespace, given: Mapping[str, Any]) -> dict[str, Any]:
    """What options put in the place of what the file says."""
    from jackfield import Limits
    from jackfield.errors import ConfigError

    if options.ask and options.allow:
        raise ConfigError("--ask and --allow are two rules for the same calls: leave one of them out")
    limits = {**Limits.parse(given.get("limits")).model_dump(), "turns": options.max_turns}
    said = {
        "system_message": options.system,
        "approve": {"allow": options.allow} if options.allow else options.ask,
        "forbid": options.forbid or None,
        "store": _store_of(options, given),
        "limits": None if options.max_turns is None else limits,
    }
    return {key: value for key, value in said.items() if value is not None}


def _store_of(options: argparse.Namespace, given: Mapping[str, Any]) -> str | None:
    """The store that is named; the one that is only the default does not take the place of the file's."""
    store: str | None = getattr(options, "store", None) or None
    return None if store == STORE and given.get("store") else store


def _check_files(agent_file: Path, files: Sequence[str]) -> None:
    """Raise ConfigError if a file that an agent's file names is not there."""
    from jackfield.errors import ConfigError
    from jackfield_documents import expand

    missing = expand(files).missing
    if missing:
        path = Path(missing[0])
        raise ConfigError(f"{agent_file} names the file {path.name!r}, which is not in {path.resolve().parent}")


def _model_config(model: str | None, base_url: str | None) -> dict[str, Any] | str:
    from jackfield.defaults import FIRST_BACKEND
    from jackfield.errors import ConfigError
    from jackfield.plugins import default_host

    if not model:
        backends: Sequence[str] = default_host().names("llm")
        listed = ", ".join(backends) or f"none; try pip install {FIRST_BACKEND}"
        raise ConfigError(
            f"which model? Pass --model backend:model, or set {MODEL_VARIABLE}. Installed backends: {listed}"
        )
    if not base_url:
        return model
    backend, colon, name = model.partition(":")
    chosen = {"model_type": backend, "model": name} if colon else {"model": model}
    return {**chosen, "base_url": base_url}
