"""The summary of a finished run: its sources, what it used, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from jackfield.events import PluginEvent, RunEvent, RunFinished, ToolFinished, TurnStarted
from jackfield.messages import Usage
from jackfield.results import sources_in

_SMALL = Decimal("0.0001")


@dataclass(slots=True)
class Account:
    """A fold over the events of a run, or of several."""

    clock: Callable[[], float] = time.monotonic
    sources: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    turns: int = 0
    calls: int = 0
    seconds: float = 0.0
    run_id: str = ""
    end: RunFinished | None = None
    _began: float | None = None

    def see(self, event: RunEvent) -> None:
        """Take one event."""
        if self._began is None or (event.depth == 0 and event.run_id != self.run_id):
            self._began, self.run_id, self.end = self.clock(), event.run_id, None
        match event.event:
            case TurnStarted():
                self.turns += 1
            case ToolFinished(metadata=metadata):
                self.calls += 1
                self._note_sources(metadata)
            case PluginEvent(_, data):
                self._note_sources(data)
            case RunFinished(usage=usage) if event.depth == 0:
                self.end = event.event
                self.usage += usage
                self.seconds += self.clock() - self._began

    def _note_sources(self, data: Mapping[str, Any]) -> None:
        names = dict.fromkeys(map(str, sources_in(data)))
        self.sources += [name for name in names if name not in self.sources]

    def lines(self) -> list[str]:
        """The sources, if any, and what it used."""
        # Not by commas, because "a.pdf, page 3" is one of them.
        named = [f"sources: {'; '.join(self.sources)}"] if self.sources else []
        return [*named, ", ".join(self.figures())]

    def figures(self) -> Sequence[str]:
        """What it used, as far as known."""
        usage = self.usage
        told = []
        if usage.total_tokens:
            told.append(f"{usage.prompt_tokens} + {usage.completion_tokens} tokens")
        if usage.cost is not None:
            told.append(money(usage.cost, usage.currency))
        if self.turns > 1:
            told.append(f"{self.turns} turns")
        return [*told, f"{self.seconds:.1f} s"]


def money(cost: Decimal, currency: str | None) -> str:
    """An amount as people read it, small ones not as zero."""
    shown = cost.quantize(_SMALL) if cost >= _SMALL else cost.normalize()
    return f"{shown:f} {currency or ''}".rstrip()
