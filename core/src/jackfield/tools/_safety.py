"""Safety attributes of tools, set in the descriptor, class, instance or settings. The strictest value wins."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, cast, get_args

from jackfield._fitting import fits
from jackfield.errors import BrokenPluginError, ConfigError

Approval = Literal["always", "never"]
_NO_EFFECTS: frozenset[str] = frozenset()
_PERMISSIONS = ("read_only", "concurrent", "file_access", "idempotent", "resumable", "cacheable")


class Claims(Protocol):
    """An object that has a tool's safety attributes."""

    needs_approval: bool
    effects: frozenset[str]
    read_only: bool
    concurrent: bool
    timeout_s: float | None
    file_access: bool
    idempotent: bool
    resumable: bool
    cacheable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Safety:
    """The rules for calls to a tool: the safety attributes of `BaseTool`.

    The defaults are the most lenient values.
    """

    needs_approval: bool = False
    effects: frozenset[str] = frozenset()
    read_only: bool = True
    concurrent: bool = True
    timeout_s: float | None = None
    file_access: bool = True
    idempotent: bool = True
    resumable: bool = True
    cacheable: bool = True

    @property
    def is_repeatable(self) -> bool:
        """True if a call that may already have been made can be repeated without asking."""
        return self.read_only or self.idempotent or self.resumable

    def stricter(self, other: Safety) -> Safety:
        """Combine the rules with `other`, using the stricter value of each attribute."""
        return Safety(
            needs_approval=self.needs_approval or other.needs_approval,
            effects=self.effects | other.effects,
            timeout_s=_shorter(self.timeout_s, other.timeout_s),
            **{name: getattr(self, name) and getattr(other, name) for name in _PERMISSIONS},
        )


def _shorter(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def claims_of(source: Claims, *, name: str) -> Safety:
    """Read the safety attributes of a descriptor or tool. A non-boolean value for a flag counts as the stricter value.

    A class's `needs_approval`, `effects`, `timeout_s` and `concurrent=False` apply even if an instance is more lenient.
    The other attributes default to False, so an instance may enable them.

    Raises:
        BrokenPluginError: A timeout is not a number of seconds, or `effects` is not a set of strings.
    """
    cls = type(source)
    class_effects = _read_effects(_class_value(cls, "effects", _NO_EFFECTS), name)
    return Safety(
        needs_approval=source.needs_approval is not False or getattr(cls, "needs_approval", False) is True,
        effects=_read_effects(source.effects, name) | class_effects,
        read_only=source.read_only is True,
        concurrent=source.concurrent is True and getattr(cls, "concurrent", True) is not False,
        timeout_s=_shorter(_read_seconds(source.timeout_s, name), _read_seconds(_class_value(cls, "timeout_s"), name)),
        file_access=source.file_access is True,
        idempotent=source.idempotent is True,
        resumable=source.resumable is True,
        cacheable=source.cacheable is True,
    )


def _class_value(cls: type, attribute: str, default: object = None) -> object:
    """Return an attribute's value on the class, or `default` for properties and slots, which need an instance."""
    value = getattr(cls, attribute, default)
    if value is default:
        return value
    return default if hasattr(value, "__get__") else value


def _read_seconds(value: object, name: str) -> float | None:
    if value is None or (fits(value, float) and 0 < cast(float, value) < math.inf):
        return cast("float | None", value)
    raise BrokenPluginError(f"tool {name!r}: timeout_s must be a number of seconds above 0, or None, got {value!r}")


def _read_effects(value: object, name: str) -> frozenset[str]:
    if value == _NO_EFFECTS:
        return _NO_EFFECTS
    if isinstance(value, set | frozenset | tuple | list) and all(isinstance(entry, str) for entry in value):
        return frozenset(value)
    raise BrokenPluginError(f"tool {name!r}: effects must be a set of strings, got {value!r}")


# --- settings ---------------------------------------------------------------------------------------------------------

CORE_SETTINGS = frozenset((*Safety.__dataclass_fields__, "approval"))
"""Tool settings that the core handles itself and does not pass to the tool."""


class SafetySettings(NamedTuple):
    """A user's safety settings for a tool.

    Except for `approval="never"`, such settings can only make the tool stricter.
    """

    claims: Safety = Safety()
    approval: Approval | None = None

    def apply(self, safety: Safety) -> Safety:
        """Return a tool's rules with these settings applied."""
        if self is NO_SETTINGS:
            return safety
        result = safety.stricter(self.claims)
        return result if self.approval is None else replace(result, needs_approval=self.approval == "always")


NO_SETTINGS = SafetySettings()


class Settable(Protocol):
    """A tool or toolset. This module cannot import either class, because both import it."""

    _settings: SafetySettings
    origin: tuple[Settable, int] | None


Part = TypeVar("Part", bound=Settable)


def with_settings(part: Part, settings: SafetySettings) -> Part:
    """Return a copy of a tool or toolset with additional settings. Other agents may be using the original."""
    if settings is NO_SETTINGS:
        return part
    own = part._settings
    changed = copy.copy(part)
    changed._settings = SafetySettings(own.claims.stricter(settings.claims), settings.approval or own.approval)
    if changed.origin is not None:  # tools that the toolset adds later get the same settings
        toolset, version = changed.origin
        changed.origin = (with_settings(toolset, settings), version)
    return changed


def split_settings(cfg: Mapping[str, Any], *, name: str) -> tuple[SafetySettings, dict[str, Any]]:
    """Split settings into the core's safety settings and the tool's own settings.

    Raises:
        ConfigError: A safety setting is not valid.
    """
    own = dict(cfg)
    core = {key: own.pop(key) for key in cfg if key in CORE_SETTINGS}
    if not core:
        return NO_SETTINGS, own
    approval = core.pop("approval", None)
    if approval not in (None, *get_args(Approval)):
        raise ConfigError(f"tool {name!r}: 'approval' must be 'always' or 'never', got {approval!r}")
    if approval == "never" and core.get("needs_approval") is True:
        raise ConfigError(
            f"tool {name!r}: 'needs_approval' and approval='never' contradict each other; remove one of them"
        )
    claims = Safety(**{key: _read_setting(key, value, name) for key, value in core.items()})
    return SafetySettings(claims, approval), own


_READERS: Mapping[str, Callable[[object, str], object]] = {"effects": _read_effects, "timeout_s": _read_seconds}


def _read_setting(key: str, value: object, name: str) -> Any:
    """Validate a setting that makes a tool stricter."""
    if read := _READERS.get(key):
        try:
            return read(value, name)
        except BrokenPluginError as error:
            raise ConfigError(str(error)) from None
    if not isinstance(value, bool):
        raise ConfigError(f"tool {name!r}: {key!r} must be true or false, got {value!r}")
    return value
