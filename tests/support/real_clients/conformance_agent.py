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
def test_embedded_resource() -> list[ContentItem]:
    """Return a file."""
    return [ContentItem(file="data:text/plain;name=resource.txt,This is an embedded resource content.")]


@tool
def test_multiple_content_types() -> list[ContentItem]:
    """Return a text, an image and a file."""
    file = "data:application/json;name=mixed.json,%7B%22test%22%3A%22data%22%2C%22value%22%3A123%7D"
    return [
        ContentItem(text="Multiple content types test:"),
        ContentItem(image=f"data:image/png;base64,{_PIXEL}"),
        ContentItem(file=file),
    ]


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


async def _ask_for(fields: Mapping[str, Any], context: ToolContext) -> str:
    form = {"type": "object", "properties": dict(fields), "required": []}
    return f"Elicitation completed: {await context.ask({'message': 'Please fill this in.', 'form': form})}"


@tool
async def test_elicitation_sep1034_defaults(context: ToolContext) -> str:
    """Ask for values that have defaults."""
    fields = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return await _ask_for(fields, context)


@tool
async def test_elicitation_sep1330_enums(context: ToolContext) -> str:
    """Ask for choices in all forms of the protocol."""
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]
    legacy = ["opt1", "opt2", "opt3"]
    fields = {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": legacy, "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return await _ask_for(fields, context)


_NAME = {"name": {"type": "string"}}


@tool
async def test_input_required_result_elicitation(context: ToolContext) -> str:
    """Ask for a name."""
    return await _ask_for(_NAME, context)


@tool
async def test_input_required_result_request_state(context: ToolContext) -> str:
    """Ask for a confirmation."""
    return await _ask_for({"ok": {"type": "boolean"}}, context)


@tool
async def test_input_required_result_tampered_state(context: ToolContext) -> str:
    """Ask for a confirmation, whose state the suite changes."""
    return await _ask_for({"ok": {"type": "boolean"}}, context)


@tool
async def test_input_required_result_multi_round(context: ToolContext) -> str:
    """Ask for a name, and then for a color."""
    return f"{await _ask_for(_NAME, context)} {await _ask_for({'color': {'type': 'string'}}, context)}"


@tool
async def test_streaming_elicitation(context: ToolContext) -> str:
    """Ask after a report of progress."""
    context.report("half")
    return await _ask_for(_NAME, context)


@tool
def test_logging_tool() -> str:
    """Log nothing to the client."""
    return "done"


class TestSchema(BaseTool):
    """A tool with a schema of the draft 2020-12."""

    name = "json_schema_2020_12_tool"
    description = "Tool with JSON Schema 2020-12 features"
    parameters: Mapping[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    }

    def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> str:
        """Return nothing."""
        return ""


class TestHeader(BaseTool):
    """A tool with an argument that clients repeat in a header."""

    name = "test_custom_header"
    description = "Tool with an argument in a header"
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "required": ["region"],
    }

    def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> str:
        """Return the argument."""
        return str(params)


TOOLS = [
    TestHeader(),
    *(test_simple_text, test_image_content, test_audio_content, test_error_handling),
    *(test_embedded_resource, test_multiple_content_types),
    *(test_tool_with_progress, test_elicitation, TestSchema()),
    *(test_elicitation_sep1034_defaults, test_elicitation_sep1330_enums),
    *(test_input_required_result_elicitation, test_input_required_result_request_state),
    *(test_input_required_result_tampered_state, test_input_required_result_multi_round),
    *(test_streaming_elicitation, test_logging_tool),
]
agent = FnCallAgent(
    TOOLS, llm=ScriptedModel([answer("Hello.")]), name="agent", description="Says hello.", suggestions=["Hi."]
)
