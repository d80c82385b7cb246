"""Turn a directive into a call: fill its slots from the documents, and record the origin of each value."""

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
"""An argument of this name is a Python program. A document's text may become part of it only as a literal."""

_ENOUGH = 0.5


@dataclass(frozen=True, slots=True)
class Filling:
    """A slot, the value it got, and the sentence the value is from."""

    slot: Slot
    value: str
    sentence: Sentence


@dataclass(frozen=True, slots=True)
class ReadyCall:
    """A call with all its slots filled; `arguments` is a JSON object."""

    tool: str
    arguments: str
    fillings: tuple[Filling, ...]


@dataclass(frozen=True, slots=True)
class CannotCall:
    """The reason why a tool cannot be called; `phrase` is that of a slot that could not be filled."""

    kind: Reason
    tool: str
    phrase: str = ""


Outcome: TypeAlias = ReadyCall | CannotCall


class _CannotCallError(Exception):
    """Raised for a slot without a permitted value, with its phrase; caught in `prepare_call`."""

    def __init__(self, kind: Reason, phrase: str = "") -> None:
        super().__init__(kind)
        self.kind: Reason = kind
        self.phrase = phrase


def prepare_call(directive: Directive, schema: FunctionSchema, library: Library) -> Outcome:
    """Return the call that a directive asks for, or the reason why it cannot be made."""
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
    """Return a value with the sentences inserted into all of its texts."""
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
    """Return code with each sentence as a string literal.

    A document is not trusted: its text may stand in for a slot only if the slot is an expression of its own, as the
    parser decides; there it cannot leave the literal and run.
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
    """Return the names in a program, with repetitions; [] if it is not a program."""
    try:
        return [node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
