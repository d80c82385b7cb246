"""Agents of tests: one that remembers its runs, tools for it, and the results in a history."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from jackfield import FnCallAgent, Message, tool
from jackfield.agents import Event, Run
from jackfield.messages import FUNCTION
from jackfield.testing import Script, ScriptedModel


class Seeing(FnCallAgent):
    """Remembers the runs whose events it gives."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.runs: list[Run] = []

    def events(self, run: Run) -> AsyncIterator[Event]:
        self.runs.append(run)
        return super().events(run)


def seeing(script: Script, name: str, tools: Sequence[Any] = (), **options: Any) -> Seeing:
    return Seeing(tools, ScriptedModel(script), name=name, description=f"Is {name}.", **options)


def results_in(messages: Sequence[Message]) -> list[str]:
    return [message.get_text_content() for message in messages if message.role == FUNCTION]


@tool(effects=["files"])
def read(path: str) -> str:
    """Read."""
    return path


@tool(read_only=True)
def add(a: int, b: int) -> int:
    """Add."""
    return a + b
