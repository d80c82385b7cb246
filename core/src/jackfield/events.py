"""What happens, as it happens: the events of a model's answer and of an agent's run.

Everything a person sees (a growing text, a list of messages, a web page) is a fold over these. They are frozen, and
`match` on their class is the way to read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from jackfield.messages import ContentItem, FinishReason, FunctionCall, Message, Usage

# --- from a model ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class FunctionCallDelta:
    """More of a tool call.

    Attributes:
        index: Which call of this answer, from 0. Calls may arrive interleaved.
        id: The call's id, on any delta of the call; '' on the others.
        name: The tool's name, whole, on any delta of the call; '' on the others.
        arguments: More of the arguments' JSON text.
    """

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class MediaDelta:
    """An image, audio or video that the model made, whole."""

    item: ContentItem


@dataclass(frozen=True, slots=True)
class UsageReported:
    """What the answer cost; the last one counts."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class ModelFinished:
    """The answer is complete: exactly one, and the last event of a model.

    Attributes:
        reason: Why it ended, in a term that is the same for all providers.
        model: The model that answered, as the provider names it.
        response_id: The provider's id of the answer.
        created: When, in seconds since 1970, UTC.
        data: Data that the backend needs back with this answer in a later request; opaque to everybody else.
        provider_reason: The provider's own term for the reason; '' if it has none. For people and logs: no
            program should compare it.
    """

    reason: FinishReason
    model: str = ""
    response_id: str | None = None
    created: int | None = None
    data: Mapping[str, Any] | None = None
    provider_reason: str = ""

    @property
    def is_cut_off(self) -> bool:
        """Whether the answer was cut off: a call in it may be incomplete."""
        return self.reason not in ("stop", "tool_calls")


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """An attempt failed; another follows after `delay_s` seconds."""

    attempt: int
    delay_s: float
    error: str


@dataclass(frozen=True, slots=True)
class StreamReset:
    """Forget all of this answer so far: it starts again."""

    reason: str


@dataclass(frozen=True, slots=True)
class HistoryTrimmed:
    """Old messages were left out or shortened to fit the model's context; `dropped` and `shortened` say how many."""

    dropped: int
    shortened: int
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True)
class PluginEvent:
    """Something that a plugin reports and for which there is no other event.

    `name` begins with the plugin's distribution. A text in `data["note"]` is shown to people unchanged.
    """

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
    """A run begins, with these messages."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A model is about to be asked; `turn` counts from 1."""

    turn: int


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool call begins. `index` is its place among the calls of this turn, from 0."""

    index: int
    call_id: str
    call: FunctionCall


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """A running tool says how far it is."""

    index: int
    call_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A tool call ended, well or not.

    Attributes:
        message: The `function` message for the model.
        seconds: How long it took.
        error: The kind of failure, '' when there was none; the message's text tells the model.
        metadata: What the tool reports to people but not to the model (which sandbox ran the code …). Of a call whose
            time is over and that could not be stopped, `still_running` is True. Of an error that was not written for
            the model, `traceback` has all of it. Of one with notes (`error.add_note`), which are for people, `notes`
            has them.
    """

    index: int
    call_id: str
    message: Message
    seconds: float
    error: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ApprovalNeeded:
    """These calls need approval; the run ends with `approval_needed` and can be continued with `resume`.

    Attributes:
        calls: As the model wrote them.
        call_ids: Their ids, in the same order: `resume={call id: True}` approves a call.
        in_doubt: The ids of those that were under way when the program ended: they may have been made already.
        agents: Whose they are, in the same order, where some are calls of agents below: `helper`, or `helper/clerk` for
            an agent that `helper` has asked; '' for the agent's own.
    """

    calls: tuple[FunctionCall, ...]
    call_ids: tuple[str, ...] = ()
    in_doubt: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ApprovalDecided:
    """Whether a call may be made was decided; for the record. Calls that nobody asks about have none.

    Attributes:
        call: As it is made; one that no person was asked about, as the model wrote it.
        allowed: Whether it is made.
        by: `approve` (the function that is asked), `resume` (an answer to a paused run), `read_only` or `allow_listed`
            (the agent's rule), `forbid` (the effects that it forbids), or `nobody` (there was nobody to ask).
        reason: Why not, as the model reads it; '' if it is made.
    """

    call_id: str
    call: FunctionCall
    allowed: bool
    by: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class HandedOff:
    """From here on, the agent `to` has the conversation, in the same run and within the same limits."""

    by: str
    to: str


@dataclass(frozen=True, slots=True)
class ResponseReplaced:
    """The whole response of the run so far: from agents that yield whole lists instead of deltas."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The model has answered, and its answer is complete."""

    turn: int
    messages: tuple[Message, ...]
    usage: Usage


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The run ended as it should, or at a limit; `usage` sums all its turns."""

    stop_reason: StopReason
    messages: tuple[Message, ...]
    usage: Usage


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The run ended with an error, which is raised after this event.

    If a run is abandoned before it ends, only observers see this event; `kind` is then `GeneratorExit` or
    `CancelledError`.
    """

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


@dataclass(frozen=True, slots=True)
class RunEvent:
    """An event of a run, with its place: which run, its number in it (1, 2, 3 …), which agent, how deep.

    `depth` is 0 for the agent that was asked, 1 for an agent it asked, and so on. An agent that another one asked has a
    run of its own, with its own id and numbers; its events stand between those of the run that waits for it.
    """

    run_id: str
    number: int
    agent: str
    depth: int
    event: ModelEvent | AgentEvent
