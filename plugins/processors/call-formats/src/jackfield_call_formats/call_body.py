"""Read what stands inside one `<tool_call>`: JSON as it should be, JSON as models write it, or Qwen3-Coder's XML.

Every function here is pure, and none raises on any text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jackfield.jsontext import dumps, loads_lenient
from jackfield.request import FunctionSchema

NAME_WITHIN = 256
"""A name that is to be shown early stands in this many characters of the body."""

_EARLY_NAME = re.compile(
    r"\s*(?:```\w*\s*)?\{\s*\"name\"\s*:\s*\"(?P<json>[^\"\\]*)\""
    r"|\s*<function=(?P<xml>[^<>]*)>"
)
_ANY_NAME = re.compile(r"""["']name["']\s*:\s*["']([^"'\n]+)["']""")
_ARGUMENTS = re.compile(r"""["'](?:arguments|parameters)["']\s*:\s*""")
_XML_FUNCTION = re.compile(r"<function=([^<>]*)>(.*?)(?:</function>|\Z)", re.DOTALL)
_XML_PARAMETER = re.compile(r"<parameter=([^<>]*)>\n?(.*?)(?:\n?</parameter>|(?=\n<parameter=)|\n?\Z)", re.DOTALL)
_BETWEEN_VALUES = re.compile(r"[\s,;]*")
_JSON = json.JSONDecoder(strict=False)  # models write raw newlines into strings


@dataclass(frozen=True, slots=True)
class FoundCall:
    """A call that was found; `arguments` is JSON text, or what the model wrote if that is none."""

    name: str
    arguments: str


def early_name(head: str) -> str:
    """The name of a call whose body begins like this; '' while it is not whole, or does not come first.

    For all texts that begin alike in their first `NAME_WITHIN` characters it is the same once it is there.
    """
    match = _EARLY_NAME.match(head[:NAME_WITHIN])
    return (match["json"] or match["xml"] or "").strip() if match else ""


def is_strict(body: str) -> bool:
    """Whether the body is JSON without any mending."""
    return _strict_values(body.strip()) is not None


def find_calls(body: str, functions: Sequence[FunctionSchema] = (), *, mend: bool = True) -> list[FoundCall]:
    """The calls in the body of one `<tool_call>`, usually one; [] if it is none.

    Args:
        body: What stands between the tags.
        functions: Their schemas tell which of XML's untyped values are texts.
        mend: Take broken JSON for what it seems to mean. False for a body that was cut off: mended, it would be a
            call with arguments that the model never finished.
    """
    text = body.strip()
    if text.startswith("<"):
        return _calls_in_xml(text, functions)
    values = _strict_values(text)
    if values is None and mend:
        values = _mended_values(text)
    found = _calls_in_values(values or [])
    return found or (_calls_in_ruins(text) if mend else [])


def raw_arguments(body: str) -> str:
    """What looks like the arguments of a call that cannot be parsed; the whole body if nothing does."""
    match = _ARGUMENTS.search(body)
    rest = body[match.end() :] if match else ""
    # The last brace closes the call, not its arguments. Nothing is not passed on: it would mean a call without any.
    return rest.rstrip().removesuffix("```").rstrip().removesuffix("}").rstrip() or body.strip()


def _strict_values(text: str) -> list[Any] | None:
    """The JSON values of which a text consists; None if it is anything else."""
    values: list[Any] = []
    position = 0
    try:
        while position < len(text):
            value, position = _JSON.raw_decode(text, position)
            values.append(value)
            gap = _BETWEEN_VALUES.match(text, position)
            position = gap.end() if gap else position
    except (ValueError, RecursionError):
        return None
    return values


def _mended_values(text: str) -> list[Any] | None:
    try:
        value = loads_lenient(text)
    except ValueError:
        return None
    return None if _is_guessed(value, text) else [value]


def _is_guessed(value: Any, text: str) -> bool:
    """Whether mending had to guess where a string ends: then the model's own text is the better argument."""
    match value:
        case str():
            return '"' in value and dumps(value) not in text and f"'{value}'" not in text
        case dict():
            return any(_is_guessed(entry, text) for entry in value.values())
        case list():
            return any(_is_guessed(entry, text) for entry in value)
        case _:
            return False


def _calls_in_values(values: Sequence[Any]) -> list[FoundCall]:
    entries = [entry for value in values for entry in (value if isinstance(value, list) else [value])]
    calls = [_call_in_value(entry) for entry in entries]
    found = [call for call in calls if call is not None]
    # Half of a list would be silently lost.
    return found if len(found) == len(entries) else []


def _call_in_value(value: Any) -> FoundCall | None:
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict) and "name" not in value:
        value = value["function"]
    name = value.get("name")
    if not isinstance(name, str) or not name.strip():
        return None
    rest = {key: entry for key, entry in value.items() if key not in ("name", "type", "id")}
    # `parameters` is a slip of models that have seen the schema; arguments beside the name are another.
    arguments = rest.get("arguments", rest.get("parameters", rest))
    return FoundCall(name.strip(), _as_text(arguments))


def _as_text(arguments: Any) -> str:
    if arguments is None or arguments == "":
        return "{}"
    if isinstance(arguments, str):
        return arguments
    text = dumps(arguments)
    # A lone surrogate can be written in JSON, but cannot be sent as UTF-8.
    return text if _is_utf8(text) else json.dumps(arguments)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _calls_in_ruins(text: str) -> list[FoundCall]:
    match = _ANY_NAME.search(text)
    if match is None or not match[1].strip() or _ARGUMENTS.search(text) is None:
        return []
    return [FoundCall(match[1].strip(), raw_arguments(text))]


def _calls_in_xml(text: str, functions: Sequence[FunctionSchema]) -> list[FoundCall]:
    found = []
    for name, body in _XML_FUNCTION.findall(text):
        if name.strip():
            types = _property_types(name.strip(), functions)
            arguments = {
                key.strip(): _xml_value(value, types.get(key.strip(), frozenset()))
                for key, value in _XML_PARAMETER.findall(body)
            }
            found.append(FoundCall(name.strip(), _as_text(arguments)))
    return found


def _property_types(name: str, functions: Sequence[FunctionSchema]) -> dict[str, frozenset[str]]:
    """The JSON types each argument of a function may have, as far as its schema says so."""
    for function in functions:
        if function.get("name") == name:
            properties = (function.get("parameters") or {}).get("properties") or {}
            return {str(key): frozenset(_types_in(schema)) for key, schema in properties.items()}
    return {}


def _types_in(schema: Any) -> list[str]:
    if not isinstance(schema, Mapping):
        return []
    given = schema.get("type", [])
    types = [given] if isinstance(given, str) else [str(entry) for entry in given]
    for option in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        types += _types_in(option)
    return types


def _xml_value(text: str, types: frozenset[str]) -> Any:
    if "string" in types:
        return text
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text
