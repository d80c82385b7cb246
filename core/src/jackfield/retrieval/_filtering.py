"""Metadata filters for chunks. A filter is parsed once and matched against plain values."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Literal, TypeAlias

from jackfield.errors import ConfigError
from jackfield.messages import PART_SEPARATOR, basename_of
from jackfield.suggestions import suggest

MetadataValue: TypeAlias = str | int | float | bool | tuple[str, ...]
"""A value that filters can match. If it consists of several texts, one of them must match."""

Kind = Literal["text", "number", "true or false"]

CHUNK_KEYS: Mapping[str, Kind] = {"page": "number", "heading": "text", "part": "text"}
"""The keys whose values differ between chunks of a document."""
DOCUMENT_KEYS: Mapping[str, Kind] = {"path": "text", "name": "text", "type": "text", "title": "text"}
"""The keys that every document has."""

RESERVED_KEYS = (*DOCUMENT_KEYS, *CHUNK_KEYS)
"""The keys that metadata must not use."""

_OPERATORS: Mapping[str, Callable[[object, object], bool]] = {
    "gt": lambda value, limit: value > limit,  # type: ignore[operator] # both are of one kind
    "gte": lambda value, limit: value >= limit,  # type: ignore[operator]
    "lt": lambda value, limit: value < limit,  # type: ignore[operator]
    "lte": lambda value, limit: value <= limit,  # type: ignore[operator]
}
_EXAMPLE = "{'year': {'gte': 2023}, 'path': 'reports/*', 'author': ['Ada', 'Bob']}"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a metadata key.

    Attributes:
        key: The key.
        operator: `in` (equals one of the operands), `not` (equals none of the operands), `gt`, `gte`, `lt` or `lte`.
        operands: The values to compare with, all of the same kind.
    """

    key: str
    operator: str
    operands: tuple[str | int | float | bool, ...]

    @property
    def kind(self) -> Kind:
        """The kind of the operands."""
        return kind_of(self.operands[0])

    def matches(self, value: MetadataValue | None) -> bool:
        """Return True if the key's value meets the condition. A missing value only meets `not`."""
        if self.operator == "not":
            return value is None or not self._is_one(value)
        if value is None:
            return False
        if self.operator == "in":
            return self._is_one(value)
        compare = _OPERATORS[self.operator]
        return any(kind_of(one) == self.kind and compare(one, self.operands[0]) for one in _each(value))

    def _is_one(self, value: MetadataValue) -> bool:
        if self.kind != "text":
            return any(kind_of(one) == self.kind and one in self.operands for one in _each(value))
        texts = [one for one in _each(value) if isinstance(one, str)]
        is_path = self.key in ("path", "part")
        patterns = [pattern for operand in self.operands for pattern in _patterns(str(operand), is_path=is_path)]
        return any(pattern.match(text) for text in texts for pattern in patterns)


@dataclass(frozen=True, slots=True)
class Where:
    """A filter. A chunk matches if it meets all conditions. Use `Where.parse` to create a filter from a dict.

    Attributes:
        conditions: The conditions.
        is_checked: True after `check` has compared the keys and kinds with the documents.
    """

    conditions: tuple[Condition, ...]
    is_checked: bool = False

    @classmethod
    def parse(cls, value: Mapping[str, object] | Where, *, what: str = "where") -> Where:
        """Parse a dict that maps keys to conditions, such as `{"year": {"gte": 2023}, "path": "reports/*"}`.

        A condition is a value, a list of alternative values, or a dict of `gt`, `gte`, `lt`, `lte` and `not`. Text
        matching is case-insensitive. `*` matches any text, and `?` matches one character. A pattern for `path` or
        `part` may start at any directory. `path` refers to the file itself, and `part` to a file inside it.

        Raises:
            ConfigError: A condition is not valid. The message names the key.
        """
        if isinstance(value, Where):
            return value
        if not isinstance(value, Mapping):
            raise ConfigError(f"{what} must be a dict such as {_EXAMPLE}, got {type(value).__name__}")
        return cls(tuple(one for key, constraint in value.items() for one in _conditions(key, constraint, what)))

    def check(self, kinds: Mapping[str, Iterable[str]]) -> Where:
        """Check that the filter's keys and kinds are known, and return a checked copy.

        Args:
            kinds: The documents' metadata keys, each with the kinds of its values.

        Raises:
            ConfigError: No document has a key that the filter uses, or the key's values are of another kind.
        """
        for condition in self.conditions:
            known = [*kinds.get(condition.key, ())]
            if not known:
                raise ConfigError(
                    f"where: no document has the key {condition.key!r}{suggest(condition.key, sorted(kinds))}"
                )
            if condition.kind not in known:
                operand = condition.operands[0]
                raise ConfigError(
                    f"where: {condition.key} has type {' or '.join(sorted(known))}, but {operand!r} has type "
                    f"{condition.kind}"
                )
        return Where(self.conditions, is_checked=True)

    @property
    def is_of_documents(self) -> bool:
        """True if the filter always matches either all chunks of a document or none of them."""
        return all(condition.key not in CHUNK_KEYS for condition in self.conditions)

    def of_documents(self) -> Where:
        """Return a filter with only the conditions that apply to entire documents."""
        return Where(tuple(one for one in self.conditions if one.key not in CHUNK_KEYS), self.is_checked)

    def matches(self, values: Mapping[str, MetadataValue]) -> bool:
        """Return True if the values meet all conditions."""
        return all(condition.matches(values.get(condition.key)) for condition in self.conditions)


