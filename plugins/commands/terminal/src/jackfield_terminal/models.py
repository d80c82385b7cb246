"""`jackfield models`: list servers' models, and set the default model and aliases."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jackfield import sync
from jackfield.cli import Parser, escape_line, print_json, print_table
from jackfield.errors import ConfigError, JackfieldError
from jackfield.plugins import default_host
from jackfield.suggestions import suggest
from jackfield_terminal.model_names import load_names, lock_names, remember_models, save_names

if TYPE_CHECKING:  # only `list` needs models
    from jackfield.models import ListsModels

_TIMEOUT_S = 20.0  # per server; servers are queried concurrently


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield models …` and return its exit code."""
    options = models_parser().parse_args(arguments)
    if options.action == "default":
        return _default(options)
    if options.action == "alias":
        return _alias(options)
    return _list(options)


def models_parser() -> Parser:
    """Return the argument parser of `jackfield models`."""
    parser = Parser(prog="jackfield models", description="List models, and choose a default model and aliases.")
    parser.set_defaults(model=None, json=False)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", parser_class=Parser)
    listing = actions.add_parser("list", help="ask the servers of the installed backends for their models")
    listing.add_argument("-m", "--model", metavar="BACKEND", help="ask only the server of this backend")
    listing.add_argument("--json", action="store_true", help="print JSON")
    default = actions.add_parser("default", help="show, set or remove the model for commands that specify none")
    default.add_argument("name", metavar="NAME", nargs="?", help="backend:model, or an alias")
    default.add_argument("--remove", action="store_true", help="remove the default model")
    alias = actions.add_parser("alias", help="list, set or remove short names of models")
    alias.add_argument("name", metavar="NAME", nargs="?", help="the short name")
    alias.add_argument("target", metavar="MODEL", nargs="?", help="backend:model")
    alias.add_argument("--remove", action="store_true", help="remove the short name")
    return parser


def _default(options: argparse.Namespace) -> int:
    if options.remove:
        return _remove_default(options.name)
    names = load_names()
    if options.name:
        _require_backend(names.resolve(options.name))
        with lock_names() as names:
            save_names(replace(names, default=options.name))
        print(f"The default model is {escape_line(options.name)}.")
    elif names.default:
        print(escape_line(names.default))
    else:
        print("There is no default model. To set one, run: jackfield models default BACKEND:MODEL")
    return 0


def _alias(options: argparse.Namespace) -> int:
    if options.remove:
        return _remove_alias(options.name)
    names = load_names()
    if not options.name:
        print_table(["alias", "model"], [list(row) for row in sorted(names.aliases.items())])
        if not names.aliases:
            print("There are no aliases. To set one, run: jackfield models alias NAME BACKEND:MODEL")
        return 0
    if not options.target:
        if options.name not in names.aliases:
            raise ConfigError(f"no alias named {options.name!r}{suggest(options.name, names.aliases)}")
        print(escape_line(names.aliases[options.name]))
        return 0
    if ":" in options.name or options.name in default_host().names("llm"):
        raise ConfigError(f"{options.name!r} is already the name of a model or backend: choose another name")
    model = names.resolve(options.target)
    _require_backend(model)
    with lock_names() as names:
        save_names(replace(names, aliases={**names.aliases, options.name: model}))
    print(f"{escape_line(options.name)} is {escape_line(model)}.")
    return 0


def _require_backend(model: str) -> None:
    """Refuse a name that no command could use, without loading the backend or contacting its server.

    Raises:
        ConfigError: The backend or the model is missing from the name.
        PluginError: The backend is not installed, or must not be loaded.
    """
    from jackfield.models import backend_of
    from jackfield.plugins import LLMSpec

    host = default_host()
    backend = backend_of(model, host.names("llm"))
    row = host.find("llm", backend)
    if model.rstrip(": ") == backend and len(host.spec_of(row, LLMSpec).models) != 1:
        raise ConfigError(f"no model specified for {backend}: use {backend}:MODEL")


def _remove_default(name: str | None) -> int:
    with lock_names() as names:
        if not names.default:
            raise ConfigError("no default model is set")
        if name not in (None, names.default):
            raise ConfigError(
                f"the default model is {names.default!r}, not {name!r}: to remove the default, omit the name"
            )
        save_names(replace(names, default=""))
    print(f"{escape_line(names.default)} is no longer the default model.")
    return 0


def _remove_alias(name: str | None) -> int:
    if name is None:
        raise ConfigError("specify the alias to remove; to list all aliases, run: jackfield models alias")
    with lock_names() as names:
        if name not in names.aliases:
            raise ConfigError(f"no alias named {name!r}{suggest(name, names.aliases)}")
        save_names(replace(names, aliases={alias: model for alias, model in names.aliases.items() if alias != name}))
    print(f"Removed {escape_line(name)}.")
    if name == names.default:
        sys.stderr.write(
            f"! the default model is still {escape_line(name)}, which no longer "
            "refers to a model: set another one, or run "
            "jackfield models default --remove\n"
        )
    return 0


def _list(options: argparse.Namespace) -> int:
    """Print the models of every backend that can list them, even if some backends fail."""
    backends = [options.model.partition(":")[0]] if options.model else default_host().names("llm")
    listers: dict[str, ListsModels] = {}
    errors: dict[str, str] = {}
    for backend in backends:
        try:
            lister = _make_lister(backend)
        except JackfieldError as error:
            errors[backend] = str(error)
            continue
        if lister is not None:
            listers[backend] = lister
        elif options.model:
            errors[backend] = "it cannot list its models"
    models: list[str] = []
    for backend, answer in sync.run(_ask_all(listers)).items():
        if isinstance(answer, JackfieldError):
            errors[backend] = str(answer)
        else:
            models += [f"{backend}:{name}" for name in answer]
    remember_models(models)
    if options.json:
        print_json({"models": models, "errors": errors})
    else:
        for name in models:
            print(escape_line(name))
        sys.stderr.writelines(f"! {escape_line(backend)}: {escape_line(text)}\n" for backend, text in errors.items())
    return 0 if models or not errors else 1


def _make_lister(backend: str) -> ListsModels | None:
    """Return a model that can query the backend's server, or None if the backend cannot list models."""
    from jackfield.models import ListsModels, get_chat_model

    # The model needs a name, which is not sent.
    config = {"model_type": backend, "model": "unnamed", "generate_cfg": {"request_timeout": _TIMEOUT_S}}
    model = get_chat_model(config, processors=())
    return model if isinstance(model, ListsModels) else None


async def _ask_all(listers: Mapping[str, ListsModels]) -> dict[str, list[str] | JackfieldError]:
    """Query all servers concurrently."""

    async def ask(lister: ListsModels) -> list[str] | JackfieldError:
        try:
            return await lister.alist_models()
        except JackfieldError as error:
            return error
        finally:
            if isinstance(lister, BaseChatModel):
                await lister.aclose()

    from jackfield.models import BaseChatModel

    answers = await asyncio.gather(*(ask(lister) for lister in listers.values()))
    return dict(zip(listers, answers, strict=True))
