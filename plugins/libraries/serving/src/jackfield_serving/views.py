"""Agents, runs and sessions as shown to clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from jackfield.messages import FunctionCall, Message, Usage

RunPhase = Literal["queued", "running", "waiting", "ended"]
WaitKind = Literal["approval", "client_tool", "input", "question"]

INPUT = "input"
"""The key for a person's message in the answers to a run that waits for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInfo:
    """An agent's tool.

    Attributes:
        name, description: The tool's name and purpose, for a model.
        parameters: The JSON Schema of the arguments.
        read_only: True if calls change nothing.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    read_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentInfo:
    """An agent in a service.

    Attributes:
        name: The agent's name in the service.
        description: The agent's purpose.
        model: The agent's model as `backend:model`, or '' if it has none.
        images, audio, video, files: True if the agent's model accepts this type of content.
        tools: The names of the agent's own tools, except for those created per run.
        takes_client_tools: True if requests may include tools that run on the client.
        takes_output: True if requests may ask for JSON that matches a schema.
        workspace: The folder in which the agent's tools work. Faces show it only to clients on this machine.
        suggestions: Questions to suggest to a person who has not asked anything yet.
        models: Models that people may choose instead of `model`.
        adjustable: The model options that people may change, with their values. A value of None leaves the choice to
            the model.
    """

    name: str
    description: str = ""
    model: str = ""
    images: bool = False
    audio: bool = False
    video: bool = False
    files: bool = False
    tools: tuple[str, ...] = ()
    takes_client_tools: bool = True
    takes_output: bool = True
    workspace: str = ""
    suggestions: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    adjustable: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingCall:
    """A call that a run waits for.

    Attributes:
        call_id: The key for its answer.
        call: The call, with the arguments that will be used.
        kind: The type of answer. `approval`: True, False or `Denial(reason)`. `client_tool`: the result. `input`: text.
            `question`: a running call, such as one to an MCP server, asks for something; answer as for an approval, or
            with the values of the `form` in its arguments.
        agent: The nested agent that makes the call, or ''.
        in_doubt: True if the call was in progress when a process ended, and may have been made.
    """

    call_id: str
    call: FunctionCall
    kind: WaitKind = "approval"
    agent: str = ""
    in_doubt: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A run in a list.

    Attributes:
        run_id, agent, session, owner: The run's id, and the agent, session and owner it belongs to.
        phase: `queued`, `running`, `waiting` (for answers) or `ended`.
        stop_reason: The reason why the run ended or waits, as in `RunFinished`; `failed` after an error; '' while
            running.
        title: The beginning of the question.
        parent: The run that this one was forked from, or ''.
        began, changed: The times when the run began and when its phase last changed, in seconds since 1970 (UTC).
        number: The number of the last recorded event; `attach(after=number)` yields all later ones. Records are
            append-only, so a run with the same id, `began` and `number` has the same content.
    """

    run_id: str
    agent: str
    session: str = ""
    owner: str = ""
    phase: RunPhase = "running"
    stop_reason: str = ""
    title: str = ""
    parent: str = ""
    began: float = 0.0
    changed: float = 0.0
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo(RunSummary):
    """A run with its messages.

    Attributes:
        messages: The messages that the run began with.
        response: The complete messages produced so far.
        usage: The usage of all complete turns so far.
        waiting: The calls that the run waits for.
        error, error_kind: The message and class of the error that ended the run, or ''.
        text: The answer's text so far.
        output: The answer as JSON, if the request had a schema and the run has finished.
        request: The request apart from its messages: `config`, `output`, `client_tools`, `continues`.
    """

    messages: tuple[Message, ...] = ()
    response: tuple[Message, ...] = ()
    usage: Usage = field(default_factory=Usage)
    waiting: tuple[WaitingCall, ...] = ()
    error: str = ""
    error_kind: str = ""
    text: str = ""
    output: Any = None
    request: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A conversation with a search hit.

    Attributes:
        session: The conversation's id.
        run_id: The latest run with a hit.
        agent: The agent of that run.
        excerpt: An excerpt from the run's question or answers, around a word of the search.
        changed: The time when the run last changed.
    """

    session: str
    run_id: str
    agent: str = ""
    excerpt: str = ""
    changed: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """A conversation.

    Attributes:
        session: The conversation's id.
        agent: The latest run's agent.
        last_run: The latest run's id. The next run continues its conversation.
        runs: The number of runs.
        title: The title set by a person, or the beginning of the first question.
        began, changed: The times when the first run began and when the latest run changed.
    """

    session: str
    agent: str = ""
    last_run: str = ""
    runs: int = 0
    title: str = ""
    began: float = 0.0
    changed: float = 0.0
