"""The rules of an agent about the calls of its tools: which are asked about, and which are never made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias, get_args

from jackfield.errors import ConfigError
from jackfield.messages import FunctionCall
from jackfield.tools._base import BaseTool, ToolContext
from jackfield.tools._safety import Safety

Approve: TypeAlias = Callable[[FunctionCall, ToolContext], bool | Awaitable[bool]]
"""Decides before each call whether it may be made; only True allows it. A plain function runs in a worker thread."""

Approval: TypeAlias = Approve | Literal["marked", "ask", "read_only"] | Mapping[str, Any]
"""A function that is asked, a rule for which calls need approval, or both: see `Agent`."""

Ask = Literal["marked", "ask", "read_only", "allow_listed"]
EFFECTS = ("files", "network", "processes")


@dataclass(frozen=True, slots=True)
class CallRules:
    """What an agent allows.

    Attributes:
        ask: Which calls are asked about: those of tools that say so (`marked`), all (`ask`), all but those of tools
            that only read and do not say so (`read_only`), or all but those of tools in `allow` (`allow_listed`).
        allow: Patterns of names.
        forbid: Effects. Calls of tools that have one of them are never made.
        outer: Those of an agent that this one works for, which hold, too.
    """

    ask: Ask = "marked"
    allow: tuple[str, ...] = ()
    forbid: frozenset[str] = frozenset()
    outer: CallRules | None = None

    def within(self, outer: CallRules) -> CallRules:
        """These rules, and those of an agent that this one works for: the stricter wins."""
        return replace(self, forbid=self.forbid | outer.forbid, outer=outer) if outer != NO_RULES else self

    @property
    def name(self) -> str:
        """The nearest rule that says more than `marked`."""
        return self.outer.name if self.ask == "marked" and self.outer else self.ask

    def asks_about(self, tool: BaseTool, safety: Safety) -> bool:
        """Whether somebody must agree to a call. What the user said of this one tool wins."""
        return self._asks_about(tool, safety) or (self.outer is not None and self.outer.asks_about(tool, safety))

    def _asks_about(self, tool: BaseTool, safety: Safety) -> bool:
        if self.ask == "marked" or tool._settings.approval is not None:
            return safety.needs_approval
        if self.ask == "read_only":
            return safety.needs_approval or not safety.read_only
        # With no pattern, all calls are asked about.
        return not any(fnmatchcase(tool.name, pattern) for pattern in self.allow)


NO_RULES = CallRules()


def read_approval(approve: Approval | None, forbid: Collection[str]) -> tuple[CallRules, Approve | None]:
    """The rules, and who is asked.

    Raises:
        ConfigError: A rule or an effect is unknown.
    """
    given = {"ask": approve} if isinstance(approve, str) else approve
    if not isinstance(given, Mapping):
        given = {"by": approve}
    by = given.get("by")
    if by is not None and not callable(by):
        raise ConfigError(f"approve must be a function or a rule, not {type(by).__name__}")
    ask, allow = _asked(given)
    return CallRules(ask, allow, _effects(forbid)), by


def _asked(given: Mapping[str, Any]) -> tuple[Ask, tuple[str, ...]]:
    if unknown := set(given) - {"ask", "allow", "by"}:
        raise ConfigError(f"approve takes 'ask', 'allow' and 'by', not {min(unknown)!r}")
    allow = given.get("allow")
    ask: Any = given.get("ask", "marked" if allow is None else "allow_listed")
    if ask not in get_args(Ask):
        raise ConfigError(f"approve must be a function or one of {', '.join(get_args(Ask))}, not {ask!r}")
    if (ask == "allow_listed") != (allow is not None) or isinstance(allow, str):
        raise ConfigError("approve='allow_listed' needs the names of tools: write approve={'allow': ['search_*', …]}")
    return ask, tuple(allow or ())


def _effects(forbid: Collection[str]) -> frozenset[str]:
    if unknown := {forbid} if isinstance(forbid, str) else set(forbid) - set(EFFECTS):
        raise ConfigError(f"forbid must be a list of effects ({', '.join(EFFECTS)}), not {min(unknown)!r}")
    return frozenset(forbid)
