"""Expand variables in server configurations: `${VAR}`, `${env:VAR}`, `${VAR:-default}`, `${input:id}` and folders."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jackfield.errors import ConfigError

_VARIABLE = re.compile(r"\$\{([^{}]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """Values for the variables in a configuration.

    Attributes:
        secret: Looks up an environment variable, returning None if it is not set.
        inputs: Values for `${input:id}`, by id.
        asked: The `inputs` entries of an `mcp.json`, for which other programs prompt the user. Only defaults and
            descriptions are used.
        folder: The value of `${workspaceFolder}`. Defaults to the current directory.
    """

    secret: Callable[[str], str | None] = os.environ.get
    inputs: Mapping[str, str] = field(default_factory=dict, repr=False)
    asked: Sequence[Mapping[str, Any]] = ()
    folder: Path | None = None

    def expand_variables(self, value: Any, where: str) -> Any:
        """Expand the variables in a value, including strings nested in lists and dicts.

        Raises:
            ConfigError: A variable has no value. The message names the variable and its location, but shows no values.
        """
        match value:
            case str():
                return _VARIABLE.sub(lambda match: self._value(match[1], where), value)
            case Mapping():
                return {key: self.expand_variables(entry, f"{where}.{key}") for key, entry in value.items()}
            case list() | tuple():
                return [self.expand_variables(entry, where) for entry in value]
        return value

    def _value(self, name: str, where: str) -> str:
        match name:
            case "userHome":
                return str(Path.home())
            case "workspaceFolder":
                return str(self.folder or Path.cwd())
            case "/" | "pathSeparator":
                return os.sep
        if name.startswith("input:"):
            return self._input(name.removeprefix("input:"), where)
        return self._variable(name.removeprefix("env:"), where)

    def _variable(self, name: str, where: str) -> str:
        variable, has_default, default = name.partition(":-")
        value = self.secret(variable)
        if not value and has_default:
            return default
        if value is None:
            raise ConfigError(
                f"{where}: the environment variable {variable!r} is not set. Set it, or add a default, as in "
                f"${{{variable}:-default}}"
            )
        return value

    def _input(self, name: str, where: str) -> str:
        if name in self.inputs:
            return self.inputs[name]
        entry = next((one for one in self.asked if one.get("id") == name), {})
        if isinstance(entry.get("default"), str):
            return str(entry["default"])
        meant = f" ({entry['description']})" if entry.get("description") else ""
        raise ConfigError(
            f"{where}: the input {name!r}{meant} has no value. Set it next to the servers, as in "
            f'"input_values": {{{name!r}: …}}'
        )
