"""Validate values and schemas against JSON Schema draft 2020-12, in bounded time.

Schemas come from untrusted sources: tool servers, files and callers. Patterns never backtrack (see `patterns`),
references are never fetched, and a schema that would multiply the work raises an error.
"""

from __future__ import annotations

import marshal
import operator
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError
    from referencing.exceptions import Unresolvable

    Schema = Mapping[str, Any]
    Keyword = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]

MAX_MISFITS = 5
_MAX_DEPTH = 100
_MAX_SCHEMA_VALUES = 10_000  # at any depth; checking this many takes about a second
_MAX_CHARS = 300
_MAX_CACHED_BYTES = 16 << 10  # of a schema; checking one takes 1 ms, and every agent checks its tools
_MAX_ERRORS = 100  # to collect; each of a million entries may have one
# A step takes a few microseconds: a keyword at a value, 16 entries of a list in the schema, or 1000 pattern steps.
_FREE_STEPS = 50_000
_STEPS_PER_VALUE = 20
_CHARS_PER_VALUE = 100
_ENTRIES_PER_STEP = 16
_PATTERN_STEPS_PER_STEP = 1000
_SAME_AS_FLOAT = 1 << 53
_DATA = frozenset({"const", "enum", "default", "examples"})
_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


class UncheckableError(ValueError):
    """A value cannot be validated against a schema. The message gives the reason."""


class UnresolvableReferenceError(UncheckableError):
    """A schema contains an external reference. External references are never fetched."""


class TooCostlyError(UncheckableError):
    """Validating a value would take far more steps than the value's size justifies."""

    def __init__(self) -> None:
        super().__init__("the schema is too complex to validate against: use fewer nested references and shorter lists")


