"""Read and write calls as `<function=NAME><parameter=KEY>value</parameter></function>`.

Values are untyped; the function's schema determines their types. The format has no escapes. A value that would be
misread is written as a JSON string whose first character is escaped, so that every call survives a round trip.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jackfield.jsontext import dumps, loads_lenient
from jackfield.messages import FunctionCall
from jackfield.request import FunctionSchema
from jackfield_call_formats.arguments import as_text, object_of
from jackfield_call_formats.calls import FoundCall
from jackfield_call_formats.schemas import Types, argument_types

_FUNCTION = re.compile(r"<function=([^<>]*)>\s*")
_KEY = re.compile(r"\s*<parameter=([^<>]*)>\n?")
_END_OF_FUNCTION = re.compile(r"\s*</function>\s*")
# An end tag in the middle of a value is part of it. Models omit end tags, so the next parameter also ends a value.
_END_OF_VALUE = re.compile(
    r"(?P<end>\n?</parameter>\s*(?=<parameter=|</function>|\Z))"
    r"|\n(?=<parameter=[^<>\n]+>)"
    r"|\n?(?=</function>\s*(?:\Z|<function=))"
)
_ANY_TAG = re.compile("</?(?:tool_call|function|parameter|code|think)")
_UNSAFE_NAME = re.compile(r"[<>\n]|\A\s|\s\Z|\A\"|\A\Z")
_ESCAPED = re.compile(r'"\\u[0-9a-fA-F]{4}.*"', re.DOTALL)
_WORDS = {"true": True, "false": False, "none": None, "null": None}


@dataclass(frozen=True, slots=True)
class _Function:
    name: str
    values: Mapping[str, str]
    is_whole: bool


# --- writing ---


def write_call(call: FunctionCall, functions: Sequence[FunctionSchema]) -> str:
    """Write a call as the model should have written it. Arguments that are not a JSON object stay unchanged."""
    arguments = object_of(call)
    lines = [f"<function={_written_name(call.name)}>"]
    if arguments is None:
        lines.append(_ANY_TAG.sub(lambda tag: tag[0].replace("<", "\\u003c"), call.arguments))
    types = argument_types(call.name, functions)
    for key, value in (arguments or {}).items():
        lines += [f"<parameter={_written_name(key)}>", _write_value(value, types.get(key, frozenset())), "</parameter>"]
    return "\n".join([*lines, "</function>"])


def _write_value(value: object, types: Types) -> str:
    if not isinstance(value, str):
        written = dumps(value)
        return written.replace("<", "\\u003c") if _ANY_TAG.search(written) else written
    if not _ANY_TAG.search(value) and _read_typed(value, types) == value:
        return value
    return _escape(value)


def _written_name(name: str) -> str:
    return _escape(name) if _UNSAFE_NAME.search(name) else name


def _escape(text: str) -> str:
    units = text[:1].encode("utf-16-be", "surrogatepass").hex()
    first = "".join(f"\\u{units[offset : offset + 4]}" for offset in range(0, len(units), 4))
    rest = dumps(text[1:])[1:-1].replace("<", "\\u003c").replace(">", "\\u003e")
    return f'"{first}{rest}"'


# --- reading ---


def early_xml_name(head: str) -> str:
    """Return the name of a call from the start of its XML, or '' while it is incomplete."""
    match = _FUNCTION.match(head.lstrip())
    return _read_name(match[1]) if match else ""


def is_strict_xml(text: str) -> bool:
    """Return True if a body is XML with all its end tags."""
    functions = _functions_in(text)
    return bool(functions) and all(function.is_whole for function in functions)


def calls_in_xml(text: str, functions: Sequence[FunctionSchema], *, chosen: str = "") -> list[FoundCall]:
    """Parse the calls in a body, usually one. Return [] if the body is not a call.

    `chosen` is the function name to use for a call that does not have one.
    """
    found = []
    for function in _functions_in(text):
        name = function.name or chosen
        if name:
            types = argument_types(name, functions)
            values = {key: _read_typed(value, types.get(key, frozenset())) for key, value in function.values.items()}
            found.append(FoundCall(name, as_text(values)))
    return found


def _functions_in(text: str) -> list[_Function]:
    found = []
    opening = _FUNCTION.search(text)
    while opening:
        function, end = _read_function(text, _read_name(opening[1]), opening.end())
        found.append(function)
        opening = _FUNCTION.search(text, end)
    return found


def _read_function(text: str, name: str, position: int) -> tuple[_Function, int]:
    values: dict[str, str] = {}
    has_all_ends = True
    while key := _KEY.match(text, position):
        end = _END_OF_VALUE.search(text, key.end())
        has_all_ends = has_all_ends and end is not None and end["end"] is not None
        values[_read_name(key[1])] = text[key.end() : end.start() if end else len(text)].removesuffix("\n" * (not end))
        position = end.end() if end else len(text)
    closing = _END_OF_FUNCTION.match(text, position)
    function = _Function(name, values, is_whole=has_all_ends and closing is not None)
    return function, closing.end() if closing else position


def _read_name(written: str) -> str:
    name = "" if written == '""' else _unescape(written.strip())
    return written.strip() if name is None else name


def _unescape(text: str) -> str | None:
    """Decode a value that was written as a JSON string, or return None if it was not."""
    if not _ESCAPED.fullmatch(text):
        return None
    try:
        value = json.loads(text, strict=False)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _read_typed(text: str, types: Types) -> object:
    """Convert a value to one of the given types if possible."""
    escaped = _unescape(text)
    if escaped is not None:
        return escaped
    value = _as_json(text, types)
    kind = _type_of(value)
    fits = kind in types or (kind == "integer" and "number" in types)
    return text if "string" in types and (kind == "string" or not fits) else value


def _as_json(text: str, types: Types) -> object:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        pass
    word = _WORDS.get(text.strip().lower(), text)
    if types & {"boolean", "null"} and word is not text and _type_of(word) in types:
        return word
    return _as_structure(text) if types & {"object", "array"} else text


def _as_structure(text: str) -> object:
    """Parse an object or a list, repairing it if necessary. Return the text if it is neither."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return loads_lenient(text)
    except ValueError:
        return text


_TYPES = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}


def _type_of(value: object) -> str:
    return _TYPES.get(type(value), "object")
