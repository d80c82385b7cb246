"""Objects of several tests of tools: a tool that looks, a model of data, and an object without a text."""

from __future__ import annotations

from datetime import date
from typing import Any

from pydantic import BaseModel

from jackfield import BaseTool, ToolContext


class Looks(BaseTool):
    name = "look"
    description = {"en": "Looks.", "zh": "看。"}  # noqa: RUF012
    parameters: Any = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}  # noqa: RUF012

    def call(self, params: Any, *, context: ToolContext[Any] | None = None) -> str:
        return str(params)


class Point(BaseModel):
    x: int
    day: date


class Silent:
    """An object without a text of its own."""
