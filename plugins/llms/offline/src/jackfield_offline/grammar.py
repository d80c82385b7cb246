"""The small language in which a user tells the offline model to call tools. Parsing only; nothing is looked up here.

```
call <tool>: <text>         the text is the tool's one argument
call <tool> {"key": …}      the arguments as JSON
{number: <phrase>}          inside of both: a number from the documents
{text: <phrase>}            inside of both: a sentence from the documents
```
One call per line; all other lines are the question.
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
    """A placeholder to fill from the documents."""

    kind: Literal["number", "text"]
    phrase: str


@dataclass(frozen=True, slots=True)
class Directive:
    """One call that the user asks for.

    Attributes:
        tool: The tool's name, as written.
        template: The text of its arguments, with a `placeholder` in place of each slot.
        slots: The slots, in the order of the placeholders.
        is_json: True if the template is a JSON object.
    """

    tool: str
    template: str
    slots: tuple[Slot, ...]
    is_json: bool


def placeholder(number: int) -> str:
    """Return the placeholder of a slot, numbered from 0: a name, so that code and JSON can be parsed with it."""
    return f"_jackfield_slot_{number}_"


def parse_message(text: str) -> tuple[str, list[Directive]]:
    """Return the question in a user's message, or '' if it only makes calls, and its directives in order."""
    question: list[str] = []
    directives: list[Directive] = []
    # A list of uploads may come first, added by the code that shows files to a model.
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
    """Return the argument for a free text: the only required one, or the only one, if it is a string, or None."""
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
