"""`jackfield chat`: a conversation."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TextIO

from jackfield.cli import guarded, printable
from jackfield_terminal.conversation import Conversation
from jackfield_terminal.lines import Lines, open_lines
from jackfield_terminal.made import check_folder
from jackfield_terminal.options import chat_parser
from jackfield_terminal.safe import Terminal
from jackfield_terminal.screen import Screen
from jackfield_terminal.slash import COMMANDS, LeaveError, obey


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield chat`; returns its exit code."""
    options = chat_parser().parse_args(arguments)
    bare = sys.stdout
    with guarded(Terminal):
        return chat(options, bare)


def chat(options: argparse.Namespace, bare: TextIO) -> int:
    """Talk until the end of input. Ctrl-C clears the line or stops an answer, and never ends the conversation."""
    check_folder(options.output)
    screen = Screen(options, bare=bare, notes=sys.stdout)
    conversation = Conversation(options, screen)
    lines, problem = open_lines(bare, words=list(COMMANDS))
    screen.tell_skipped(conversation.documents)
    _greet(conversation, problem)
    try:
        with suppress(LeaveError):
            for line in iter(partial(_typed, lines), None):
                _answer(line, conversation)
    finally:
        conversation.close()
    return 0


def _greet(conversation: Conversation, problem: str) -> None:
    """Say who answers, and how to leave."""
    _say(conversation.model)
    if problem:
        _say(problem)
    _say("/help lists commands. Ctrl-C stops an answer, Ctrl-D exits.")
    conversation.screen.tell_tools(conversation.agent)
    if conversation.session:
        _say(f"session {conversation.session}: {len(conversation.history)} messages so far")


def _answer(line: str, conversation: Conversation) -> None:
    """Obey a command, or ask the agent."""
    if line.startswith("/"):
        obey(line.rstrip(), conversation, _say)
    elif line.strip():
        conversation.ask(line.strip())
        conversation.screen.tell_account()


def _typed(lines: Lines) -> str | None:
    """A line; None at the end of the input, '' after Ctrl-C at a terminal."""
    try:
        return lines.read()
    except EOFError:
        return None
    except KeyboardInterrupt:
        if not sys.stdin.isatty():
            raise
        print("Ctrl-D exits.")
        return ""


def _say(text: str) -> None:
    print(printable(text))
