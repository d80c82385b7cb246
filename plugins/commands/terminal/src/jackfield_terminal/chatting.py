"""`jackfield chat`: a conversation."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from jackfield import sync
from jackfield.agents import Agent, RunView
from jackfield.cli import guarded, printable
from jackfield.errors import JackfieldError
from jackfield.messages import USER, Message
from jackfield.runs import RunResources
from jackfield_terminal.approval import Asker, can_ask
from jackfield_terminal.interrupts import cancelled_by_ctrl_c
from jackfield_terminal.options import agent_of, chat_parser
from jackfield_terminal.render import Renderer, in_colour


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield chat`; gives its exit code."""
    options = chat_parser().parse_args(arguments)
    with guarded():
        return chat(options)


def chat(options: argparse.Namespace) -> int:
    """Talk until end of input. Ctrl-C stops an answer; at the prompt it leaves."""
    agent = agent_of(options)
    print(printable(f"{agent.model.backend}:{agent.model.config.model}"))
    print("/reset forgets, /exit or Ctrl-D leaves, Ctrl-C stops an answer.")
    asker = Asker() if can_ask() else None
    resources = RunResources()  # kept over all turns: what the code interpreter computed is still there
    history: list[Message] = []
    try:
        while True:
            try:
                prompt = input("> ").strip()
            except (EOFError, KeyboardInterrupt):
                print()
                return 0
            match prompt:
                case "":
                    continue
                case "/exit" | "/quit":
                    return 0
                case "/reset":
                    history = []
                    continue
            history = _turn(agent, [*history, Message(USER, prompt)], options.lang, resources, asker)
    finally:
        sync.run(resources.aclose())


def _turn(
    agent: Agent, history: list[Message], lang: Any, resources: RunResources, asker: Asker | None
) -> list[Message]:
    """One answer; gives the history after it. An error is told, and the question taken back."""
    renderer = Renderer(sys.stdout, sys.stdout, colour=in_colour(sys.stdout))
    view = RunView(agent.name)
    try:
        with cancelled_by_ctrl_c() as cancel:
            if asker:
                asker.during(cancel, renderer.end_line)
            events = agent.astream(history, lang=lang, cancel=cancel, resources=resources, approve=asker)
            for event in sync.iterate(events):
                renderer.show(event)
                view.feed(event.event)
    except JackfieldError as error:
        renderer.end_line()
        sys.stderr.write(f"jackfield: {printable(str(error))}\n")
        return history[:-1]
    return [*history, *view.messages()]
