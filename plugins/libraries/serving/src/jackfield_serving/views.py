"""Agents, runs and sessions as a service shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from jackfield.messages import FunctionCall, Message, Usage

RunPhase = Literal["queued", "running", "waiting", "ended"]
WaitKind = Literal["approval", "client_tool", "input", "question"]

INPUT = "input"
"""The id of a person's message in the answers to a run that waits for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInfo:
    """A tool of an agent.

    Attributes:
        name, description: The tool's name and purpose, for a model.
        parameters: The JSON Schema of its arguments.
        read_only: A call changes nothing.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    read_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentInfo:
    """An agent of a service.

    Attributes:
        name: The agent's name in the service.
        description: The agent's purpose.
        model: The agent's model as `backend:model`; '' if it has none.
        images, audio, video, files: The agent's model takes content of this kind.
        tools: The names of the agent's own tools, without those made for each run.
        takes_client_tools: Requests may bring tools that the client runs.
        takes_output: Requests may ask for JSON of a schema.
        workspace: The folder below which its tools work. Faces show it only to clients on this machine.
        suggestions: Questions for a person who has not asked anything yet.
        models: Models that people may choose instead of `model`.
        adjustable: The options of the model that people may change, with their values; None where the model decides.
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
        call_id: The key of its answer.
        call: The call; its arguments are those that will be used.
        kind: `approval`: answer True, False or `Denial(reason)`. `client_tool`: answer with the result.
            `input`: answer with a text. `question`: a running call, such as one of an MCP server, asks for something;
            answer as for an approval, or with the values of the `form` among its arguments.
        agent: The nested agent that makes the call; ''.
        in_doubt: The call was in progress when a process ended, and may have been made.
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
        run_id, agent, session, owner: The run, and the agent, session and owner it belongs to.
        phase: `queued`, `running`, `waiting` (for answers) or `ended`.
        stop_reason: The reason why it ended or waits, as in `RunFinished`; `failed` after an error; '' while it runs.
        title: The beginning of the question.
        parent: The run that it was forked from, or ''.
        began, changed: The times when it began and when its phase last changed, in seconds since 1970, UTC.
        number: The number of its last recorded event; `attach(after=number)` yields what follows. A record only grows,
            so a run with the same id, `began` and `number` has the same content.
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
        messages: The messages that it began with.
        response: The complete messages that it has produced so far.
        usage: The usage of its complete turns so far.
        waiting: The calls that it waits for.
        error, error_kind: The text and the class of the error that ended it; ''.
        text: The text of its answer so far.
        output: The answer as JSON, if the request had a schema and the run has finished.
        request: The parts of the request that are not messages: `config`, `output`, `client_tools`, `continues`.
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
    """A conversation in which a search has a hit.

    Attributes:
        session: The id of the conversation.
        run_id: The latest run with a hit.
        agent: The agent of this run.
        excerpt: A part of the run's question or answers around a word of the search.
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
        session: The id of the conversation.
        agent: The agent of its latest run.
        last_run: The id of the latest run, whose conversation the next run continues.
        runs: The number of its runs.
        title: The beginning of its first question, or the title that a person gave it.
        began, changed: The times when its first run began and when its latest run changed.
    """

    session: str
    agent: str = ""
    last_run: str = ""
    runs: int = 0
    title: str = ""
    began: float = 0.0
    changed: float = 0.0
