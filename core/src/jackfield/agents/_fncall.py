"""The two basic agents: one answer, and answers with tools."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import ClassVar

from jackfield._lazy import method_of
from jackfield.agents._base import Agent
from jackfield.agents._run import Event, Run

_handed_on = method_of("jackfield.agents._handoffs", "handed_on", of="handoffs")


class BasicAgent(Agent):
    """Asks its model once, without tools."""

    goes_on = True
    passes_events = True

    def _events(self, run: Run) -> AsyncIterator[Event]:
        return self.make_loop(functions=()).events(run)


class FnCallAgent(Agent):
    """Asks its model, runs the tools it calls, and asks again, until it calls none or a limit is reached."""

    goes_on = True
    passes_events = True
    hands_off: ClassVar[bool] = True

    def _events(self, run: Run) -> AsyncIterator[Event]:
        loop = self.make_loop(functions=self.function_schemas(run.lang), toolbox=run.toolbox)
        events = loop.events(run)
        return _handed_on(self, run, events) if self.handoffs or run.handing or run.later else events
