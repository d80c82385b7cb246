"""The calls of one turn, and the decisions about them before any call is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from jackfield.events import ApprovalDecided
from jackfield.messages import FunctionCall
from jackfield.tools._base import BaseTool
from jackfield.tools._rules import Approve, Decision
from jackfield.tools._safety import Safety

NO_ANSWERS: Mapping[str, Decision] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call with its id and its position among the calls of the turn."""

    index: int
    call_id: str
    call: FunctionCall


@dataclass(frozen=True, slots=True, eq=False)
class ReadyCall:
    """A call that may be made, perhaps after approval.

    Attributes:
        planned: The call.
        tool: The agent's tool.
        safety: The rules for the call.
        arguments: The checked arguments. The approved arguments are the ones used.
        needs_approval: True if a person must approve the call.
        decision: The approval by a rule of the agent, for the record; None if no rule is involved.
    """

    planned: PlannedCall
    tool: BaseTool
    safety: Safety
    arguments: dict[str, object]
    needs_approval: bool
    decision: ApprovalDecided | None


@dataclass(frozen=True, slots=True, eq=False)
class RefusedCall:
    """A call that is not made.

    Attributes:
        planned: The call.
        safety: The rules for the call; None if they are unknown.
        reason: The reason for the refusal, written for the model.
        decision: The refusal by a rule of the agent, for the record; None if no rule is involved.
        needs_approval: False.
    """

    planned: PlannedCall
    safety: Safety | None
    reason: str
    decision: ApprovalDecided | None = None
    needs_approval: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class FailedCall:
    """A call that cannot be made: its tool is missing or cannot be loaded, or its arguments do not fit.

    Attributes:
        planned: The call.
        error: The reason why it cannot be made.
        seconds: The time until the failure was known.
        safety: The rules for the call that are known without loading the tool; None if they are unknown.
        needs_approval: True if a run without an approval function pauses at the call.
    """

    planned: PlannedCall
    error: Exception
    seconds: float
    safety: Safety | None = None
    needs_approval: bool = False


CheckedCall: TypeAlias = ReadyCall | RefusedCall | FailedCall


@dataclass(frozen=True, slots=True, eq=False)
class CallPlan:
    """The decisions about the calls of one turn, made by `ToolExecutor.plan`.

    Attributes:
        calls: All calls, in order.
        waiting: The calls that need a person's answer before the turn can continue; if any are in doubt, only those.
        doubtful: The ids of waiting calls that may have been made before and that no rule allows to repeat.
        approve: The function that decides about calls that need approval; None if there is none.
        answers: Earlier decisions, by call id.
        in_doubt: The ids of all calls that were running when the run was interrupted.
    """

    calls: tuple[CheckedCall, ...]
    waiting: tuple[PlannedCall, ...]
    doubtful: frozenset[str]
    approve: Approve | None
    answers: Mapping[str, Decision]
    in_doubt: frozenset[str]