class SchemaChecker:
    """Validates values against a schema. Creating a checker costs as much as forty checks, so reuse it."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._validator: Draft202012Validator | None = None
        self._fits = _compile_test(schema)

    def misfits(self, value: object) -> list[str]:
        """Return up to five violations as sentences, in the order of the value, or [] if the value is valid.

        Raises:
            UncheckableError: The schema contains an external reference, takes too many steps, or has an unusable
                reference or pattern.
        """
        try:
            if self._fits is not None and _surely_fits(self._fits, value):
                return []
            errors = self._find_errors(value)
        except RecursionError:
            return ["the value or its schema is nested too deeply to be validated"]
        except OverflowError:  # raised when dividing a number with thousands of digits
            return ["a number is too large to be validated"]
        except UncheckableError:
            raise
        except ValueError as error:  # raised by the library that parses URLs
            raise UncheckableError(f"the schema contains an invalid reference: {error}") from error
        errors.sort(key=lambda error: _place_in(value, error.path))
        return [_sentence(error.path, error.message) for error in errors[:MAX_MISFITS]]

    def _find_errors(self, value: object) -> list[ValidationError]:
        from referencing.exceptions import Unresolvable

        try:
            if self._validator is None:
                self._validator = _make_validator(self.schema)
            with _steps_for(value):
                return list(islice(self._validator.iter_errors(value), _MAX_ERRORS))
        except Unresolvable as error:
            raise UnresolvableReferenceError(
                f"the schema refers to {_reference_of(error)!r}, which it does not define"
            ) from error


def _place_in(value: Any, path: Iterable[str | int]) -> list[int]:
    """Return the position of each step of a path, as a sort key for the order of the value."""
    place = []
    for step in path:
        place.append(list(value).index(step) if isinstance(value, Mapping) else int(step))
        value = value[step]
    return place


def _reference_of(error: Unresolvable) -> str:
    """Return the reference as written, or at least the part starting at `#`."""
    from referencing.exceptions import InvalidAnchor, NoSuchAnchor, PointerToNowhere

    match error.__cause__:  # jsonschema wraps the original error
        case PointerToNowhere(ref=pointer):
            return f"#{pointer}"
        case NoSuchAnchor(anchor=anchor) | InvalidAnchor(anchor=anchor):
            return f"#{anchor}"
        case _:
            return str(error.ref)


def _make_validator(schema: Schema) -> Draft202012Validator:
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    resource = DRAFT202012.create_resource(schema)
    # Without a registry, references would be fetched from anywhere. Without the crawl, each reference to an anchor
    # would read the whole schema.
    registry = Registry().with_resource(resource.id() or "", resource).crawl()
    return _validator_class()(schema, registry=registry)


@contextmanager
def _steps_for(value: object) -> Iterator[None]:
    outer = getattr(_running, "steps", None)
    _running.steps = _Steps(value)
    try:
        yield
    finally:
        _running.steps = outer


class _Steps:
    """The step budget for one validation, proportional to the value's size.

    Only a costly schema can exceed the budget.
    """

    def __init__(self, value: object) -> None:
        self._value = value
        self._left = _FREE_STEPS
        self._is_measured = False

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            if not self._is_measured:  # measured late, because nearly all checks end before this point
                self._is_measured = True
                self._left += _STEPS_PER_VALUE * _size(self._value)
            if self._left < 0:
                raise TooCostlyError


class _Running(threading.local):
    steps: _Steps | None = None


_running = _Running()


def _size(value: object) -> int:
    """Return the number of values nested in a value, including the value itself.

    Long strings count as several values.
    """
    size, pending = 0, [value]
    while pending:
        entry = pending.pop()
        size += 1
        if isinstance(entry, str):
            size += len(entry) // _CHARS_PER_VALUE
        elif isinstance(entry, dict):
            size += sum(map(len, entry)) // _CHARS_PER_VALUE
            pending.extend(entry.values())
        elif isinstance(entry, list):
            pending.extend(entry)
    return size


# --- a quick test -----------------------------------------------------------------------------------------------------
# The library takes 10 µs per entry, so a list of 10,000 objects would block the event loop for a third of a second.
# Nearly all values are valid. A schema with only common keywords is therefore compiled to functions that look at each
# entry once. If they return True, the value is valid. If not, the library finds out what is wrong.

Test = Callable[[Any], bool]

_ANNOTATIONS = frozenset(
    "$comment $schema title description default examples deprecated readOnly writeOnly format".split()  # noqa: SIM905
)
_TYPES: Mapping[str, Test] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}
_LIMITS: Mapping[str, Callable[[Any, Any], bool]] = {
    "minimum": operator.ge,
    "maximum": operator.le,
    "exclusiveMinimum": operator.gt,
    "exclusiveMaximum": operator.lt,
    "minLength": lambda value, limit: len(value) >= limit,
    "maxLength": lambda value, limit: len(value) <= limit,
    "minItems": lambda value, limit: len(value) >= limit,
    "maxItems": lambda value, limit: len(value) <= limit,
}
_LIMITED_TYPE = {"minLength": str, "maxLength": str, "minItems": list, "maxItems": list}


class _UnknownKeywordError(Exception):
    """A schema cannot be compiled."""


def _surely_fits(fits: Test, value: object) -> bool:
    with _steps_for(value):
        return fits(value)


def _compile_test(schema: object) -> Test | None:
    """Compile a schema to a function that returns True only for valid values.

    Return None for schemas with rare keywords.
    """
    try:
        return _test_of(schema)
    except (_UnknownKeywordError, RecursionError):
        return None


def _test_of(schema: object) -> Test:
    if isinstance(schema, bool):
        return lambda _: schema
    if not isinstance(schema, Mapping):
        raise _UnknownKeywordError
    tests = list(_tests_of_objects(schema))
    for keyword, wanted in schema.items():
        if keyword not in _ANNOTATIONS and keyword not in _OBJECT_KEYWORDS:
            tests.append(_test_of_keyword(keyword, wanted))
    if len(tests) == 1:
        return tests[0]
    return lambda value: all(test(value) for test in tests)


def _test_of_keyword(keyword: str, wanted: Any) -> Test:
    match keyword, wanted:
        case "type", str() if wanted in _TYPES:
            return _TYPES[wanted]
        case "type", [*names] if all(isinstance(name, str) and name in _TYPES for name in names):
            types = [_TYPES[name] for name in names]
            return lambda value: any(test(value) for test in types)
        case "enum", [*texts] if all(isinstance(text, str) for text in texts):
            known = frozenset(texts)
            return lambda value: isinstance(value, str) and value in known
        case "pattern", str():
            return lambda value: not isinstance(value, str) or _occurs(wanted, value)
        case "items", bool() | Mapping():
            inner = _test_of(wanted)
            return lambda value: not isinstance(value, list) or all(map(inner, value))
    if keyword in _LIMITS and isinstance(wanted, int | float) and not isinstance(wanted, bool):
        return _test_of_limit(keyword, wanted)
    raise _UnknownKeywordError


def _test_of_limit(keyword: str, limit: float) -> Test:
    is_within, limited_type = _LIMITS[keyword], _LIMITED_TYPE.get(keyword)
    if limited_type is not None:
        return lambda value: not isinstance(value, limited_type) or is_within(value, limit)
    is_number = _TYPES["number"]
    return lambda value: not is_number(value) or is_within(value, limit)


_OBJECT_KEYWORDS = frozenset({"properties", "required", "additionalProperties"})


def _tests_of_objects(schema: Schema) -> Iterator[Test]:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, Mapping) or not all(isinstance(name, str) for name in required):
        raise _UnknownKeywordError
    if not _OBJECT_KEYWORDS & schema.keys():
        return
    tests = {name: _test_of(inner) for name, inner in properties.items()}
    others = _test_of(schema.get("additionalProperties", True))

    def fits(value: object) -> bool:
        if not isinstance(value, dict):
            return True
        return all(name in value for name in required) and all(
            tests.get(name, others)(entry) for name, entry in value.items()
        )

    yield fits


# --- the library ------------------------------------------------------------------------------------------------------


@cache
def _validator_class() -> type[Draft202012Validator]:
    """Build the library's validator, replacing unbounded keywords with bounded ones."""
    from jsonschema import Draft202012Validator, validators

    own: dict[str, Keyword] = {
        "uniqueItems": _unique,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "unevaluatedProperties": _unevaluated_properties,
        "unevaluatedItems": _unevaluated_items,
    }
    keywords = {**Draft202012Validator.VALIDATORS, **own}
    counted = {name: partial(_counted, keyword) for name, keyword in keywords.items()}
    bounded: type[Draft202012Validator] = validators.extend(Draft202012Validator, counted)  # type: ignore[no-untyped-call]
    evolve = bounded.evolve

    def evolve_within_bounds(self: Any, **changes: Any) -> Any:
        # Below a "$schema", the library would continue with its own unbounded keywords.
        schema = changes.get("schema")
        if isinstance(schema, Mapping) and "$schema" in schema:
            return bounded(**{"registry": self._registry, "_resolver": self._resolver, **changes})
        return evolve(self, **changes)

    bounded.evolve = evolve_within_bounds  # type: ignore[method-assign]
    return bounded


