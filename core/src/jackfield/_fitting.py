"""Check values against annotations without pydantic, for use before pydantic is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from jackfield.errors import ConfigError

_ALSO: Mapping[Any, Any] = {tuple: (tuple, list), frozenset: (set, frozenset), float: (int, float)}


def check_argument(name: str, value: object, hint: object, wanted: str) -> None:
    """Check an argument of a public function.

    Args:
        name: The parameter's name, for the error message.
        value: The argument.
        hint: The expected type, as for `fits`.
        wanted: A description of the allowed values, for the error message.

    Raises:
        ConfigError: The value has another type.
    """
    if not fits(value, hint):
        raise ConfigError(f"{name} must be {wanted}, got {type(value).__name__}")


def check_seconds(name: str, value: object, *, optional: bool = False) -> None:
    """Raise ConfigError unless an argument is a number above 0, or None if `optional` is True."""
    if optional and value is None:
        return
    check_argument(name, value, float, "a number of seconds")
    if not value > 0:  # type: ignore[operator]  # not `<= 0`, because NaN is not valid either
        raise ConfigError(f"{name} must be a number of seconds above 0, got {value}")


def check_count(name: str, value: object) -> None:
    """Raise ConfigError unless an argument is an integer of at least 1."""
    check_argument(name, value, int, "a whole number")
    if value < 1:  # type: ignore[operator]
        raise ConfigError(f"{name} must be at least 1, got {value}")


def fits(value: object, hint: object) -> bool:
    """Return True if a value matches an annotation. Lists match tuples, and bools do not match numbers."""
    if type(value) is hint:
        return True
    origin, inner = _parts_of(hint)
    if origin is Any:
        return True
    if origin is Union:
        return (value is None and NoneType in inner) or any(fits(value, one) for one in inner)
    if isinstance(value, bool) and origin is not bool:
        return False
    return isinstance(value, _ALSO.get(origin, origin)) and (not inner or _content_fits(value, inner))


@cache  # each run checks its arguments with this
def _parts_of(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    origin = get_origin(hint) or hint
    return (Union if origin is UnionType else origin), get_args(hint)


def _content_fits(value: Any, inner: tuple[Any, ...]) -> bool:
    if isinstance(value, Mapping):
        return all(fits(name, inner[0]) and fits(one, inner[1]) for name, one in value.items())
    return all(fits(one, inner[0]) for one in value)
