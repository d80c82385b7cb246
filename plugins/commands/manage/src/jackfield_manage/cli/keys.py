"""`jackfield keys`: store API keys, list their names, and remove them. Keys are never shown or passed as arguments."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence

from jackfield.cli import Parser, print_json, print_table
from jackfield.descriptors import ComponentSpec
from jackfield.errors import ConfigError
from jackfield.hookspecs import KINDS
from jackfield.plugins import PluginHost, default_host
from jackfield.settings import config_path, keys_path
from jackfield.storedkeys import StoredKeys
from jackfield.suggestions import suggest

_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield keys …` and return its exit code."""
    options = parser().parse_args(arguments)
    try:
        if options.action == "set":
            return _set(options)
        if options.action == "remove":
            return _remove(options)
        return _list(options)
    except OSError as error:
        raise ConfigError(f"{keys_path()} cannot be written: {error.strerror or error}") from error


def parser() -> Parser:
    """Return the argument parser of `jackfield keys`."""
    keys_parser = Parser(
        prog="jackfield keys",
        description="Store API keys in the system keyring if it works, or otherwise in a file that only you can read.",
    )
    actions = keys_parser.add_subparsers(dest="action", metavar="ACTION", parser_class=Parser)
    setting = actions.add_parser("set", help="store a key, entered without echo or read from standard input")
    removing = actions.add_parser("remove", help="remove a stored key")
    for action in (setting, removing):
        action.add_argument("name", metavar="NAME", help="a backend or tool (openai), or a variable (OPENAI_API_KEY)")
    listing = actions.add_parser("list", help="list the names of the stored keys, and where each is stored")
    listing.add_argument("--json", action="store_true", help="print JSON")
    keys_parser.set_defaults(json=False)
    return keys_parser


def _set(options: argparse.Namespace) -> int:
    variable = variable_of(options.name, default_host())
    key = _read_key(variable)
    place, problem = StoredKeys(keys_path()).set(variable, key)
    if place == "keyring":
        print(f"Stored {variable} in the system keyring.")
    else:
        print(f"Stored {variable} unencrypted in {keys_path()}, readable only by you, because {problem}.")
    if os.environ.get(variable):
        print(f"The environment variable {variable} is also set, and takes precedence over the stored key.")
    return 0


def _remove(options: argparse.Namespace) -> int:
    stored = StoredKeys(keys_path())
    names = stored.places()
    variable = options.name if options.name in names else variable_of(options.name, default_host())
    if not stored.remove(variable):
        hint = suggest(variable, names) if names else ""
        stop = "" if hint.endswith("?") else "."
        raise ConfigError(f"no key named {variable} is stored{hint}{stop} To list all keys, run: jackfield keys list")
    print(f"Removed {variable}.")
    return 0


def _list(options: argparse.Namespace) -> int:
    rows = [
        {"name": name, "place": place, "overridden": bool(os.environ.get(name))}
        for name, place in sorted(StoredKeys(keys_path()).places().items())
    ]
    if options.json:
        print_json({"keys": rows})
    elif rows:
        remarks = ["overridden by the environment variable" if row["overridden"] else "" for row in rows]
        lines = [[str(row["name"]), str(row["place"]), text] for row, text in zip(rows, remarks, strict=True)]
        print_table(["name", "stored in", ""], lines)
    else:
        print("No keys are stored. To store a key, run: jackfield keys set NAME, for example jackfield keys set openai")
        print(f"Keys can also be set as environment variables, or under [secrets] in {config_path()}.")
    return 0


def variable_of(name: str, host: PluginHost) -> str:
    """Return the environment variable of a key, given the variable itself or the name of a component.

    Raises:
        ConfigError: No installed component has this name, or the component reads no key or several ambiguous ones.
    """
    if _VARIABLE.fullmatch(name):
        return name
    specs = {
        row: host.spec_of(row, ComponentSpec)
        for kind in KINDS
        for row in host.policy.rows(kind)
        if row.name == name and not host.policy.why_not(row)
    }
    variables = list(dict.fromkeys(variable for spec in specs.values() for variable in spec.secrets))
    own = [variable for variable in variables if variable.startswith(f"{name.upper()}_")]
    if len(own or variables) == 1 or name.upper() + "_API_KEY" in own:
        return f"{name.upper()}_API_KEY" if f"{name.upper()}_API_KEY" in own else (own or variables)[0]
    if variables:
        raise ConfigError(f"{name} uses more than one key: specify one of {', '.join(variables)} instead")
    if specs:
        raise ConfigError(
            f"{name} does not use a key; to store another key, specify its environment variable, such as OPENAI_API_KEY"
        )
    hint = suggest(name, host.names("llm"))
    raise ConfigError(
        f"component {name!r} is not installed{hint if hint.endswith('?') else f'{hint}.'} "
        "To store a key anyway, specify its environment variable, as in: jackfield keys set OPENAI_API_KEY"
    )


def _read_key(variable: str) -> str:
    """Read a key from the terminal without echo, or else from standard input.

    Raises:
        ConfigError: There is no key, or the key has several lines or characters that are not printable ASCII.
    """
    if sys.stdin.isatty():
        from getpass import getpass

        try:
            key = getpass(f"{variable}: ").strip()
        except EOFError:
            key = ""
    else:
        key = sys.stdin.read().strip()
    if not key:
        raise ConfigError(
            f"no key was entered, so nothing was stored. In a script, use: jackfield keys set {variable} < FILE"
        )
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(
            "the key contains line breaks or other characters that are not allowed in HTTP headers: copy it again"
        )
    return key