def _counted(
    keyword: Keyword, validator: object, wanted: object, value: object, schema: object
) -> Iterable[ValidationError] | None:
    _spend(1 + len(wanted) // _ENTRIES_PER_STEP if isinstance(wanted, list | dict) else 1)
    return keyword(validator, wanted, value, schema)


def _spend(steps: int) -> None:
    if _running.steps is not None:
        _running.steps.spend(steps)


def _occurs(pattern: str, text: str) -> bool:
    from jackfield.patterns import PatternError, compile_pattern  # most schemas have no pattern

    try:
        compiled = compile_pattern(pattern)
    except PatternError as error:
        raise UncheckableError(str(error)) from error
    _spend(compiled.size * len(text) // _PATTERN_STEPS_PER_STEP)
    return compiled.occurs_in(text)


def _pattern(_: object, pattern: str, value: object, __: object) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    if isinstance(value, str) and not _occurs(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], value: object, _: object
) -> Iterator[ValidationError]:
    if isinstance(value, dict):
        for pattern, schema in patterns.items():
            for name, entry in value.items():
                if _occurs(pattern, name):
                    yield from validator.descend(entry, schema, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, additional: object, value: object, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    if not isinstance(value, dict):
        return
    properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extras = [
        name for name in value if name not in properties and not any(_occurs(pattern, name) for pattern in patterns)
    ]
    if isinstance(additional, dict):
        for name in extras:
            yield from validator.descend(value[name], additional, path=name)
    elif not additional and extras:
        names = ", ".join(map(repr, sorted(extras)))
        verb = "was" if len(extras) == 1 else "were"
        yield ValidationError(f"Additional properties are not allowed ({names} {verb} unexpected)")


def _unevaluated_properties(
    validator: Any, unevaluated: object, value: object, schema: Schema
) -> Iterator[ValidationError]:
    if isinstance(value, dict):
        rest = {key: entry for key, entry in schema.items() if key != "unevaluatedProperties"}
        evaluated = _evaluated_names(validator, rest, value)
        for name in value:
            if name not in evaluated:
                yield from _descend(validator, value[name], unevaluated, name, "Unevaluated properties")


def _unevaluated_items(validator: Any, unevaluated: object, value: object, schema: Schema) -> Iterator[ValidationError]:
    if isinstance(value, list):
        rest = {key: entry for key, entry in schema.items() if key != "unevaluatedItems"}
        evaluated = _evaluated_indexes(validator, rest, value)
        for index, item in enumerate(value):
            if index not in evaluated:
                yield from _descend(validator, item, unevaluated, index, "Unevaluated items")


def _descend(validator: Any, entry: object, schema: object, key: str | int, kind: str) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    if schema is False:
        yield ValidationError(f"{kind} are not allowed ({key!r} was unexpected)")
    else:
        yield from validator.descend(entry, schema, path=key)


def _evaluated_names(validator: Any, schema: object, value: dict[str, Any]) -> set[str]:
    """Return the properties that a schema evaluates, directly or through subschemas that apply to the same value."""
    if not isinstance(schema, Mapping):
        return set()
    _spend(1 + len(value) // _ENTRIES_PER_STEP)
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:  # these take the rest
        return set(value)
    evaluated = {name for name in value if name in schema.get("properties", ())}
    for pattern in schema.get("patternProperties", ()):
        evaluated.update(name for name in value if _occurs(pattern, name))
    for inner_validator, inner in _applied(validator, schema, value):
        evaluated |= _evaluated_names(inner_validator, inner, value)
    return evaluated


def _evaluated_indexes(validator: Any, schema: object, value: list[Any]) -> set[int]:
    """Return the items that a schema evaluates, directly or through subschemas that apply to the same value."""
    if not isinstance(schema, Mapping):
        return set()
    _spend(1 + len(value) // _ENTRIES_PER_STEP)
    if "items" in schema or "unevaluatedItems" in schema:  # these take the rest
        return set(range(len(value)))
    evaluated = set(range(len(schema.get("prefixItems", ()))))
    if "contains" in schema:
        evaluated.update(index for index, item in enumerate(value) if _is_valid(validator, schema["contains"], item))
    for inner_validator, inner in _applied(validator, schema, value):
        evaluated |= _evaluated_indexes(inner_validator, inner, value)
    return evaluated


def _applied(validator: Any, schema: Schema, value: dict[str, Any] | list[Any]) -> Iterator[tuple[Any, object]]:
    """Yield the subschemas that apply to the same value and accept it, each with its validator."""
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in schema:
            target = validator._resolver.lookup(schema[keyword])
            yield validator.evolve(schema=target.contents, _resolver=target.resolver), target.contents
    candidates = [inner for keyword in ("allOf", "anyOf", "oneOf") for inner in schema.get(keyword, ())]
    if isinstance(value, dict):
        candidates += [inner for name, inner in schema.get("dependentSchemas", {}).items() if name in value]
    if "if" in schema:
        if _is_valid(validator, schema["if"], value):
            yield validator, schema["if"]
            candidates.append(schema.get("then", True))
        else:
            candidates.append(schema.get("else", True))
    for inner in candidates:
        if _is_valid(validator, inner, value):
            yield validator, inner


def _is_valid(validator: Any, schema: object, value: object) -> bool:
    return next(validator.descend(value, schema), None) is None


def _unique(_: object, is_wanted: bool, value: object, __: object) -> Iterator[ValidationError]:
    """Check `uniqueItems` in a single pass. The library would compare every pair of objects."""
    from jsonschema import ValidationError

    if is_wanted and isinstance(value, list) and len(set(map(_identity, value))) < len(value):
        yield ValidationError("items are not unique")


def _identity(value: object) -> Hashable:
    """Return a key that is equal for values that JSON Schema considers equal: 1 and 1.0, but not 1 and true."""
    if isinstance(value, dict):
        return ("object", frozenset((key, _identity(entry)) for key, entry in value.items()))
    if isinstance(value, list):
        return ("array", *map(_identity, value))
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, int | float) and abs(value) >= _SAME_AS_FLOAT and value not in _INFINITE:
        return ("number", hex(int(value)))  # hashes of large numbers collide easily
    return value


_INFINITE = (float("inf"), float("-inf"))


def fault_of_schema(schema: Schema, *, ignore_patterns: bool = False) -> str:
    """Return the reason why a dict is not a valid JSON Schema, or '' if it is.

    Args:
        schema: The dict.
        ignore_patterns: True to accept patterns that the `patterns` module cannot match. Use this if other code matches
            the patterns.
    """
    try:
        # The key is exact in types and values, so a cached result stays correct even if the dict changes later.
        content = marshal.dumps(schema, 0)  # type: ignore[arg-type]
    except ValueError:  # marshal does not support a value, or the schema is nested too deeply
        return _fault_of_schema(schema, ignore_patterns)
    if len(content) > _MAX_CACHED_BYTES:
        return _fault_of_schema(schema, ignore_patterns)
    return _fault_of_content(content, ignore_patterns)


@lru_cache(maxsize=256)
def _fault_of_content(content: bytes, ignore_patterns: bool) -> str:
    return _fault_of_schema(marshal.loads(content), ignore_patterns)  # noqa: S302 - it was written above


def _fault_of_schema(schema: Schema, ignore_patterns: bool) -> str:
    if fault := _fault_of_shape(schema):
        return fault
    try:
        if not _is_surely_valid(schema):
            from jsonschema import Draft202012Validator

            checker = _validator_class()(Draft202012Validator.META_SCHEMA)
            for error in checker.iter_errors(schema):
                return str(error.message)
        return "" if ignore_patterns else _fault_of_patterns(schema)
    except RecursionError:
        return _TOO_DEEP


_TOO_DEEP = f"nested more than {_MAX_DEPTH} levels deep: use $defs and $ref to flatten the schema"


def _fault_of_shape(schema: Schema) -> str:
    nodes, level, depth = 0, [schema], 0
    while level:
        nodes += len(level)
        if nodes > _MAX_SCHEMA_VALUES:
            return f"contains more than {_MAX_SCHEMA_VALUES:,} values: simplify the schema"
        if depth > _MAX_DEPTH:
            return _TOO_DEEP
        level = [inner for entry in level for inner in _entries(entry)]
        depth += 1
    return ""


def _entries(value: object) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


# Most tools' schemas have only common keywords. Checking those here avoids importing the library, which takes an
# eighth of a program's start-up time. The library checks all other schemas, and describes their faults.


def _is_surely_valid(schema: object) -> bool:
    """Return True if a schema only contains common keywords with valid values."""
    if not isinstance(schema, dict):
        return isinstance(schema, bool)
    return all(keyword in _VALID_VALUES and _VALID_VALUES[keyword](value) for keyword, value in schema.items())


def _are_surely_valid(schemas: object) -> bool:
    return isinstance(schemas, list) and schemas != [] and all(map(_is_surely_valid, schemas))


def _are_surely_valid_by_name(schemas: object) -> bool:
    return isinstance(schemas, dict) and all(map(_is_surely_valid, schemas.values()))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_unique_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value) and len(set(value)) == len(value)


def _are_types(value: object) -> bool:
    names = [value] if isinstance(value, str) else value
    return _are_unique_texts(names) and names != [] and _TYPES.keys() >= set(names)  # type: ignore[call-overload]


_VALID_VALUES: Mapping[str, Test] = {
    **dict.fromkeys(("$comment", "$ref", "$schema", "description", "format", "pattern", "title"), _TYPES["string"]),
    **dict.fromkeys(("deprecated", "readOnly", "writeOnly"), _TYPES["boolean"]),
    **dict.fromkeys(("enum", "examples"), _TYPES["array"]),
    **dict.fromkeys(("const", "default"), lambda _: True),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _TYPES["number"]),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_count),
    **dict.fromkeys(("items", "additionalProperties", "not"), _is_surely_valid),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), _are_surely_valid),
    **dict.fromkeys(("$defs", "patternProperties", "properties"), _are_surely_valid_by_name),
    "required": _are_unique_texts,
    "type": _are_types,
    "uniqueItems": _TYPES["boolean"],
}


def _fault_of_patterns(schema: Schema) -> str:
    """Return the reason why a pattern in a schema or its subschemas cannot be used, or ''."""
    from jackfield.patterns import PatternError, compile_pattern

    for inner in schemas_in(schema):
        patterns = [*inner.get("patternProperties", ())]
        if inner.get("pattern"):
            patterns.append(inner["pattern"])
        for pattern in patterns:
            try:
                compile_pattern(pattern)
            except PatternError as error:
                return str(error)
    return ""


def schemas_in(schema: object) -> Iterator[Schema]:
    """Yield a schema and all its subschemas. Data such as defaults is skipped."""
    if isinstance(schema, list | tuple):
        for entry in schema:
            yield from schemas_in(entry)
    if isinstance(schema, Mapping):
        yield schema
        for keyword, value in schema.items():
            if keyword in _BY_NAME and isinstance(value, Mapping):
                yield from schemas_in(list(value.values()))
            elif keyword not in _DATA:
                yield from schemas_in(value)


def _sentence(path: Iterable[object], message: str) -> str:
    where = ".".join(str(part) for part in path)
    short = message if len(message) <= _MAX_CHARS else message[:_MAX_CHARS] + "…"
    return f"{where}: {short}" if where else short
