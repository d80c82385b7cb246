"""An agent's rules for which tool calls need approval and which are never made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from jackfield.errors import ConfigError
from jackfield.messages import FunctionCall
from jackfield.tools._base import BaseTool, ToolContext
from jackfield.tools._safety import Safety


@dataclass(frozen=True, slots=True)
class Denial:
    """A decision to deny a call, with a reason for the model. Like False, it is falsy."""

    reason: str

    def __bool__(self) -> bool:
        return False


Decision: TypeAlias = bool | Denial
"""True allows a call. False or a `Denial` denies it."""

Approve: TypeAlias = Callable[[FunctionCall, ToolContext], Decision | Awaitable[Decision]]
"""A function that decides about a call before it is made. It runs in a worker thread unless it is async."""

Answer: TypeAlias = Decision | Mapping[str, object]
Ask: TypeAlias = Callable[[FunctionCall, ToolContext], Answer | Awaitable[Answer]]
"""A function that answers a question raised during a call, with a decision or with values for the question's form."""

Approval: TypeAlias = Approve | Literal["marked", "ask", "read_only"] | Mapping[str, Any]
"""A function that decides about calls, a rule that selects the calls that need approval, or both; see `Agent`."""

_Rule = Literal["marked", "ask", "read_only", "allow_listed"]
EFFECTS = ("files", "network", "processes")


class CallRules(NamedTuple):
    """An agent's rules about tool calls.

    Attributes:
        ask: The calls that need approval: calls to tools with `needs_approval` (`marked`), all calls (`ask`), all
            except calls to read-only tools without `needs_approval` (`read_only`), or all except calls to tools in
            `allow` (`allow_listed`).
        allow: Patterns of tool names.
        forbid: Forbidden effects. Calls to tools with any of these effects are never made.
        outer: The parent agent's rules, which apply as well.
    """

    ask: _Rule = "marked"
    allow: tuple[str, ...] = ()
    forbid: frozenset[str] = frozenset()
    outer: CallRules | None = None

    def within(self, outer: CallRules) -> CallRules:
        """Return these rules combined with a parent agent's rules. The stricter rule wins."""
        return self._replace(forbid=self.forbid | outer.forbid, outer=outer) if outer != NO_RULES else self

    @property
    def name(self) -> str:
        """The nearest rule other than `marked`."""
        return self.outer.name if self.ask == "marked" and self.outer else self.ask

    def need_approval(self, tool: BaseTool, safety: Safety) -> bool:
        """Return True if a person must approve calls to the tool. The tool's `approval` setting overrides `ask`."""
        outer = self.outer
        return self._need_approval(tool, safety) or (outer is not None and outer.need_approval(tool, safety))

    def _need_approval(self, tool: BaseTool, safety: Safety) -> bool:
        if self.ask == "marked" or tool._settings.approval is not None:
            return safety.needs_approval
        if self.ask == "read_only":
            return safety.needs_approval or not safety.read_only
        # Without patterns, all calls need approval.
        return not any(fnmatchcase(tool.name, pattern) for pattern in self.allow)


NO_RULES = CallRules()


def read_approval(approve: Approval | None, forbid: Collection[str]) -> tuple[CallRules, Approve | None]:
    """Parse the `approve` and `forbid` options. Return the rules, and the function that approves or denies calls.

    Raises:
        ConfigError: A rule or an effect is unknown.
    """
    options: Mapping[str, Any]
    if isinstance(approve, str):
        options = {"ask": approve}
    else:
        options = approve if isinstance(approve, Mapping) else {"by": approve}
    by = options.get("by")
    if by is not None and not callable(by):
        raise ConfigError(f"approve must be a function or a rule, got {type(by).__name__}")
    ask, allow = _read_rule(options)
    if not isinstance(forbid, Iterable):
        raise ConfigError(f"forbid must be a list of effects ({', '.join(EFFECTS)}), got {type(forbid).__name__}")
    if unknown := {forbid} if isinstance(forbid, str) else set(forbid) - set(EFFECTS):
        raise ConfigError(f"forbid must be a list of effects ({', '.join(EFFECTS)}), got {min(unknown, key=str)!r}")
    return CallRules(ask, allow, frozenset(forbid)), by


def _read_rule(options: Mapping[str, Any]) -> tuple[_Rule, tuple[str, ...]]:
    if unknown := set(options) - {"ask", "allow", "by"}:
        raise ConfigError(f"approve: unknown key {min(unknown)!r}; use 'ask', 'allow' or 'by'")
    allow = options.get("allow")
    ask: Any = options.get("ask", "marked" if allow is None else "allow_listed")
    if ask not in get_args(_Rule):
        raise ConfigError(f"approve must be a function or one of {', '.join(get_args(_Rule))}, got {ask!r}")
    if (ask == "allow_listed") != (allow is not None) or isinstance(allow, str):
        raise ConfigError("approve='allow_listed' needs a list of tool names: use approve={'allow': ['search_*', …]}")
    return ask, tuple(allow or ())
