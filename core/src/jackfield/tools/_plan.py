"""The calls of one turn, with the decisions that precede them."""

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
    """A call with its id and its position in the turn."""

    index: int
    call_id: str
    call: FunctionCall


@dataclass(frozen=True, slots=True, eq=False)
class ReadyCall:
    """A call that may be made, possibly after approval.

    Attributes:
        planned: The call.
        tool: The agent's tool.
        safety: The rules for the call.
        arguments: The validated arguments, which are both shown for approval and used in the call.
        needs_approval: True if a person must approve the call.
        decision: The approval event if one of the agent's rules applied, otherwise None.
    """

    planned: PlannedCall
    tool: BaseTool
    safety: Safety
    arguments: dict[str, object]
    needs_approval: bool
    decision: ApprovalDecided | None


@dataclass(frozen=True, slots=True, eq=False)
class DeniedCall:
    """A call that must not be made.

    Attributes:
        planned: The call.
        safety: The rules for the call, or None if they are unknown.
        reason: The reason for the denial, written for the model.
        decision: The denial event if one of the agent's rules applied, otherwise None.
        needs_approval: Always False.
    """

    planned: PlannedCall
    safety: Safety | None
    reason: str
    decision: ApprovalDecided | None = None
    needs_approval: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class FailedCall:
    """A call that cannot be made because its tool is missing or cannot be loaded, or its arguments are not valid.

    Attributes:
        planned: The call.
        error: The reason for the failure.
        seconds: The time until the failure was detected, in seconds.
        safety: The rules for the call as far as they are known without loading the tool, or None.
        needs_approval: True if a run that has no approval function pauses at the call.
    """

    planned: PlannedCall
    error: Exception
    seconds: float
    safety: Safety | None = None
    needs_approval: bool = False


CheckedCall: TypeAlias = ReadyCall | DeniedCall | FailedCall


@dataclass(frozen=True, slots=True, eq=False)
class CallPlan:
    """The decisions about the calls of one turn, made by `ToolExecutor.plan`.

    Attributes:
        calls: All calls, in order.
        waiting: The calls that a person must approve or deny before the turn can continue. If any of these calls are in
            doubt, only the calls in doubt are included.
        doubtful: The ids of waiting calls that may have been made before and that the run must not repeat by itself.
        approve: The function that approves or denies calls that need approval, or None.
        answers: Earlier decisions, keyed by call id.
        in_doubt: The ids of all calls that were running when the run was interrupted.
    """

    calls: tuple[CheckedCall, ...]
    waiting: tuple[PlannedCall, ...]
    doubtful: frozenset[str]
    approve: Approve | None
    answers: Mapping[str, Decision]
    in_doubt: frozenset[str]
