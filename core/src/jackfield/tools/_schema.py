"""Validate the JSON Schemas of tools (draft 2020-12), and validate arguments against these schemas."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from jackfield.errors import ConfigError, ToolArgumentError, ToolServiceError
from jackfield.jsonschemas import SchemaChecker, UncheckableError, fault_of_schema

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def check_tool_name(name: str) -> None:
    """Raise ConfigError unless every provider accepts `name` as a tool name."""
    if not isinstance(name, str):
        raise ConfigError(f"a tool's name must be a string, got {type(name).__name__}")
    if not _TOOL_NAME.match(name):
        raise ConfigError(f"{name!r} is not a valid tool name: use 1 to 64 ASCII letters, digits, '_' and '-'")


def tool_name_for(label: str, *, prefix: str = "") -> str:
    """Derive a valid tool name from an agent's name. The result is deterministic.

    If the prefix and the label form a valid name, that name is used. Otherwise, invalid characters become `_`, and a
    hash keeps the names of different labels distinct.
    """
    name = f"{prefix}{label}"
    if _TOOL_NAME.match(name):
        return name
    digest = hashlib.sha256(label.encode(errors="replace")).hexdigest()[:8]
    words = re.sub(r"[^A-Za-z0-9-]+", "_", label).strip("_") or "agent"
    return f"{prefix}{words}"[:55] + f"_{digest}"


def object_schema(name: str, parameters: object) -> Mapping[str, object]:
    """Return parameters as an object's JSON Schema. Lists in Qwen-Agent's format are converted.

    Raises:
        ConfigError: The parameters are neither a schema nor a list in Qwen-Agent's format.
    """
    if isinstance(parameters, Mapping):
        return parameters
    if not isinstance(parameters, list | tuple):
        raise ConfigError(f"the parameters of tool {name!r} must be a JSON Schema of type 'object', or a list")
    from jackfield.tools._parameters import schema_of_list  # lists of parameters are rare

    return schema_of_list(name, parameters)


def check_tool_schema(name: str, schema: Mapping[str, Any], *, ignore_patterns: bool = False) -> None:
    """Raise ConfigError unless `schema` is an object's JSON Schema.

    Args:
        name: The tool's name, for error messages.
        schema: The schema.
        ignore_patterns: True to accept any pattern, because the tool matches patterns itself.
    """
    if schema.get("type") != "object":
        raise ConfigError(f"the parameters of tool {name!r} must be a JSON Schema of type 'object'")
    if fault := fault_of_schema(schema, ignore_patterns=ignore_patterns):
        raise ConfigError(f"the parameters of tool {name!r} are not a valid JSON Schema: {fault}")
    missing = set(schema.get("required", ())) - set(schema.get("properties", {}))
    if missing:
        raise ConfigError(f"tool {name!r} requires {sorted(missing)[0]!r}, which is not among its properties")


class ArgumentChecker:
    """Validates arguments against a schema. Creating a checker costs as much as forty checks, so reuse it."""

    def __init__(self, name: str, schema: Mapping[str, object]) -> None:
        self.schema = schema
        self._name = name
        self._checker = SchemaChecker(schema)

    def check(self, arguments: Mapping[str, object]) -> None:
        """Raise ToolArgumentError if the arguments do not match. The message lists what the model must correct."""
        if not self.schema.get("properties") and not arguments:
            return
        try:
            misfits = self._checker.misfits(dict(arguments))
        except UncheckableError as error:
            raise ToolServiceError(f"{self._name!r} cannot be called: {error}") from error
        if misfits:
            raise ToolArgumentError(f"invalid arguments for {self._name!r}: {'; '.join(misfits)}")
