"""JSON Schema, draft 2020-12: check values and schemas."""

from __future__ import annotations

import marshal
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from jackfield._lazy import fetching

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

    Schema = Mapping[str, Any]

MOST_MISFITS = 5
_MOST_CHARS = 300
_MOST_REMEMBERED = 16 << 10  # in bytes, of a schema: checking one takes 1 ms, and every agent has its tools checked
_MOST_LOOKED_AT = 100  # of the misfits; each of a million entries may be one


class UnresolvableReferenceError(ValueError):
    """A schema refers to something outside of it; nothing is ever fetched."""


class SchemaChecker:
    """Checks values against one schema. Making its validator costs as much as forty checks: keep it."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._validator: Draft202012Validator | None = None

    def misfits(self, value: object) -> list[str]:
        """What does not fit, a sentence each, in the order of the value, at most five; [] if all is well.

        Raises:
            UnresolvableReferenceError: The schema refers to something outside of it.
        """
        from referencing.exceptions import Unresolvable

        if self._validator is None:
            from jsonschema import Draft202012Validator, validators
            from referencing import Registry

            checker = validators.extend(Draft202012Validator, {"uniqueItems": _unique})  # type: ignore[no-untyped-call]
            # An empty registry: without one, a reference in a schema is fetched from wherever it points to.
            self._validator = checker(self.schema, registry=Registry())
        try:
            found = islice(self._validator.iter_errors(value), _MOST_LOOKED_AT)
            errors = sorted(found, key=lambda error: list(map(str, error.path)))
        except Unresolvable as error:
            raise UnresolvableReferenceError(f"the schema refers to {error.ref!r}, which is not in it") from error
        except RecursionError:
            return ["it is nested too deeply to be checked"]
        return [_sentence(error.path, error.message) for error in errors[:MOST_MISFITS]]


def _unique(_: object, is_wanted: bool, value: object, __: object) -> Iterator[ValidationError]:
    """`uniqueItems` with one look at each item; the library compares each object with each other one."""
    from jsonschema import ValidationError

    if is_wanted and isinstance(value, list) and len(set(map(_identity, value))) < len(value):
        yield ValidationError("the items are not all different")


def _identity(value: object) -> Hashable:
    """Equal for what JSON Schema calls equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return ("object", frozenset((key, _identity(entry)) for key, entry in value.items()))
    if isinstance(value, list):
        return ("array", *map(_identity, value))
    return ("boolean", value) if isinstance(value, bool) else value


def fault_of_schema(schema: Schema) -> str:
    """Why a dict is not a valid JSON Schema, '' if it is."""
    try:
        # Exact in types and values, so what is remembered is of this content alone, whatever becomes of the dict.
        content = marshal.dumps(schema, 0)  # type: ignore[arg-type]
    except ValueError:  # it holds something that marshal does not know, or is nested deeply
        return _fault_of_schema(schema)
    return _fault_of_content(content) if len(content) <= _MOST_REMEMBERED else _fault_of_schema(schema)


@lru_cache(maxsize=256)
def _fault_of_content(content: bytes) -> str:
    return _fault_of_schema(marshal.loads(content))  # noqa: S302 - it was written above


def _fault_of_schema(schema: Schema) -> str:
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return str(error.message)
    return ""


def _sentence(path: Iterable[object], message: str) -> str:
    where = ".".join(str(part) for part in path)
    short = message if len(message) <= _MOST_CHARS else message[:_MOST_CHARS] + "…"
    return f"{where}: {short}" if where else short


__getattr__, _ = fetching(
    __name__, {}, moved=dict.fromkeys(("response_format", "strictly"), "jackfield_answers.formats")
)
