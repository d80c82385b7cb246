"""Events of a model's answer and of an agent's run, in the order in which they happen.

Everything a person sees (growing text, a list of messages, a web page) is a fold over events. Events are frozen. Use
`match` on their class to read them.

Each class declares how its events are handled, so no other module needs a list of classes:

- `is_delta`: the event is a fragment of the model's answer. If the attempt fails, `StreamReset` withdraws it.
- `is_note`: the event only informs people, and does not change the run. Its recording may wait for the next step.
- `is_recorded`: the event becomes part of the run's record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from jackfield.messages import ContentItem, FinishReason, FunctionCall, Message, Usage

# --- from a model ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer's text."""

    is_delta = True
    is_note = False
    is_recorded = False

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More of the model's reasoning."""

    is_delta = True
    is_note = False
    is_recorded = False

    text: str


@dataclass(frozen=True, slots=True)
class FunctionCallDelta:
    """The next fragment of a tool call.

    Attributes:
        index: The call's position in the answer, starting at 0. Fragments of several calls may be interleaved.
        id: The call's id, carried by any one of its deltas, and '' on the others.
        name: The tool's complete name, carried by any one of the deltas, and '' on the others.
        arguments: More of the arguments' JSON text.
    """

    is_delta = True
    is_note = False
    is_recorded = False

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class MediaDelta:
    """A complete image, audio or video from the model."""

    is_delta = True
    is_note = False
    is_recorded = False

    item: ContentItem


@dataclass(frozen=True, slots=True)
class UsageReported:
    """The usage of the answer so far. The last such event counts."""

    is_delta = False
    is_note = False
    is_recorded = False

    usage: Usage


@dataclass(frozen=True, slots=True)
class ModelFinished:
    """The answer is complete. A model sends this event exactly once, at the end.

    Attributes:
        reason: The reason why the answer ended, in the same terms for all providers.
        model: The provider's name for the model that answered.
        response_id: The provider's id for the answer.
        created: The time of the answer, as a Unix timestamp in seconds.
        data: Data that the backend needs back with this answer in later requests. It is opaque to all other code.
        provider_reason: The provider's own term for the reason, or ''. Use it for display and logs; programs should
            compare `reason`.
    """

    is_delta = False
    is_note = False
    is_recorded = False

    reason: FinishReason
    model: str = ""
    response_id: str | None = None
    created: int | None = None
    data: Mapping[str, Any] | None = None
    provider_reason: str = ""

    @property
    def is_cut_off(self) -> bool:
        """True if the answer was cut off, in which case its last call may be incomplete."""
        return self.reason not in ("stop", "tool_calls")


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """An attempt failed, and another one follows after `delay_s` seconds."""

    is_delta = False
    is_note = True
    is_recorded = False

    attempt: int
    delay_s: float
    error: str


@dataclass(frozen=True, slots=True)
class StreamReset:
    """The answer starts over. Discard everything received of it so far."""

    is_delta = False
    is_note = False
    is_recorded = False

    reason: str


@dataclass(frozen=True, slots=True)
class HistoryTrimmed:
    """Old messages were dropped or shortened to fit the model's context."""

    is_delta = False
    is_note = True
    is_recorded = True

    dropped: int
    shortened: int
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True)
class PreparationProgress:
    """Progress of the preparations for an answer, such as reading and indexing documents, or starting servers.

    Attributes:
        step: A description of the work, for people: `reading files`.
        done: The number of finished items.
        total: The total number of items, or 0 if unknown.
        item: The current item, such as a file name, or '' if it has no name.
    """

    is_delta = False
    is_note = True
    is_recorded = False

    step: str
    done: int = 0
    total: int = 0
    item: str = ""

    @property
    def text(self) -> str:
        """The progress in one line: `reading files: 3 of 400, report.pdf`."""
        count = f"{self.done} of {self.total}" if self.total else ""
        details = ", ".join(part for part in (count, self.item) if part)
        return f"{self.step}: {details}" if details else self.step


@dataclass(frozen=True, slots=True)
class PluginEvent:
    """A plugin's report for which no event class exists.

    `name` starts with the name of the plugin's distribution. The text in `data["note"]` is displayed unchanged.
    """

    is_delta = False
    is_note = True
    is_recorded = True

    name: str
    data: Mapping[str, Any] = field(default_factory=dict)


ModelEvent: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | FunctionCallDelta
    | MediaDelta
    | UsageReported
    | ModelFinished
    | RetryScheduled
    | StreamReset
    | HistoryTrimmed
    | PreparationProgress
    | PluginEvent
)

# --- from a run -----------------------------------------------------------------------------------------------------

