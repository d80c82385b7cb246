"""End a run in AG-UI: with success, front-end calls, interrupts, cancellation or an error."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jackfield.events import ApprovalNeeded, RunFailed, RunFinished
from jackfield.messages import FunctionCall, Usage
from jackfield.servers import Refusal, RequestRefusedError, failure_of
from jackfield.tools import Denial
from jackfield_ag_ui.history import Wire
from jackfield_serving import INPUT, WaitKind

_APPROVAL = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "reason": {"type": "string", "description": "Reason for denying the call, shown to the model."},
    },
    "required": ["approved"],
    "additionalProperties": False,
}
_TEXT = {"type": "string", "minLength": 1}
_YOUR_TURN = "It is your turn: enter your message."


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A pending call, or a person's turn, that a run is waiting for.

    Attributes:
        call_id: The id of the call or turn within the run.
        kind: `approval`, `client_tool` or `input`.
        interrupt: The AG-UI interrupt; empty for a call of a front-end tool.
    """

    call_id: str
    kind: WaitKind
    interrupt: Wire = field(default_factory=dict)


def waiting_calls(
    needed: ApprovalNeeded,
    id_of_call: Callable[[str, str], tuple[str, str]],
    client_tools: Collection[str],
    place: str,
) -> dict[str, Waiting]:
    """Return a run's pending calls, by the ids that the client sees.

    Args:
        needed: The pending calls.
        id_of_call: Returns the client's id of a call, and the nested agent that makes it.
        client_tools: The names of the front end's tools.
        place: The pause number and run id, appended to every id that is not a call's own.
    """
    agents = needed.agents or ("",) * len(needed.calls)
    waiting = {}
    for call, call_id, agent in zip(needed.calls, needed.call_ids, agents, strict=True):
        shown, maker = id_of_call(call_id, agent)
        if not agent and call.name in client_tools:
            waiting[shown] = Waiting(call_id=call_id, kind="client_tool")
            continue
        identity = f"{call_id}.{place}" if agent or not shown else shown
        interrupt = _approval(identity, call, agent, in_doubt=call_id in needed.in_doubt)
        if shown:
            interrupt["toolCallId"] = shown
        if maker:
            interrupt["subagentRunId"] = maker
        waiting[identity] = Waiting(call_id=call_id, kind="approval", interrupt=interrupt)
    return waiting


def input_wanted(place: str) -> dict[str, Waiting]:
    """Return the person's turn that a run is waiting for. For `place`, see `waiting_calls`."""
    identity = f"{INPUT}.{place}"
    interrupt = {"id": identity, "reason": "input_required", "message": _YOUR_TURN, "responseSchema": _TEXT}
    return {identity: Waiting(call_id=INPUT, kind="input", interrupt=interrupt)}


def read_answer(waiting: Waiting, payload: Any, param: str) -> Any:
    """Convert the answer to an interrupt to the run's format.

    An abandoned approval counts as rejected; for an abandoned input, return None.

    Raises:
        RequestRefusedError: The answer does not match the interrupt's response schema.
    """
    match waiting.kind, payload:
        case "approval", None:
            return False
        case "approval", {"approved": bool(approved), **rest} if not rest:
            return approved
        case "approval", {"approved": False, "reason": str(reason), **rest} if not rest:
            return Denial(reason)
        case "input", str(text) if text.strip():
            return text
        case "input", None:
            return None
    raise RequestRefusedError(f"{param}.payload does not match the responseSchema of the interrupt")


def error_event(refusal: Refusal | RequestRefusedError, usage: list[Wire] | None = None) -> Wire:
    """Return an AG-UI error event."""
    message = refusal.message if isinstance(refusal, Refusal) else str(refusal)
    event: Wire = {"type": "RUN_ERROR", "message": message, "code": refusal.code}
    return {**event, "usage": usage} if usage else event


def end_events(
    end: RunFinished | RunFailed | None, waiting: Mapping[str, Waiting], head: Wire, *, model: str, spent: Usage
) -> Iterator[Wire]:
    """Yield a run's final event.

    Args:
        end: The end of the run, or its last pause.
        waiting: The run's pending calls.
        head: The thread id and run id.
        model: The model that answered last.
        spent: The usage of the AG-UI runs that this one continues.
    """
    match end:
        case None:
            lost = RequestRefusedError("the run ended without a response", status=500, code="server_error")
            yield error_event(lost)
        case RunFailed():
            yield error_event(failure_of(end))
        case RunFinished():
            usage = _usage(end.usage, spent, model)
            outcome = _outcome(end.stop_reason, waiting)
            if outcome is None:
                reason = end.stop_reason
                limited = RequestRefusedError(f"the run reached a limit: {reason}", code=reason)
                yield error_event(limited, usage)
                return
            yield {"type": "RUN_FINISHED", **head, "outcome": outcome, **({"usage": usage} if usage else {})}


def _outcome(reason: str, waiting: Mapping[str, Waiting]) -> Wire | None:
    match reason:
        case "finished" | "empty_reply":
            return {"type": "success"}
        case "cancelled":
            return {"type": "cancelled"}
        case "approval_needed" | "input_needed":
            interrupts = [one.interrupt for one in waiting.values() if one.interrupt]
            if interrupts:
                return {"type": "interrupt", "interrupts": interrupts}
            return {"type": "success", "pendingToolCallIds": list(waiting)}
    return None


def _approval(identity: str, call: FunctionCall, agent: str, *, in_doubt: bool) -> Wire:
    message = f"May {agent or 'the agent'} call {call.name}?"
    if in_doubt:
        message += " The program stopped during this call, so the call may already have been made."
    metadata = {"tool": call.name, "arguments": call.arguments, "inDoubt": in_doubt}
    return {
        "id": identity,
        "reason": "tool_call",
        "message": message,
        "responseSchema": _APPROVAL,
        "metadata": {"jackfield": metadata},
    }


def _usage(usage: Usage, spent: Usage, model: str) -> list[Wire]:
    """Return a run's usage minus that of the runs it continues, or [] if unknown."""
    pairs = {
        "inputTokens": (usage.prompt_tokens, spent.prompt_tokens),
        "outputTokens": (usage.completion_tokens, spent.completion_tokens),
        "reasoningTokens": (usage.reasoning_tokens, spent.reasoning_tokens),
        "cachedInputTokens": (usage.cached_tokens, spent.cached_tokens),
    }
    counts = {name: now - before for name, (now, before) in pairs.items() if now > before}
    if not counts:
        return []
    counts["totalTokens"] = counts.get("inputTokens", 0) + counts.get("outputTokens", 0)
    return [{**({"model": model} if model else {}), **counts}]
