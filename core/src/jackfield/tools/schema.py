"""JSON Schema for tools: is it one, and do arguments fit it. Draft 2020-12."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jackfield.errors import ConfigError, ToolArgumentError, ToolServiceError

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def check_tool_name(name: str) -> None:
    """Raise ConfigError unless every provider takes this name for a tool."""
    if not _TOOL_NAME.match(name):
        raise ConfigError(f"{name!r} is no name for a tool: use 1 to 64 letters, digits, '_' and '-'")


def check_tool_schema(name: str, schema: Mapping[str, Any]) -> None:
    """Raise ConfigError unless this is a JSON Schema of an object."""
    from jsonschema import Draft202012Validator, SchemaError

    if schema.get("type") != "object":
        raise ConfigError(f"the parameters of tool {name!r} must be a JSON Schema of type 'object'")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ConfigError(f"the parameters of tool {name!r} are no JSON Schema: {error.message}") from error
    missing = set(schema.get("required", ())) - set(schema.get("properties", {}))
    if missing:
        raise ConfigError(f"tool {name!r} requires {sorted(missing)[0]!r}, which is not among its properties")


class ArgumentChecker:
    """Checks arguments against one schema. Making one costs as much as forty checks: keep it."""

    def __init__(self, name: str, schema: Mapping[str, Any]) -> None:
        self.schema = schema
        self._name = name
        self._validator: Draft202012Validator | None = None

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Raise ToolArgumentError unless the arguments fit; the text names the misfits, for the model to correct."""
        if not self.schema.get("properties") and not arguments:
            return
        if self._validator is None:
            from jsonschema import Draft202012Validator
            from referencing import Registry

            # An empty registry: without one, a reference in a schema is fetched from wherever it points to.
            self._validator = Draft202012Validator(self.schema, registry=Registry())
        misfits = sorted(self._misfits(arguments), key=lambda error: list(map(str, error.path)))
        if misfits:
            told = "; ".join(_sentence(error) for error in misfits[:5])
            raise ToolArgumentError(f"the arguments of {self._name!r} do not fit: {told}")

    def _misfits(self, arguments: Mapping[str, Any]) -> list[ValidationError]:
        from referencing.exceptions import Unresolvable

        assert self._validator is not None  # noqa: S101 - made by check()
        try:
            return list(self._validator.iter_errors(dict(arguments)))
        except Unresolvable as error:
            raise ToolServiceError(
                f"{self._name!r} cannot be called: its schema refers to {error.ref!r}, which is not in it"
            ) from error


def _sentence(error: Any) -> str:
    where = ".".join(str(part) for part in error.path)
    message = str(error.message)
    short = message if len(message) <= 300 else message[:300] + "…"
    return f"{where}: {short}" if where else short
