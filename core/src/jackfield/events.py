"""Events of a model's answer and an agent's run, in the order in which they occur.

Everything that a person sees (growing text, a list of messages, a web page) is a fold over events. Events are frozen.
To read them, use `match` on their class.

Each event class declares how its events are handled, so no other module needs a list of classes:

- `is_delta`: the event is a fragment of the model's answer. If the attempt fails, `StreamReset` withdraws it.
- `is_note`: the event only informs people and does not change the run. Such events may be recorded later, with the
  next step.
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
        id: The call's id in one of the call's deltas, '' in all others.
        name: The tool's complete name in one of the call's deltas, '' in all others.
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
    """The usage of the answer so far. Only the last such event counts."""

    is_delta = False
    is_note = False
    is_recorded = False

    usage: Usage


@dataclass(frozen=True, slots=True)
class ModelFinished:
    """The answer is complete. A model sends this event exactly once, at the end.

    Attributes:
        reason: The reason why the answer ended, using the same terms for all providers.
        model: The provider's name for the model that answered.
        response_id: The provider's id for the answer.
        created: The time of the answer, as a Unix timestamp in seconds.
        data: Data that the backend needs in later requests that include this answer. The data is opaque to all other
            code.
        provider_reason: The provider's own term for the reason, or ''. Use this value for display and logging only. To
            compare reasons, use `reason`.
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
    """An attempt failed and will be retried after `delay_s` seconds."""

    is_delta = False
    is_note = True
    is_recorded = False

    attempt: int
    delay_s: float
    error: str


@dataclass(frozen=True, slots=True)
class StreamReset:
    """The answer starts over. Discard everything received so far for this answer."""

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
    """Progress of the preparations for an answer, such as indexing documents or starting servers.

    Attributes:
        step: A description of the work for people, such as `reading files`.
        done: The number of finished items.
        total: The total number of items, or 0 if unknown.
        item: The current item, such as a file name, or '' if the item has no name.
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
        """The progress in one line, such as `reading files: 3 of 400, report.pdf`."""
        count = f"{self.done} of {self.total}" if self.total else ""
        details = ", ".join(part for part in (count, self.item) if part)
        return f"{self.step}: {details}" if details else self.step


@dataclass(frozen=True, slots=True)
class PluginEvent:
    """An event from a plugin, for use where no event class fits.

    `name` starts with the plugin's distribution name. The text in `data["note"]` is displayed unchanged.
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
    """A run starts with these messages."""

    is_delta = False
    is_note = False
    is_recorded = False  # not recorded as an event, because a record starts with these messages

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The agent is about to call its model. `turn` counts from 1."""

    is_delta = False
    is_note = False
    is_recorded = False

    turn: int


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool call starts. `index` is its position among the turn's calls, counted from 0."""

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
        seconds: The duration of the call, in seconds.
        error: The kind of failure, or '' on success. The message's text explains the failure to the model.
        metadata: Details for people but not for the model, such as the sandbox that ran the code. `still_running` is
            True if the call timed out and could not be stopped. `traceback` is the full text of an error that was not
            written for the model. `notes` contains an error's notes (`error.add_note`).
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
    """These calls need approval. The run ends with `approval_needed`; use `resume` to continue it.

    Attributes:
        calls: The calls as the model wrote them.
        call_ids: The ids of the calls, in the same order. To approve a call, pass `resume={call id: True}`.
        in_doubt: The ids of calls that were running when the program exited and may have taken effect.
        agents: The agents that make the calls, in the same order, if any of them are subagents. The value is '' for the
            agent itself, `helper` for a subagent of that name, and `helper/clerk` for an agent that `helper` calls.
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
    """A call was approved or denied. Calls that need no approval produce no such event.

    Attributes:
        call: The call as it will be made or, if a rule made the decision, as the model wrote it.
        allowed: True if the call will be made.
        by: The source of the decision: `approve` (the approval function), `resume` (a decision passed to a paused run),
            `read_only` or `allow_listed` (the agent's rule), `forbid` (the agent's forbidden effects), or `nobody` (the
            run has no approval function).
        reason: The reason why the call was denied, written for the model, or '' if the call was allowed.
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
    """The agent `to` takes over the conversation within the same run and the same limits."""

    is_delta = False
    is_note = False
    is_recorded = True

    by: str
    to: str


@dataclass(frozen=True, slots=True)
class ResponseReplaced:
    """The run's entire response so far, from agents that yield lists of messages instead of deltas."""

    is_delta = False
    is_note = False
    is_recorded = False

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The model's answer is complete.

    `seconds` is the time from the request to the end of the answer, including retries. Comparisons ignore it.
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
    """The run ended normally or at a limit. `usage` is the total usage of all its turns."""

    is_delta = False
    is_note = False
    is_recorded = True

    stop_reason: StopReason
    messages: tuple[Message, ...]
    usage: Usage


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The run ended with an error, which is raised after this event.

    If a run is abandoned before it ends, only observers receive this event, and `kind` is `GeneratorExit` or
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
    """An event, with its run's id, its number in the run (1, 2, 3 …), its agent and its depth.

    `depth` is 0 for the top-level agent, 1 for its subagents, and so on. Each subagent has its own run
    with its own id and event numbers. The subagent's events are interleaved with those of its parent run.
    """

    # A named tuple, because each delta needs one, and a frozen dataclass takes three times as long to create.
    run_id: str
    number: int
    agent: str
    depth: int
    event: ModelEvent | AgentEvent
