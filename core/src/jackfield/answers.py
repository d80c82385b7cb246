"""Output formats for structured answers: a schema for the model and a parser for its answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from inspect import isroutine
from typing import Any, Generic, TypeVar, cast
from urllib.parse import unquote

from jackfield.config import Lang
from jackfield.errors import ConfigError
from jackfield.jsonschemas import SchemaChecker, UncheckableError, fault_of_schema
from jackfield.jsontext import dumps, loads_lenient

T = TypeVar("T")

MAX_SHOWN_CHARS = 4000
"""The maximum length of a rejected answer, and of the reasons, when both are sent back to the model."""

_THOUGHT = re.compile(r"\A.*</think>", re.DOTALL)
_FENCE = re.compile(r"```[\w-]*\n(.*?)```", re.DOTALL)


class MisfitError(Exception):
    """An answer does not match the output format. The message is written for the model."""


class Form(Generic[T]):
    """An answer's output format.

    Args:
        wanted: A type that pydantic can validate, or a JSON Schema.

    Raises:
        ConfigError: `wanted` is neither a type that can be read from JSON nor a valid JSON Schema.
    """

    def __init__(self, wanted: type[T] | Mapping[str, object]) -> None:
        self._adapter: Any = None
        self._checker: SchemaChecker | None = None
        if isinstance(wanted, Mapping):
            if fault := fault_of_schema(wanted):
                raise ConfigError(f"the output schema is not a valid JSON Schema: {fault}")
            if reference := _dangling_reference(wanted):  # fail before a request is paid for
                raise ConfigError(f"the schema refers to {reference!r}, which it does not define")
            self.schema = dict(wanted)
            self._checker = SchemaChecker(self.schema)
        else:
            from pydantic import PydanticUserError, TypeAdapter

            try:
                self._adapter = TypeAdapter(wanted)
                self.schema = self._adapter.json_schema()
            except (PydanticUserError, TypeError) as error:
                reason = str(error).splitlines()[0]
                raise ConfigError(f"{wanted!r} is not a type that can be read from JSON: {reason}") from error
            except Exception as error:  # pydantic has no public error class for a bad pattern
                reason = str(error).splitlines()[-1].strip()
                raise ConfigError(f"{wanted!r} is not a type that pydantic supports: {reason}") from error
        # Servers and tools accept only objects, so other values are wrapped in an object with one property.
        self.is_object = self.schema.get("type") == "object"

    @property
    def sent(self) -> dict[str, Any]:
        """The JSON Schema that the model receives, which always describes an object."""
        if self.is_object:
            return self.schema
        inner = {key: value for key, value in self.schema.items() if key != "$defs"}
        outer = {"type": "object", "properties": {"value": inner}, "required": ["value"]}
        return {**outer, "$defs": self.schema["$defs"]} if "$defs" in self.schema else outer

    def read(self, text: str) -> T:
        """Parse and validate an answer and return its value.

        Raises:
            MisfitError: The answer is not JSON or does not match the output format.
        """
        value = _find_json(text)
        if not self.is_object and isinstance(value, dict) and set(value) == {"value"}:
            value = value["value"]
        if self._checker is None:
            return cast("T", self._validate(value))
        try:
            misfits = self._checker.misfits(value)
        except UncheckableError as error:
            raise ConfigError(str(error)) from error
        if misfits:
            raise MisfitError("; ".join(misfits))
        return cast("T", value)

    def _validate(self, value: Any) -> Any:
        from pydantic import ValidationError

        try:
            return self._adapter.validate_json(json.dumps(value))  # in JSON, dates are strings and tuples are lists
        except ValidationError as error:
            problems = error.errors(include_input=False, include_url=False)[:5]
            raise MisfitError(
                "; ".join(f"{'.'.join(map(str, one['loc'])) or 'answer'}: {one['msg']}" for one in problems)
            ) from error


def form_of(wanted: type[T] | Mapping[str, object] | Form[T]) -> Form[T]:
    """Return the output format for a type or schema. A `Form` is returned unchanged.

    Raises:
        ConfigError: `wanted` is neither a type that can be read from JSON nor a valid JSON Schema.
    """
    if isroutine(wanted):
        raise ConfigError(f"output must be a type or a JSON Schema, got the function {wanted.__name__}")
    return wanted if isinstance(wanted, Form) else Form(wanted)


def asking_text(schema: Mapping[str, object], lang: Lang) -> str:
    """Return a prompt that asks for an object matching the schema."""
    return _PROMPT[lang].format(schema=dumps(schema))


def sent_back_text(problem: str, lang: Lang) -> str:
    """Return a prompt that rejects an answer and asks for a corrected one."""
    return _SENT_BACK[lang].format(problem=problem[:MAX_SHOWN_CHARS])


_DATA = ("enum", "const", "default", "examples")  # schema keys whose values are plain data, without references
_PROMPT: Mapping[Lang, str] = {
    "en": "Answer with one JSON object and nothing else, no words before or after it. It must fit this JSON Schema:\n"
    "{schema}",
    "zh": "只用一个 JSON 对象回答，前后不要有任何其他文字。它必须符合以下 JSON Schema：\n{schema}",
}
_SENT_BACK: Mapping[Lang, str] = {
    "en": "This answer does not fit: {problem}. Give the whole answer again, corrected.",
    "zh": "这个回答不符合要求：{problem}。请重新给出完整的、改正后的回答。",
}


def _dangling_reference(schema: Mapping[str, object]) -> str:
    """Return a reference that has no target, or '' if there is none.

    Anchors (`#name`) are resolved when an answer is checked.
    """
    has_addresses = '"$id"' in dumps(schema)
    for reference in _references(schema):
        if reference.startswith("#/"):
            is_dangling = not _resolves(reference, schema)
        else:
            is_dangling = "://" in reference and not has_addresses
        if is_dangling:
            return reference
    return ""


def _resolves(path: str, schema: object) -> bool:
    for part in path.removeprefix("#/").split("/"):
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(schema, Mapping) and key in schema:
            schema = schema[key]
        elif isinstance(schema, list) and key.isdecimal() and int(key) < len(schema):
            schema = schema[int(key)]
        else:
            return False
    return True


def _references(schema: object) -> Iterator[str]:
    """Yield every `$ref` in a schema, skipping subschemas with their own `$id`."""
    match schema:
        case {"$id": _}:
            return
        case Mapping():
            reference = schema.get("$ref")
            if isinstance(reference, str):
                yield reference
            for key, value in schema.items():
                if key not in _DATA:
                    yield from _references(value)
        case list():
            for entry in schema:
                yield from _references(entry)


def _find_json(text: str) -> Any:
    """Parse the JSON in an answer.

    Try the entire text first, then the code fences (last one first), then the text starting at the first bracket.
    """
    answer = _THOUGHT.sub("", text).strip()
    if not answer:
        raise MisfitError("there is no answer")
    bracket = re.search(r"[{\[].*", answer, re.DOTALL)
    from_bracket = [bracket[0]] if bracket else []
    candidates = [answer, *reversed(_FENCE.findall(answer)), *from_bracket]
    # Complete JSON wins over a value followed by text, and only malformed JSON is repaired.
    for candidate in candidates:
        with suppress(ValueError, RecursionError):
            return json.loads(candidate, strict=False)
    for candidate in from_bracket:
        with suppress(ValueError, RecursionError):
            return json.JSONDecoder(strict=False).raw_decode(candidate)[0]
    for candidate in candidates:
        with suppress(ValueError, RecursionError):
            return loads_lenient(candidate)
    raise MisfitError("not valid JSON")
