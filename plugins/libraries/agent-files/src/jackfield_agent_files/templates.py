"""Fill variables such as `{{ topic }}` in the texts of agent files that a model reads.

A variable is a plain name, never an expression, and its value is text. No other settings may contain variables, so a
value cannot change the file's structure or choose a path, a program or a server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jackfield.agents import is_agent
from jackfield.errors import ConfigError
from jackfield.suggestions import suggest

INPUT = "input"
"""The variable in `prompt` that stands for the command line's question."""
DEFAULTS = "params"
"""The key under which a file gives its variables' default values."""

OF_AGENTS = ("", "handoffs", "options", "agents")
"""The keys whose tables are agent settings even without an `agent` key. '' is the file itself."""

_VARIABLE = re.compile(r"\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*\}\}")
_TEXTS = ("system_message", "prompt", "description")


def fill_variables(table: Mapping[str, Any], params: Mapping[str, str], *, file: str) -> dict[str, Any]:
    """Return an agent file's settings with every variable replaced by its value.

    Args:
        table: The settings, with default values under `params`.
        params: The values, which override the defaults.
        file: The file's name, for errors.

    Raises:
        ConfigError: A variable has no value, or a value has no variable.
    """
    settings = {key: value for key, value in table.items() if key != DEFAULTS}
    defaults = _read_defaults(table, file)
    names = _variables_in(settings)
    for name in [*params, *defaults]:
        if name not in names:
            known = suggest(name, names) if names else ""
            raise ConfigError(f"{file} has no variable {name!r}{known}")
    values = {**defaults, **params}
    missing = [name for name in names if name not in values]
    if missing:
        listed = ", ".join(repr(name) for name in missing)
        options = " ".join(f"-p {name}=…" for name in missing)
        raise ConfigError(f"no value for {listed} in {file}: pass {options}, or add a default under `params`")
    filled: dict[str, Any] = _fill(settings, values)
    return filled


def fill_input(prompt: str, text: str) -> str:
    """Return an agent file's `prompt` with the question in place of `{{ input }}`, or at the end without one."""
    if any(match[1] == INPUT for match in _VARIABLE.finditer(prompt)):
        return _VARIABLE.sub(lambda match: text if match[1] == INPUT else match[0], prompt).strip()
    return f"{prompt}\n\n{text}" if text else prompt


def _read_defaults(table: Mapping[str, Any], file: str) -> dict[str, str]:
    defaults = table.get(DEFAULTS) or {}
    if not isinstance(defaults, dict) or not all(isinstance(value, str | int | float) for value in defaults.values()):
        raise ConfigError(f"{file}: `params` must be a table of default values, each a string or a number")
    return {str(name): str(value) for name, value in defaults.items()}


def _variables_in(value: Any, key: str = "") -> list[str]:
    """Return the names of the variables used by an agent and its nested agents, in order and without duplicates."""
    names: list[str] = []
    if isinstance(value, str) and key in _TEXTS:
        found = (match[1] for match in _VARIABLE.finditer(value))
        names = [name for name in found if not (key == "prompt" and name == INPUT)]
    elif isinstance(value, Mapping) and (key in OF_AGENTS or is_agent(value)):
        names = [name for inner, entry in value.items() for name in _variables_in(entry, inner)]
    elif isinstance(value, list):
        names = [name for entry in value for name in _variables_in(entry, key)]
    return list(dict.fromkeys(names))


def _fill(value: Any, values: Mapping[str, str], key: str = "") -> Any:
    if isinstance(value, str) and key in _TEXTS:
        return _VARIABLE.sub(lambda match: values.get(match[1], match[0]), value)
    if isinstance(value, Mapping) and (key in OF_AGENTS or is_agent(value)):
        return {inner: _fill(entry, values, inner) for inner, entry in value.items()}
    if isinstance(value, list):
        return [_fill(entry, values, key) for entry in value]
    return value
