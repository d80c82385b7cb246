"""Check values against annotations, for code that runs before pydantic is loaded."""

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
        name: The parameter's name, for the error.
        value: The argument.
        hint: Its type, as for `fits`.
        wanted: The allowed values in words, for the error.

    Raises:
        ConfigError: The value does not fit.
    """
    if not fits(value, hint):
        raise ConfigError(f"{name} must be {wanted}, not {type(value).__name__}")


def fits(value: object, hint: object) -> bool:
    """Return True if a value fits an annotation. A list may replace a tuple, and True is not a number."""
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


@cache  # each run checks its arguments
def _parts_of(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    origin = get_origin(hint) or hint
    return (Union if origin is UnionType else origin), get_args(hint)


def _content_fits(value: Any, inner: tuple[Any, ...]) -> bool:
    if isinstance(value, Mapping):
        return all(fits(name, inner[0]) and fits(one, inner[1]) for name, one in value.items())
    return all(fits(one, inner[0]) for one in value)
