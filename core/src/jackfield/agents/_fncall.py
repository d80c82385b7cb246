"""The two basic agents: `BasicAgent` answers in one turn, and `FnCallAgent` calls tools."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import ClassVar

from jackfield.agents._base import Agent
from jackfield.runs._run import Event, Run
from jackfield.tools._base import Deps


class BasicAgent(Agent[Deps]):
    """Agent that calls its model once, without tools."""

    resumable = True
    answers_by_tool = True
    passes_events = True

    def events(self, run: Run) -> AsyncIterator[Event]:
        return self.make_loop(functions=()).events(run)


class FnCallAgent(Agent[Deps]):
    """Agent that runs the tool calls in each answer until an answer has no calls or a limit is reached."""

    resumable = True
    answers_by_tool = True
    passes_events = True
    supports_handoff: ClassVar[bool] = True

    def events(self, run: Run) -> AsyncIterator[Event]:
        return self.make_loop(functions=self.function_schemas(run.lang), toolbox=run.toolbox).events(run)
