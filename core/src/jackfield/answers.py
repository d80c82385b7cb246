"""The form that an answer must have: as a schema for a model, and as a reader of what it says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any, Generic, TypeVar, cast
from urllib.parse import unquote

from jackfield.config import Lang
from jackfield.errors import ConfigError
from jackfield.jsonschemas import SchemaChecker, UncheckableError, fault_of_schema
from jackfield.jsontext import dumps, loads_lenient

T = TypeVar("T")

MOST_SHOWN_CHARS = 4000
"""Of an answer that is sent back, and of the reasons."""

_THOUGHT = re.compile(r"\A.*</think>", re.DOTALL)
_FENCE = re.compile(r"```[\w-]*\n(.*?)```", re.DOTALL)


class MisfitError(Exception):
    """An answer does not fit; the text is for the model."""


class Form(Generic[T]):
    """The form that an answer must have, and how it is read."""

    def __init__(self, wanted: type[T] | Mapping[str, object]) -> None:
        self._adapter: Any = None
        self._checker: SchemaChecker | None = None
        if isinstance(wanted, Mapping):
            if fault := fault_of_schema(wanted):
                raise ConfigError(f"the schema for the answer is not a valid JSON Schema: {fault}")
            if lost := _lost_reference(wanted):  # before a model is asked and paid
                raise ConfigError(f"the schema refers to {lost!r}, which is not in it")
            self.schema = dict(wanted)
            self._checker = SchemaChecker(self.schema)
        else:
            from pydantic import PydanticUserError, TypeAdapter

            try:
                self._adapter = TypeAdapter(wanted)
                self.schema = self._adapter.json_schema()
            except (PydanticUserError, TypeError) as error:
                raise ConfigError(f"{wanted!r} is not a type that can be read from JSON: {error}") from error
            except Exception as error:  # pydantic has no public name for that of a pattern it cannot compile
                reason = str(error).splitlines()[-1].strip()
                raise ConfigError(f"{wanted!r} is not a type that pydantic can use: {reason}") from error
        # Servers and tools take objects only; anything else travels as the one property of one.
        self.is_object = self.schema.get("type") == "object"

    @property
    def sent(self) -> dict[str, Any]:
        """The schema of the object that the model is asked for."""
        if self.is_object:
            return self.schema
        inner = {key: value for key, value in self.schema.items() if key != "$defs"}
        outer = {"type": "object", "properties": {"value": inner}, "required": ["value"]}
        return {**outer, "$defs": self.schema["$defs"]} if "$defs" in self.schema else outer

    def read(self, text: str) -> T:
        """The value of an answer.

        Raises:
            MisfitError: It is not JSON, or does not fit.
        """
        value = _json_in(text)
        if not self.is_object and isinstance(value, dict) and set(value) == {"value"}:
            value = value["value"]
        return cast("T", self._checked(value) if self._adapter is None else self._validated(value))

    def _checked(self, value: Any) -> Any:
        assert self._checker is not None  # noqa: S101 - there is one where there is no adapter
        try:
            misfits = self._checker.misfits(value)
        except UncheckableError as error:
            raise ConfigError(str(error)) from error
        if misfits:
            raise MisfitError("; ".join(misfits))
        return value

    def _validated(self, value: Any) -> Any:
        from pydantic import ValidationError

        try:
            return self._adapter.validate_json(json.dumps(value))  # as JSON: a date is a text there, a tuple a list
        except ValidationError as error:
            problems = error.errors(include_input=False, include_url=False)[:5]
            raise MisfitError(
                "; ".join(f"{'.'.join(map(str, one['loc'])) or 'answer'}: {one['msg']}" for one in problems)
            ) from error


def form_of(wanted: type[T] | Mapping[str, object] | Form[T]) -> Form[T]:
    """The form that an answer must have, from a type or a schema; a `Form` is returned as it is.

    Raises:
        ConfigError: `wanted` is neither a type that can be read from JSON nor a JSON Schema.
    """
    return wanted if isinstance(wanted, Form) else Form(wanted)


def asking_text(schema: Mapping[str, object], lang: Lang) -> str:
    """The prompt for a model that should answer with an object of this schema."""
    return _PROMPT[lang].format(schema=dumps(schema))


def sent_back_text(problem: str, lang: Lang) -> str:
    """The prompt for a model whose answer does not fit."""
    return _SENT_BACK[lang].format(problem=problem[:MOST_SHOWN_CHARS])


_DATA = ("enum", "const", "default", "examples")
"""Keys of a schema that have values in them, which refer to nothing."""
_PROMPT: Mapping[Lang, str] = {
    "en": "Answer with one JSON object and nothing else, no words before or after it. It must fit this JSON Schema:\n"
    "{schema}",
    "zh": "只用一个 JSON 对象回答，前后不要有任何其他文字。它必须符合以下 JSON Schema：\n{schema}",
}
_SENT_BACK: Mapping[Lang, str] = {
    "en": "This answer does not fit: {problem}. Give the whole answer again, corrected.",
    "zh": "这个回答不符合要求：{problem}。请重新给出完整的、改正后的回答。",
}


def _lost_reference(schema: Mapping[str, object]) -> str:
    """A reference that leads to nothing; ''. Names (`#name`) are looked up when an answer is checked."""
    has_addresses = '"$id"' in dumps(schema)
    for reference in _references(schema):
        if reference.startswith("#/"):
            is_lost = not _leads_somewhere(reference, schema)
        else:
            is_lost = "://" in reference and not has_addresses
        if is_lost:
            return reference
    return ""


def _leads_somewhere(path: str, schema: object) -> bool:
    try:
        for part in path.removeprefix("#/").split("/"):
            schema = _entry_of(schema, unquote(part).replace("~1", "/").replace("~0", "~"))
    except LookupError:
        return False
    return True


def _entry_of(schema: object, key: str) -> object:
    """Raises LookupError if a schema has nothing there."""
    if isinstance(schema, list) and key.isdecimal():
        return schema[int(key)]
    if isinstance(schema, Mapping):
        return schema[key]
    raise LookupError(key)


def _references(schema: object) -> Iterator[str]:
    """All `$ref` of a schema; none where parts of it have an address of their own (`$id`), which they start from."""
    match schema:
        case {"$id": _}:
            return
        case Mapping():
            yield from (found for found in [schema.get("$ref")] if isinstance(found, str))
            yield from _references([value for key, value in schema.items() if key not in _DATA])
        case list():
            yield from chain.from_iterable(map(_references, schema))


def _json_in(text: str) -> Any:
    """The JSON of an answer: all of it, what stands in its last code fence, or what begins at its first bracket."""
    answer = _THOUGHT.sub("", text).strip()
    if not answer:
        raise MisfitError("there is no answer")
    begins = re.search(r"[{\[].*", answer, re.DOTALL)
    rest = [begins[0]] if begins else []
    candidates = [answer, *reversed(_FENCE.findall(answer)), *rest]
    # Whole before the first value with more behind it, and only what is broken is mended.
    for read, texts in ((_whole_value, candidates), (_first_value, rest), (loads_lenient, candidates)):
        for candidate in texts:
            with suppress(ValueError, RecursionError):
                return read(candidate)
    raise MisfitError("it is not JSON")


def _whole_value(text: str) -> Any:
    return json.loads(text, strict=False)


def _first_value(text: str) -> Any:
    return json.JSONDecoder(strict=False).raw_decode(text)[0]
