"""Agent runs: requests, progress, recorders and observers."""

from __future__ import annotations

from jackfield._resources import RunResources
from jackfield._runstate import RunState, Spent
from jackfield.runs._calls import open_calls, with_calls_closed
from jackfield.runs._observers import Observer
from jackfield.runs._preparation import Preparation, ReportProgress
from jackfield.runs._run import (
    AgentLike,
    Event,
    Handoff,
    ParentRun,
    Part,
    Record,
    Recorded,
    Recorder,
    Run,
    RunConfig,
    TurnView,
)
from jackfield.runs._view import Response, RunView

__all__ = [
    "AgentLike",
    "Event",
    "Handoff",
    "Observer",
    "ParentRun",
    "Part",
    "Preparation",
    "Record",
    "Recorded",
    "Recorder",
    "ReportProgress",
    "Response",
    "Run",
    "RunConfig",
    "RunResources",
    "RunState",
    "RunView",
    "Spent",
    "TurnView",
    "open_calls",
    "with_calls_closed",
]
