"""Read and write calls as JSON, either valid or as models write it.

All functions are pure, and none raises on any text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from typing import Any

from jackfield.jsontext import dumps
from jackfield.messages import FunctionCall
from jackfield_call_formats.arguments import JSON, as_text, object_of, repair_json
from jackfield_call_formats.calls import FoundCall

CODE, END_CODE = "<code>", "</code>"

_EARLY_NAME = re.compile(r"\s*(?:```\w*\s*)?\{\s*\"name\"\s*:\s*\"([^\"\\]*)\"")
_ANY_NAME = re.compile(r"""["']name["']\s*:\s*["']([^"'\n]+)["']""")
_ARGUMENTS = re.compile(r"""["'](?:arguments|parameters)["']\s*:\s*""")
_BETWEEN_VALUES = re.compile(r"[\s,;]*")
_ANY_TAG = re.compile("</?(?:tool_call|code|function|parameter)")


def write_call(call: FunctionCall, *, code_apart: bool = False) -> str:
    """Write a call as the model should have written it. Arguments that are not a JSON object become a JSON string.

    With `code_apart`, the `code` argument follows the JSON between tags, where nothing needs escaping.
    """
    arguments = object_of(call)
    code = (arguments or {}).get("code")
    # A tag inside the code could not be distinguished from the end of the block.
    if code_apart and arguments and isinstance(code, str) and not _ANY_TAG.search(code):
        written = dumps({"name": call.name, "arguments": {**arguments, "code": ""}})
        return f"{written}\n{CODE}\n{code}\n{END_CODE}"
    return dumps({"name": call.name, "arguments": call.arguments if arguments is None else arguments})


def early_json_name(head: str) -> str:
    """Return the name of a call from the start of its JSON, or '' if the name is incomplete or not the first key."""
    match = _EARLY_NAME.match(head)
    return match[1].strip() if match else ""


def is_strict_json(text: str) -> bool:
    """Return True if a body is valid JSON without repairs. A complete code block may follow it."""
    json_text, code = _parted(text)
    return _strict_values(json_text) is not None and (code is None or code.endswith(END_CODE))


def calls_in_json(text: str, *, mend: bool, chosen: str = "") -> list[FoundCall]:
    """Parse the calls in a body, usually one. Return [] if the body is not a call.

    Args:
        text: The text between the tags.
        mend: Repair broken JSON to its likely meaning.
        chosen: The function name to use if the body has only arguments.
    """
    json_text, code = _parted(text)
    entries = _entries(json_text, mend=mend)
    content = _content_of(code)
    parsed_calls = [call for entry in entries if (call := _call_in_value(entry, content, chosen))]
    # Otherwise, half of a list would be lost silently.
    if parsed_calls and len(parsed_calls) == len(entries):
        return parsed_calls
    return _calls_in_ruins(text) if mend else []


def _entries(json_text: str, *, mend: bool) -> list[object]:
    """Return the JSON values in a text with lists flattened, or [] if the text is not JSON."""
    values = _strict_values(json_text)
    if values is None:
        value = repair_json(json_text) if mend else None
        values = [] if value is None else [value]
    return list(chain.from_iterable(value if isinstance(value, list) else [value] for value in values))


def raw_arguments(text: str) -> str:
    """Return what looks like the arguments of an unparsable call, or the whole body if nothing does."""
    match = _ARGUMENTS.search(text)
    rest = text[match.end() :] if match else ""
    # The last brace closes the call, not its arguments. Empty text is not returned, because it would mean a call
    # without arguments.
    return rest.rstrip().removesuffix("```").rstrip().removesuffix("}").rstrip() or text.strip()


def _parted(text: str) -> tuple[str, str | None]:
    """Split a body into its JSON and the code block that starts at `<code>`, if any."""
    text = text.strip()
    if CODE not in text:
        return text, None
    try:
        _, end = JSON.raw_decode(text)
    except (ValueError, RecursionError):
        end = 0
    start = text.find(CODE, end)
    is_behind = not text[end:start].strip() if end else text.endswith(END_CODE)
    return (text[:start].rstrip(), text[start:]) if start >= 0 and is_behind else (text, None)


def _content_of(block: str | None) -> str | None:
    if block is None:
        return None
    return block.removeprefix(CODE).removesuffix(END_CODE).removeprefix("\n").removesuffix("\n")


def _strict_values(text: str) -> list[Any] | None:
    """Return the JSON values in a text, or None if it contains anything else."""
    values: list[object] = []
    position = 0
    try:
        while position < len(text):
            value, position = JSON.raw_decode(text, position)
            values.append(value)
            gap = _BETWEEN_VALUES.match(text, position)
            position = gap.end() if gap else position
    except (ValueError, RecursionError):
        return None
    return values


def _call_in_value(value: Any, code: str | None, chosen: str) -> FoundCall | None:
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict) and "name" not in value:
        value = value["function"]
    name = value.get("name", chosen if "arguments" in value else None)
    if not isinstance(name, str) or not name.strip():
        return None
    return FoundCall(name.strip(), as_text(_arguments_in(value, code)))


def _arguments_in(value: Mapping[str, Any], code: str | None) -> Any:
    rest = {key: entry for key, entry in value.items() if key not in ("name", "type", "id")}
    # Models that have seen the schema may write `parameters` by mistake, or put the arguments next to the name.
    arguments = rest.get("arguments", rest.get("parameters", rest))
    if code is None:
        return arguments
    return {**(arguments if isinstance(arguments, dict) else {}), "code": code}


def _calls_in_ruins(text: str) -> list[FoundCall]:
    match = _ANY_NAME.search(text)
    if match is None or not match[1].strip() or _ARGUMENTS.search(text) is None:
        return []
    return [FoundCall(match[1].strip(), raw_arguments(text))]
