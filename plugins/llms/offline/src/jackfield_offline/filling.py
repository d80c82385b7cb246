"""Turn directives into tool calls by filling their slots from the documents, and track each value's origin."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from jackfield.jsontext import dumps
from jackfield.request import FunctionSchema
from jackfield_offline.grammar import Directive, Slot, one_text_argument, placeholder
from jackfield_offline.numbers import find_number
from jackfield_offline.sentences import Library, Sentence

Reason: TypeAlias = Literal[
    "not_offered", "none_offered", "not_allowed", "not_found", "needs_json", "bad_json", "text_in_code"
]

CODE_ARGUMENT = "code"
"""Name of arguments that contain Python code, into which documents may be inserted only as string literals."""

_ENOUGH = 0.5


@dataclass(frozen=True, slots=True)
class Filling:
    """A slot's value and the sentence it was taken from."""

    slot: Slot
    value: str
    sentence: Sentence


@dataclass(frozen=True, slots=True)
class ReadyCall:
    """A call with all slots filled. `arguments` is a JSON object."""

    tool: str
    arguments: str
    fillings: tuple[Filling, ...]


@dataclass(frozen=True, slots=True)
class CannotCall:
    """The reason why a call cannot be made. `phrase` is that of the slot that could not be filled, if any."""

    kind: Reason
    tool: str
    phrase: str = ""


Outcome: TypeAlias = ReadyCall | CannotCall


class _CannotCallError(Exception):
    """A call cannot be made; `prepare_call` catches this error."""

    def __init__(self, kind: Reason, phrase: str = "") -> None:
        super().__init__(kind)
        self.kind: Reason = kind
        self.phrase = phrase


def prepare_call(directive: Directive, schema: FunctionSchema, library: Library) -> Outcome:
    """Return the call requested by a directive, or the reason why it cannot be made."""
    try:
        fillings = [_fill(slot, library) for slot in directive.slots]
        arguments = _arguments(directive, schema, fillings)
    except _CannotCallError as error:
        return CannotCall(error.kind, directive.tool, error.phrase)
    return ReadyCall(directive.tool, dumps(arguments), tuple(fillings))


def _fill(slot: Slot, library: Library) -> Filling:
    if slot.kind == "number":
        found = find_number(slot.phrase, library)
        if found is not None:
            return Filling(slot, found.number.value, found.sentence)
    else:
        for match in library.find(slot.phrase):
            if match.coverage >= _ENOUGH:
                return Filling(slot, match.sentence.text, match.sentence)
    raise _CannotCallError("not_found", slot.phrase)


def _arguments(directive: Directive, schema: FunctionSchema, fillings: Sequence[Filling]) -> dict[str, Any]:
    texts: dict[str, Filling] = {}
    template = directive.template
    for index, filling in enumerate(fillings):
        if filling.slot.kind == "text":
            texts[placeholder(index)] = filling
        else:  # only digits, which are safe anywhere, even in code and outside JSON strings
            template = template.replace(placeholder(index), filling.value)
    name = None if directive.is_json else one_text_argument(schema)
    if name is not None:
        return {name: _with_texts(name, template, texts)}
    value = _parsed(template)
    if isinstance(value, dict):
        return {key: _with_texts(key, entry, texts) for key, entry in value.items()}
    raise _CannotCallError("bad_json" if template.startswith("{") else "needs_json")


def _parsed(template: str) -> object:
    try:
        return json.loads(template, strict=False)
    except (ValueError, RecursionError):
        return None


def _with_texts(name: str, value: Any, texts: Mapping[str, Filling]) -> Any:
    """Insert the sentences into all strings of a value."""
    match value:
        case str():
            return _with_literals(value, texts) if name == CODE_ARGUMENT else _replaced(value, texts)
        case list():
            return [_with_texts(name, entry, texts) for entry in value]
        case dict():  # everything inside code is code as well
            is_code = name == CODE_ARGUMENT
            return {key: _with_texts(name if is_code else key, entry, texts) for key, entry in value.items()}
        case _:
            return value


def _replaced(text: str, texts: Mapping[str, Filling]) -> str:
    for mark, filling in texts.items():
        text = text.replace(mark, filling.value)
    return text


def _with_literals(code: str, texts: Mapping[str, Filling]) -> str:
    """Insert the sentences into code as string literals.

    Documents are untrusted. A slot may be filled only where the parser sees it as an expression of its own, so the text
    cannot escape from its literal and be executed.
    """
    names = _names_in(code)
    for mark, filling in texts.items():
        if mark not in code:
            continue
        if names.count(mark) != 1 or code.count(mark) != 1:
            raise _CannotCallError("text_in_code", filling.slot.phrase)
        code = code.replace(mark, repr(filling.value))
    return code


def _names_in(code: str) -> list[str]:
    """Return all names used in a program, with repetitions, or [] if the code does not parse."""
    try:
        return [node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