StopReason = Literal[
    "finished",
    "empty_reply",
    "turn_limit",
    "tool_call_limit",
    "token_limit",
    "cost_limit",
    "time_limit",
    "approval_needed",
    "input_needed",
    "cancelled",
]


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins with these messages."""

    is_delta = False
    is_note = False
    is_recorded = False  # not recorded as an event, because a record starts with these messages

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The agent is about to ask its model. `turn` counts from 1."""

    is_delta = False
    is_note = False
    is_recorded = False

    turn: int


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool call begins. `index` is its position among the calls of the turn, starting at 0."""

    is_delta = False
    is_note = False
    is_recorded = False

    index: int
    call_id: str
    call: FunctionCall


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """A running tool reports its progress."""

    is_delta = False
    is_note = True
    is_recorded = False

    index: int
    call_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A tool call ended, successfully or not.

    Attributes:
        message: The `function` message for the model.
        seconds: The duration of the call.
        error: The kind of failure, or '' on success. The message's text explains the failure to the model.
        metadata: Details for people but not for the model, such as the sandbox that ran the code. `still_running` is
            True for a call that timed out and could not be stopped. `traceback` is the full text of an error that was
            not written for the model. `notes` are an error's notes (`error.add_note`).
    """

    is_delta = False
    is_note = False
    is_recorded = True

    index: int
    call_id: str
    message: Message
    seconds: float
    error: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ApprovalNeeded:
    """These calls need approval. The run ends with `approval_needed`, and continues with `resume`.

    Attributes:
        calls: The calls as the model wrote them.
        call_ids: The ids of the calls, in the same order. `resume={call id: True}` approves a call.
        in_doubt: The ids of calls that were running when the program ended, and may have taken effect.
        agents: The agents that make the calls, in the same order, if some are subagents: '' for the agent itself,
            `helper`, or `helper/clerk` for an agent called by `helper`.
    """

    is_delta = False
    is_note = False
    is_recorded = True

    calls: tuple[FunctionCall, ...]
    call_ids: tuple[str, ...] = ()
    in_doubt: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ApprovalDecided:
    """A call was approved or denied, for the record. Calls that need no approval produce no such event.

    Attributes:
        call: The call as it will be made. If a rule decided, the call as the model wrote it.
        allowed: True if the call will be made.
        by: The origin of the decision: `approve` (the approval function), `resume` (a decision about a paused run),
            `read_only` or `allow_listed` (the agent's rule), `forbid` (the agent's forbidden effects), or `nobody` (the
            run has no approval function).
        reason: The reason why the call was denied, written for the model, or '' if it was allowed.
    """

    is_delta = False
    is_note = True
    is_recorded = True

    call_id: str
    call: FunctionCall
    allowed: bool
    by: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class HandedOff:
    """The agent `to` takes over the conversation, in the same run and within the same limits."""

    is_delta = False
    is_note = False
    is_recorded = True

    by: str
    to: str


@dataclass(frozen=True, slots=True)
class ResponseReplaced:
    """The run's whole response so far, from agents that yield lists of messages instead of deltas."""

    is_delta = False
    is_note = False
    is_recorded = False

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The model's answer is complete.

    `seconds` is the time from the request to the end of the answer, including retries. It is ignored in comparisons.
    """

    is_delta = False
    is_note = False
    is_recorded = True

    turn: int
    messages: tuple[Message, ...]
    usage: Usage
    seconds: float = field(default=0.0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The run ended normally or at a limit. `usage` is the total of all its turns."""

    is_delta = False
    is_note = False
    is_recorded = True

    stop_reason: StopReason
    messages: tuple[Message, ...]
    usage: Usage


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The run ended with an error, which is raised after this event.

    If a run is abandoned before it ends, only observers see this event, and `kind` is `GeneratorExit` or
    `CancelledError`.
    """

    is_delta = False
    is_note = False
    is_recorded = True

    error: str
    kind: str


AgentEvent: TypeAlias = (
    RunStarted
    | TurnStarted
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | ApprovalNeeded
    | ApprovalDecided
    | HandedOff
    | ResponseReplaced
    | TurnFinished
    | RunFinished
    | RunFailed
)


class RunEvent(NamedTuple):
    """An event with its run id, its number in the run (1, 2, 3 …), its agent and its depth.

    `depth` is 0 for the agent that the caller asked, 1 for its subagents, and so on. Each subagent has its own run,
    with its own id and numbers. Its events appear among those of the run that waits for it.
    """

    # A named tuple, because each delta needs one, and a frozen dataclass takes three times as long to create.
    run_id: str
    number: int
    agent: str
    depth: int
    event: ModelEvent | AgentEvent
