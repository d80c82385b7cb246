"""The tools that the server scenarios of the MCP conformance suite call."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from jackfield import FnCallAgent, ToolContext, tool
from jackfield.messages import ContentItem
from jackfield.testing import ScriptedModel, answer
from jackfield.tools import BaseTool

_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_SOUND = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="


@tool
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@tool
def test_image_content() -> list[ContentItem]:
    """Return an image."""
    return [ContentItem(image=f"data:image/png;base64,{_PIXEL}")]


@tool
def test_audio_content() -> list[ContentItem]:
    """Return a sound."""
    return [ContentItem(audio=f"data:audio/wav;base64,{_SOUND}")]


@tool
def test_error_handling() -> str:
    """Fail."""
    raise ValueError("This tool intentionally returns an error for testing")


@tool
def test_tool_with_progress(context: ToolContext) -> str:
    """Report progress."""
    for percent in (0, 50, 100):
        context.report(f"{percent} of 100")
        time.sleep(0.05)
    return "done"


@tool
async def test_elicitation(message: str, context: ToolContext) -> str:
    """Ask the user for a name and an address."""
    fields = {name: {"type": "string", "description": name} for name in ("username", "email")}
    form = {"type": "object", "properties": fields, "required": [*fields]}
    return f"User response: {await context.ask({'message': message, 'form': form})}"


class TestSchema(BaseTool):
    """A tool with a schema of the draft 2020-12."""

    name = "json_schema_2020_12_tool"
    description = "Tool with JSON Schema 2020-12 features"
    parameters: Mapping[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}
        },
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
        "additionalProperties": False,
    }

    def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> str:
        """Return nothing."""
        return ""


TOOLS = [
    *(test_simple_text, test_image_content, test_audio_content, test_error_handling),
    *(test_tool_with_progress, test_elicitation, TestSchema()),
]
agent = FnCallAgent(TOOLS, llm=ScriptedModel([answer("Hello.")]), name="agent", description="Says hello.")