def document_values(source: str, title: str, metadata: Mapping[str, MetadataValue]) -> dict[str, MetadataValue]:
    """Return the filter values that are common to all chunks of a document."""
    name = basename_of(source)
    extension = name.rpartition(".")[2].lower() if "." in name else ""
    return {**metadata, "path": source.replace("\\", "/"), "name": name, "type": extension, "title": title}


def position_values(page: int | None, headings: tuple[str, ...], part: str) -> dict[str, MetadataValue]:
    """Return the filter values that describe a chunk's position in its document."""
    values: dict[str, MetadataValue] = {"heading": headings}
    if page is not None:
        values["page"] = page
    if part:
        values["part"] = part
    return values


def kind_of(value: object) -> Kind:
    """Return a value's kind. Values of different kinds are never equal."""
    if isinstance(value, bool):
        return "true or false"
    return "number" if isinstance(value, int | float) else "text"


def kinds_in(metadata: Iterable[Mapping[str, MetadataValue]]) -> dict[str, frozenset[str]]:
    """Return the keys that filters can use, each with the kinds of its values."""
    kinds: dict[str, set[str]] = {key: {kind} for key, kind in (*DOCUMENT_KEYS.items(), *CHUNK_KEYS.items())}
    for values in metadata:
        for key, value in values.items():
            kinds.setdefault(key, set()).add(kind_of(value))
    return {key: frozenset(found) for key, found in kinds.items()}


def check_metadata(values: Mapping[str, object], *, what: str = "metadata") -> dict[str, MetadataValue]:
    """Validate document metadata and return it in the form that filters use.

    Raises:
        ConfigError: A key is reserved, or a value is not text, a date, a number, a bool or a list of texts.
    """
    checked: dict[str, MetadataValue] = {}
    for key, value in values.items():
        if not key or key in RESERVED_KEYS:
            raise ConfigError(f"{what}: {key!r} cannot be set; choose a name other than {', '.join(RESERVED_KEYS)}")
        match value:
            case date():
                checked[key] = value.isoformat()
            case str() | int() | float():
                checked[key] = value
            case [str(), *_] if all(isinstance(one, str) for one in value):
                checked[key] = tuple(str(one) for one in value)
            case _:
                kinds = "a string, a number, true, false or a list of strings"
                raise ConfigError(f"{what}: {key} must be {kinds}, got {value!r}")
    return checked


def _conditions(key: object, constraint: object, what: str) -> Iterable[Condition]:
    if not isinstance(key, str) or not key:
        raise ConfigError(f"{what}: keys must be non-empty strings, got {key!r}")
    if not isinstance(constraint, Mapping):
        return [Condition(key, "in", _operands(key, constraint, what))]
    if not constraint or not set(constraint) <= {*_OPERATORS, "not"}:
        known = ", ".join((*_OPERATORS, "not"))
        raise ConfigError(f"{what}: {key} must be a value, a list, or a dict of {known}; for example {_EXAMPLE}")
    conditions = [Condition(key, str(operator), _operands(key, value, what)) for operator, value in constraint.items()]
    for condition in conditions:
        if condition.operator != "not" and (len(condition.operands) > 1 or condition.kind == "true or false"):
            raise ConfigError(f"{what}: {key}: {condition.operator} needs a single number or string")
    return conditions


def _operands(key: str, value: object, what: str) -> tuple[str | int | float | bool, ...]:
    values = [*value] if isinstance(value, list | tuple | set | frozenset) else [value]
    plain = [one.isoformat() if isinstance(one, date) else one for one in values]
    operands = tuple(one for one in plain if isinstance(one, str | int | float))
    if not plain or len(operands) < len(plain):
        raise ConfigError(f"{what}: {key} must be a string, a number, true or false, or a list of these, got {value!r}")
    if len({kind_of(one) for one in operands}) > 1:
        raise ConfigError(f"{what}: all values of {key} must have the same type, got {value!r}")
    return operands


def _each(value: MetadataValue) -> tuple[str | int | float | bool, ...]:
    return value if isinstance(value, tuple) else (value,)


@lru_cache(maxsize=256)
def _patterns(text: str, *, is_path: bool) -> tuple[re.Pattern[str], ...]:
    """Return regular expressions for text with `*` and `?`. A value matches if any of the expressions match."""
    plain = text.replace("\\", "/") if is_path else text
    plain = plain.replace("[", "[[]")  # brackets are not wildcards
    ways = [plain, f"*/{plain}", f"*{PART_SEPARATOR}{plain}"] if is_path and not plain.startswith("/") else [plain]
    # Expressions from `fnmatch` never backtrack, so a model cannot slow them down.
    return tuple(re.compile(fnmatch.translate(way), re.IGNORECASE) for way in ways)
