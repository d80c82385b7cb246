"""Serve agents. A run is a resource that lives until it ends, with or without connected clients."""

from __future__ import annotations

from jackfield_serving.addresses import is_public_url, markdown_of, public_address
from jackfield_serving.agents import AgentSource, load_agent
from jackfield_serving.connections import ClientLeftError, read_disconnect, while_connected
from jackfield_serving.errors import (
    AgentNotFoundError,
    DrainingError,
    InputTooLargeError,
    NotWaitingError,
    OptionsRefusedError,
    ServingError,
    SessionBusyError,
    TooManyRunsError,
)
from jackfield_serving.limits import ServingLimits
from jackfield_serving.memory import MemoryStore
from jackfield_serving.numbering import Numbered
from jackfield_serving.questions import QUESTION
from jackfield_serving.requests import Answer
from jackfield_serving.serving import Serving
from jackfield_serving.sse import EventStream
from jackfield_serving.views import (
    INPUT,
    AgentInfo,
    RunInfo,
    RunPhase,
    RunSummary,
    SearchHit,
    SessionInfo,
    ToolInfo,
    WaitingCall,
    WaitKind,
)

__all__ = [
    "INPUT",
    "QUESTION",
    "AgentInfo",
    "AgentNotFoundError",
    "AgentSource",
    "Answer",
    "ClientLeftError",
    "DrainingError",
    "EventStream",
    "InputTooLargeError",
    "MemoryStore",
    "NotWaitingError",
    "Numbered",
    "OptionsRefusedError",
    "RunInfo",
    "RunPhase",
    "RunSummary",
    "SearchHit",
    "Serving",
    "ServingError",
    "ServingLimits",
    "SessionBusyError",
    "SessionInfo",
    "TooManyRunsError",
    "ToolInfo",
    "WaitKind",
    "WaitingCall",
    "is_public_url",
    "load_agent",
    "markdown_of",
    "public_address",
    "read_disconnect",
    "while_connected",
]
