"""Summarise a run: its sources, tokens, cost and time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from jackfield.citations import CITATIONS, Citation, citations_in
from jackfield.events import PluginEvent, RunEvent, RunFinished, ToolFinished, TurnStarted
from jackfield.messages import Usage
from jackfield.results import sources_in, text_of_answer

_SMALL = Decimal("0.0001")


@dataclass(slots=True)
class Summary:
    """Totals over the events of one or more runs.

    `citations` are those of the last answer. `uncounted` is the number of cancelled runs whose usage is unknown.
    """

    clock: Callable[[], float] = time.monotonic
    sources: list[str] = field(default_factory=list)
    citations: tuple[Citation, ...] = ()
    usage: Usage = field(default_factory=Usage)
    turns: int = 0
    calls: int = 0
    seconds: float = 0.0
    run_id: str = ""
    end: RunFinished | None = None
    uncounted: int = 0
    _cited: list[Citation] = field(default_factory=list)
    _start: float | None = None

    def feed(self, event: RunEvent) -> None:
        """Add an event."""
        if self._start is None or (event.depth == 0 and event.run_id != self.run_id):
            self._start, self.run_id, self.end = self.clock(), event.run_id, None
        match event.event:
            case TurnStarted():
                self.turns += 1
            case ToolFinished(metadata=metadata):
                self.calls += 1
                self._add_sources(metadata)
            case PluginEvent(_, data):
                self._add_sources(data)
                if CITATIONS in data:
                    self._cited = citations_in(data)
            case RunFinished(usage=usage) if event.depth == 0:
                self.end = event.event
                text = text_of_answer(event.event.messages)
                self.citations = tuple(citation for citation in self._cited if citation.is_in(text))
                self.usage += usage
                self.uncounted += event.event.stop_reason == "cancelled" and not usage.total_tokens
                self.seconds += self.clock() - self._start

    def _add_sources(self, data: Mapping[str, Any]) -> None:
        for source in sources_in(data):
            if str(source) not in self.sources:
                self.sources.append(str(source))

    def lines(self) -> list[str]:
        """Return footnotes for the citations, or else for the sources, followed by the figures."""
        figures = ", ".join(self.figures())
        if self.citations:
            return [*dict.fromkeys(str(citation) for citation in self.citations), figures]
        # Joined by semicolons, because "a.pdf, page 3" is one source.
        return [f"sources: {'; '.join(self.sources)}", figures] if self.sources else [figures]

    def figures(self) -> Sequence[str]:
        """Return the tokens, cost, turns and time, as far as they are known."""
        usage = self.usage
        figures = []
        if usage.total_tokens:
            figures.append(f"{usage.prompt_tokens} + {usage.completion_tokens} tokens")
        if self.uncounted:
            answers = "answer" if self.uncounted == 1 else f"{self.uncounted} answers"
            figures.append(f"tokens of the cancelled {answers} unknown")
        if usage.cost is not None:
            figures.append(money(usage.cost, usage.currency))
        elif usage.total_tokens:
            figures.append("price unknown")
        if self.turns > 1:
            figures.append(f"{self.turns} turns")
        return [*figures, f"{self.seconds:.1f} s"]


def money(cost: Decimal, currency: str | None) -> str:
    """Format an amount, without rounding small amounts to zero."""
    shown = cost.quantize(_SMALL) if cost >= _SMALL else cost.normalize()
    return f"{shown:f} {currency or ''}".rstrip()
