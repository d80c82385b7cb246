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
        description="Store API keys, in the system keyring if one works, else in a file that only you can read.",
    )
    actions = keys_parser.add_subparsers(dest="action", metavar="ACTION", parser_class=Parser)
    setting = actions.add_parser("set", help="store a key, which is read without echo or from standard input")
    removing = actions.add_parser("remove", help="remove a stored key")
    for action in (setting, removing):
        action.add_argument("name", metavar="NAME", help="a backend or tool (openai), or a variable (OPENAI_API_KEY)")
    listing = actions.add_parser("list", help="list the names of the stored keys, and where each is")
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
        print(f"Stored {variable} in {keys_path()}, unencrypted, for your user only: {problem}.")
    if os.environ.get(variable):
        print(f"The environment variable {variable} is set as well, and wins over the stored key.")
    return 0


def _remove(options: argparse.Namespace) -> int:
    stored = StoredKeys(keys_path())
    names = stored.places()
    variable = options.name if options.name in names else variable_of(options.name, default_host())
    if not stored.remove(variable):
        hint = suggest(variable, names) if names else ""
        stop = "" if hint.endswith("?") else "."
        raise ConfigError(f"no key {variable} is stored{hint}{stop} To see all: jackfield keys list")
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
        remarks = ["the environment variable is set, and wins" if row["overridden"] else "" for row in rows]
        lines = [[str(row["name"]), str(row["place"]), text] for row, text in zip(rows, remarks, strict=True)]
        print_table(["name", "stored in", ""], lines)
    else:
        print("No keys are stored. To store one: jackfield keys set NAME, as in jackfield keys set openai")
        print(f"Keys can also be environment variables, or be under [secrets] in {config_path()}.")
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
        raise ConfigError(f"{name} reads several keys: write one of {', '.join(variables)} instead of {name!r}")
    if specs:
        raise ConfigError(f"{name} reads no key; write the variable if it is meant for another: OPENAI_API_KEY")
    hint = suggest(name, host.names("llm"))
    raise ConfigError(
        f"no component {name!r} is installed{hint if hint.endswith('?') else f'{hint}.'} "
        "To store a key anyway, write its variable: jackfield keys set OPENAI_API_KEY"
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
            f"no key was entered, so nothing is stored. From a script: jackfield keys set {variable} < FILE"
        )
    if not (key.isascii() and key.isprintable()):
        raise ConfigError("the key has several lines or characters that no HTTP header can carry: copy it again")
    return key
