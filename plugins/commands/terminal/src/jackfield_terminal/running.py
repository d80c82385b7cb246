"""`jackfield run`: one question, one answer."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from jackfield import sync
from jackfield.agents import open_calls
from jackfield.cli import guarded, in_ascii
from jackfield.errors import ConfigError, JackfieldError
from jackfield.eventjson import run_event_to_json
from jackfield.events import RunFinished
from jackfield.messages import USER, Message
from jackfield_terminal.approval import Asker, can_ask
from jackfield_terminal.interrupts import cancelled_by_ctrl_c
from jackfield_terminal.options import agent_of, run_parser
from jackfield_terminal.render import Renderer, in_colour
from jackfield_terminal.saved import load_run, save_run


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield run`; gives its exit code."""
    options = run_parser().parse_args(arguments)
    with guarded():
        return run(options)


def run(options: argparse.Namespace) -> int:
    """Ask one thing; the answer goes to standard output, all else to standard error. 1 if it did not finish."""
    _check_resume(options)
    history = load_run(Path(options.resume)) if options.resume else (Message(USER, _prompt(options)),)
    agent = agent_of(options)
    renderer = Renderer(sys.stdout, sys.stderr, colour=in_colour(sys.stderr))
    asker = Asker() if can_ask() else None
    end: RunFinished | None = None
    with cancelled_by_ctrl_c() as cancel:
        if asker:
            asker.during(cancel, renderer.end_line)
        resume = _answers(history, options) if options.resume else False
        events = agent.astream(history, lang=options.lang, cancel=cancel, resume=resume, approve=asker)
        try:
            for event in sync.iterate(events):
                if options.json:
                    print(json.dumps(run_event_to_json(event), ensure_ascii=in_ascii(sys.stdout)), flush=True)
                else:
                    renderer.show(event)
                if isinstance(event.event, RunFinished):
                    end = event.event
        except JackfieldError:
            renderer.end_line()  # what is reported of it begins a line, also in the middle of an answer
            raise
    if end is None:  # an error is raised, and a run without an end cannot be gone on with
        return 130
    if options.save:
        save_run(Path(options.save), [*history, *end.messages], end.stop_reason)
    if end.stop_reason == "approval_needed":
        sys.stderr.write(_how_to_resume(options.save))
    return 0 if end.stop_reason == "finished" else 130 if end.stop_reason == "cancelled" else 1


def _prompt(options: argparse.Namespace) -> str:
    return sys.stdin.read() if options.prompt == "-" else str(options.prompt)


def _check_resume(options: argparse.Namespace) -> None:
    if options.resume and options.prompt is not None:
        raise ConfigError("--resume goes on with a saved run: leave the prompt out")
    if not options.resume and options.prompt is None:
        raise ConfigError("what to ask? Pass a prompt, - to read it from standard input, or --resume FILE")
    if (options.approve or options.refuse) and not options.resume:
        raise ConfigError("--approve and --refuse answer for the calls of a saved run: pass --resume FILE, too")


def _answers(history: Sequence[Message], options: argparse.Namespace) -> Mapping[str, bool]:
    """What the command line says to the calls that wait, and to no others."""
    if not (options.approve or options.refuse):
        return {}
    return {planned.call_id: bool(options.approve) for planned in open_calls(history)}


def _how_to_resume(saved: str | None) -> str:
    if not saved:
        return "Nothing was saved: run it in a terminal to be asked, or with --save FILE to answer later.\n"
    command = f"jackfield run --resume {shlex.quote(saved)} --approve"
    return f"Saved. To go on: {command} (or --refuse), with the same options as before.\n"
