"""Parse the small language in which users tell the offline model to call tools.

```
call <tool>: <text>         the text is the tool's only argument
call <tool> {"key": …}      the arguments as JSON
{number: <phrase>}          in either form: a number from the documents
{text: <phrase>}            in either form: a sentence from the documents
```
Each call takes one line; all other lines are the question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from jackfield.request import FunctionSchema

_CALL = re.compile(
    r"[ \t]*call[ \t]+(?P<tool>[A-Za-z0-9_-]{1,64})[ \t]*(?:[:：][ \t]*(?P<text>.*\S)|(?P<json>\{.*\}))[ \t]*$",
    re.IGNORECASE,
)
_UPLOADS = re.compile(r"\s*[(（](?:Uploaded|上传了)[ \t]*(?:!?\[[^\]\n]*\]\([^)\n]*\)[ \t]*)+[)）][ \t]*")
_SLOT = re.compile(r"\{[ \t]*(?P<kind>number|text)[ \t]*[:：][ \t]*(?P<phrase>[^{}]*[^{}\s])[ \t]*\}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Slot:
    """A placeholder to be filled from the documents."""

    kind: Literal["number", "text"]
    phrase: str


@dataclass(frozen=True, slots=True)
class Directive:
    """A call requested by the user.

    Attributes:
        tool: The tool's name, as written.
        template: The text of the arguments, with a `placeholder` for each slot.
        slots: The slots, in placeholder order.
        is_json: True if the template is a JSON object.
    """

    tool: str
    template: str
    slots: tuple[Slot, ...]
    is_json: bool


def placeholder(number: int) -> str:
    """Return the placeholder for a slot, numbered from 0. It is an identifier, so code and JSON remain parseable."""
    return f"_jackfield_slot_{number}_"


def parse_message(text: str) -> tuple[str, list[Directive]]:
    """Split a user's message into the question ('' if there is none) and the directives."""
    question: list[str] = []
    directives: list[Directive] = []
    # The code that shows files to a model may have put a list of uploads first.
    for line in _UPLOADS.sub("", text, count=1).splitlines() if _UPLOADS.match(text) else text.splitlines():
        match = _CALL.match(line)
        if match is None:
            question.append(line)
        else:
            directives.append(
                _directive(match["tool"], match["text"] or match["json"], is_json=match["json"] is not None)
            )
    return "\n".join(question).strip(), directives


def one_text_argument(schema: FunctionSchema) -> str | None:
    """Return a function's only required argument, or its only argument, if that is a string; otherwise None."""
    parameters = schema.get("parameters") or {}
    properties: Mapping[str, Any] = parameters.get("properties") or {}
    required = [name for name in parameters.get("required") or () if name in properties]
    match required or list(properties):
        case [str(name)] if _is_string(properties[name]):
            return name
    return None


def _directive(tool: str, written: str, *, is_json: bool) -> Directive:
    slots: list[Slot] = []

    def take(match: re.Match[str]) -> str:
        slots.append(Slot("number" if match["kind"].lower() == "number" else "text", match["phrase"].strip()))
        return placeholder(len(slots) - 1)

    return Directive(tool, _SLOT.sub(take, written), tuple(slots), is_json)


def _is_string(schema: object) -> bool:
    given = schema.get("type") if isinstance(schema, Mapping) else None
    return given == "string" or (isinstance(given, list) and "string" in given)
