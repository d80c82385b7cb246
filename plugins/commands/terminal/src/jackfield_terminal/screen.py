"""Show a run in a terminal: the answer, its progress, and a final summary."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from jackfield.cli import escape_line, terminal_columns
from jackfield.events import RunEvent
from jackfield.secrets import HideInLogs, Secrets
from jackfield_terminal.output_files import OutputFiles
from jackfield_terminal.render import Renderer, RichAnswer, can_format, has_colour
from jackfield_terminal.summary import Summary

if TYPE_CHECKING:
    from jackfield.agents import Agent
    from jackfield.tools import BaseTool
    from jackfield_documents import Expanded

_EFFECTS = {"files": "reads and writes files", "network": "uses the network", "processes": "starts processes"}
_EFFECTS_OF_READERS = {**_EFFECTS, "files": "reads files"}


class Screen:
    """Shows an agent's runs.

    Args:
        options: The command's options, of which `plain`, `quiet` and `output` are used.
        bare: Standard output without the guard, which would escape our own control sequences as well.
        notes: The guarded stream for everything except answers.

    Attributes:
        total, last: The summaries of all runs and of the last run.
        output_files: The images and files created by the runs.
        renderer: Writes the events.
    """

    def __init__(self, options: argparse.Namespace, *, bare: TextIO, notes: TextIO) -> None:
        self.total = Summary()
        self.last = Summary()
        self.output_files = OutputFiles(options.output)
        rich = None if options.plain else _rich(bare)
        self.renderer = Renderer(
            sys.stdout,
            notes,
            dim=can_format(notes),
            columns=lambda: terminal_columns(notes),
            rich=rich,
            quiet=options.quiet,
        )

    def report_tools(self, agent: Agent) -> None:
        """Print the effects of the agent's tools."""
        for line in describe_tools(agent):
            self.renderer.note(line, once=True)

    def report_skipped(self, documents: Expanded) -> None:
        """Print the skipped files."""
        for line in documents.lines():
            self.renderer.warn(escape_line(line))

    def show(self, event: RunEvent) -> None:
        """Show and record an event."""
        self.renderer.show(event)
        self.record(event)

    def record(self, event: RunEvent) -> None:
        """Add an event to the summaries, and save any files it contains."""
        self.total.feed(event)
        self.last.feed(event)
        for path in self.output_files.save(event):
            self.renderer.note(f"saved {escape_line(str(path))}", always=True)
        for problem in self.output_files.problems:
            self.renderer.warn(escape_line(problem))
        self.output_files.problems.clear()

    def start_run(self) -> None:
        """Start a new summary for the next run."""
        self.last = Summary()

    def report_summary(self) -> None:
        """Print the last run's summary if the run has ended."""
        if self.last.end:
            for line in self.last.lines():
                self.renderer.note(escape_line(line))


def describe_tools(agent: Agent) -> list[str]:
    """Return a line for each tool that has effects or needs approval."""
    effects = {name: ", ".join(_effects(tool, agent)) for name, tool in agent.function_map.items()}
    return [f"tool {escape_line(name)}: {escape_line(text)}" for name, text in effects.items() if text]


def _effects(tool: BaseTool, agent: Agent) -> Iterator[str]:
    safety, rules = tool.safety(), agent.executor.rules
    texts = _EFFECTS_OF_READERS if safety.read_only else _EFFECTS
    yield from (texts.get(effect, effect) for effect in sorted(safety.effects))
    if rules.need_approval(tool, safety):
        yield "each call needs approval"
    if safety.effects & rules.forbid:
        yield "calls are forbidden here"


def _rich(answers: TextIO) -> RichAnswer | None:
    """Return a Markdown writer if the terminal supports it."""
    if not can_format(answers):
        return None
    # Imported here, because it loads rich.
    from jackfield_terminal.markdown import MarkdownWriter

    return MarkdownWriter(answers, colour=has_colour())


@contextmanager
def show_warnings(renderer: Renderer, secrets: Secrets) -> Iterator[None]:
    """Show logged warnings as notes, without secrets or repetition."""
    handler = _NoteHandler(renderer)
    handler.addFilter(HideInLogs(secrets))
    logger = logging.getLogger()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _NoteHandler(logging.Handler):
    def __init__(self, renderer: Renderer) -> None:
        super().__init__(logging.WARNING)
        self._renderer = renderer

    def emit(self, record: logging.LogRecord) -> None:
        """Show a warning on one line."""
        self._renderer.warn(escape_line(" ".join(record.getMessage().split())), once=True)
