"""`jackfield chat`: a conversation with an agent."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TextIO

from jackfield.cli import escape_line, guard_output, terminal_columns, wrap_line
from jackfield.plurals import format_count
from jackfield_terminal.conversation import Conversation
from jackfield_terminal.line_editor import Lines, open_lines
from jackfield_terminal.options import chat_parser
from jackfield_terminal.output_files import check_folder
from jackfield_terminal.safe_text import Terminal
from jackfield_terminal.screen import Screen
from jackfield_terminal.slash_commands import COMMANDS, LeaveError, run_command


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield chat` and return its exit code."""
    options = chat_parser().parse_args(arguments)
    bare = sys.stdout
    with guard_output(Terminal):
        return chat(options, bare)


def chat(options: argparse.Namespace, bare: TextIO) -> int:
    """Chat until end of input. Ctrl-C clears the line or stops an answer, but never ends the conversation."""
    check_folder(options.output)
    screen = Screen(options, bare=bare, notes=sys.stdout)
    conversation = Conversation(options, screen)
    lines, problem = open_lines(bare, words=list(COMMANDS))
    screen.report_skipped(conversation.documents)
    _greet(conversation, problem)
    try:
        while (line := _read_line(lines)) is not None:
            if line.startswith("/"):
                run_command(line.rstrip(), conversation, _say)
            elif line.strip():
                conversation.ask(line.strip())
                screen.report_summary()
    except LeaveError:
        pass
    finally:
        conversation.close()
    return 0


def _greet(conversation: Conversation, problem: str) -> None:
    """Print the model, any problem, and how to leave."""
    _say(conversation.model)
    if problem:
        _say(problem)
    _say("/help lists commands. Ctrl-C stops an answer, Ctrl-D exits.")
    conversation.screen.report_tools(conversation.agent)
    if conversation.unused_prompt:
        _say(f"! chat ignores the prompt in {conversation.options.config}; to use the prompt, run: jackfield run")
    if conversation.options.session or conversation.options.continue_last:
        _say(f"session {conversation.session}: {format_count(len(conversation.history), 'message')} so far")


def _read_line(lines: Lines) -> str | None:
    """Read a line; None at end of input, '' after Ctrl-C at a terminal."""
    try:
        return lines.read()
    except EOFError:
        return None
    except KeyboardInterrupt:
        if not sys.stdin.isatty():
            raise
        print("Ctrl-D exits.")
        return ""


def _say(text: str, indent: str = "  ") -> None:
    columns = terminal_columns(sys.stdout)
    for line in wrap_line(escape_line(text), columns, indent=indent) if columns else [escape_line(text)]:
        print(line)
