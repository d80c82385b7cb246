"""Where a command shows a run: the answer, what happens meanwhile, and a summary at the end."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from jackfield.cli import printable
from jackfield.events import RunEvent
from jackfield.secrets import HideInLogs, Secrets
from jackfield_terminal.account import Account
from jackfield_terminal.made import MadeFiles
from jackfield_terminal.render import Renderer, RichAnswer, in_colour

if TYPE_CHECKING:
    from jackfield.agents import Agent
    from jackfield.tools import BaseTool
    from jackfield_documents import Expanded

_EFFECTS = {"files": "reads and writes files", "network": "uses the network", "processes": "starts processes"}


class Screen:
    """Shows runs of an agent.

    Attributes:
        account, last: What all runs used, and what the last one did.
        made: What they made.
        renderer: What shows them.

    Args:
        options: The options on the command line: `plain`, `quiet`, `output`.
        bare: Standard output as it is; what guards it would show our own orders, too.
        notes: Where all but answers goes, guarded.
    """

    def __init__(self, options: argparse.Namespace, *, bare: TextIO, notes: TextIO) -> None:
        self.account = Account()
        self.last = Account()
        self.made = MadeFiles(options.output)
        rich = None if options.plain else _rich(bare)
        self.renderer = Renderer(sys.stdout, notes, colour=in_colour(notes), rich=rich, quiet=options.quiet)

    def tell_tools(self, agent: Agent) -> None:
        """Say what the tools of an agent do besides answering."""
        for line in lines_of_tools(agent):
            self.renderer.note_once(line)

    def tell_skipped(self, documents: Expanded) -> None:
        """Say which files were left out."""
        for line in documents.lines():
            self.renderer.note(f"! {printable(line)}")

    def show(self, event: RunEvent) -> None:
        """Show an event, and keep what it brings."""
        self.renderer.show(event)
        self.keep(event)

    def keep(self, event: RunEvent) -> None:
        """Keep what an event brings, and say where."""
        self.account.see(event)
        self.last.see(event)
        for path in self.made.keep(event):
            self.renderer.note(f"saved {printable(str(path))}", always=True)
        for problem in self.made.problems:
            self.renderer.note(f"! {printable(problem)}")
        self.made.problems.clear()

    def begin(self) -> None:
        """Another run begins."""
        self.last = Account()

    def tell_account(self) -> None:
        """Say what the last run used, if it came to its end."""
        for line in self.last.lines() if self.last.end else ():
            self.renderer.note(printable(line))


def lines_of_tools(agent: Agent) -> list[str]:
    """What each tool does besides answering, and whether it is asked before."""
    does = {name: ", ".join(_doings(tool, agent)) for name, tool in agent.function_map.items()}
    return [f"tool {printable(name)}: {printable(text)}" for name, text in does.items() if text]


def _doings(tool: BaseTool, agent: Agent) -> Iterator[str]:
    safety, rules = tool.safety(), agent.executor.rules
    yield from (_EFFECTS.get(effect, effect) for effect in sorted(safety.effects))
    if rules.asks_about(tool, safety):
        yield "asks before each call"
    if safety.effects & rules.forbid:
        yield "is never called here"


def _rich(answers: TextIO) -> RichAnswer | None:
    """What renders Markdown, where the terminal can show it."""
    if not in_colour(answers):
        return None
    # Only here: nobody else needs rich.
    from jackfield_terminal.markdown import MarkdownWriter

    return MarkdownWriter(answers)


@contextmanager
def warnings_shown(renderer: Renderer, secrets: Secrets) -> Iterator[None]:
    """Show warnings of the program, without secrets, as lines beside the answer, each once."""
    handler = _Notes(renderer)
    handler.addFilter(HideInLogs(secrets))
    logger = logging.getLogger()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _Notes(logging.Handler):
    def __init__(self, renderer: Renderer) -> None:
        super().__init__(logging.WARNING)
        self._renderer = renderer

    def emit(self, record: logging.LogRecord) -> None:
        """Show a warning in one line."""
        self._renderer.note_once(f"! {printable(' '.join(record.getMessage().split()))}")
