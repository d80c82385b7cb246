"""Parse the parts of requests that both APIs share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jackfield.messages import Message
from jackfield_openai_server.errors import ParameterError, refuse_parameter

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_TOOL_KEYS = frozenset({"name", "description", "parameters", "strict", "type"})


@dataclass(frozen=True, kw_only=True)
class Question:
    """A request, independent of the API.

    Attributes:
        agent: The name of the agent, which clients see as a model.
        messages: The messages.
        config: Generation options for the model.
        client_tools: The tools that the client runs, as function schemas.
        output: The answer's JSON Schema, or None for text.
        user: The client's identifier for its user, or ''.
    """

    agent: str
    messages: Sequence[Message]
    config: Mapping[str, Any] = field(default_factory=dict)
    client_tools: Sequence[Mapping[str, Any]] = ()
    output: Mapping[str, Any] | None = None
    user: str = ""


def read_tool(function: object, param: str, kind: object) -> dict[str, Any]:
    """Convert a client's tool to a function schema.

    Raises:
        ParameterError: The tool is not a valid function.
    """
    if kind != "function":
        refuse_parameter(f"{param}.type", "only tools of type 'function' are supported; the agent has its own tools")
    if not isinstance(function, dict):
        raise ParameterError(f"Missing required parameter: '{param}.function'.", param=f"{param}.function")
    if unknown := function.keys() - _TOOL_KEYS:
        where = f"{param}.{min(unknown)}"
        raise ParameterError(f"Unknown parameter: {where!r}.", param=where, code="unknown_parameter")
    name, parameters = function.get("name"), function.get("parameters")
    if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
        raise ParameterError(
            f"{param}.name must consist of 1 to 64 letters, digits, underscores or hyphens.", param=f"{param}.name"
        )
    if parameters is not None and not isinstance(parameters, dict):
        raise ParameterError(f"{param}.parameters must be a JSON Schema.", param=f"{param}.parameters")
    description = function.get("description")
    if description is not None and not isinstance(description, str):
        raise ParameterError(f"{param}.description must be a string.", param=f"{param}.description")
    return {
        "name": name,
        "description": description or "",
        "parameters": parameters or {"type": "object", "properties": {}},
    }


def read_tool_choice(choice: object, tools: Sequence[Mapping[str, Any]]) -> str | None:
    """Convert a tool choice to the generation option, or None to leave the choice to the agent.

    Raises:
        ParameterError: The choice is invalid, or forces a call that the client would not see.
    """
    names = [tool["name"] for tool in tools]
    match choice:
        case None | "auto":
            return None
        case "none":
            return "none"
        case "required" if names:
            return "required"
        case {"type": "function", "name": str(name), **rest} if not rest:
            if name in names:
                return name
            raise ParameterError(f"tool_choice refers to {name[:60]!r}, which is not in tools.", param="tool_choice")
        case "required":
            refuse_parameter("tool_choice", "'required' needs at least one tool in tools")
        case {"type": "allowed_tools"}:
            refuse_parameter("tool_choice", "'allowed_tools' is not supported")
    raise ParameterError("Invalid value for 'tool_choice'.", param="tool_choice")
