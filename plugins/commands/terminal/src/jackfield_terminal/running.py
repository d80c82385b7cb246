"""`jackfield run`: one question, one answer."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from jackfield import sync
from jackfield.agents import Agent, open_calls
from jackfield.cli import guarded, in_ascii, print_json
from jackfield.errors import ConfigError
from jackfield.events import RunEvent
from jackfield.messages import FUNCTION, Message
from jackfield.results import ResultFold, RunResult
from jackfield.runs import RunResources
from jackfield.secrets import Secrets, secrets_of
from jackfield_records.hiddenevents import HiddenEvents
from jackfield_terminal.approval import Asker, can_ask
from jackfield_terminal.given import is_piped, question, read_text
from jackfield_terminal.interrupts import cancelled_by_ctrl_c
from jackfield_terminal.made import check_folder
from jackfield_terminal.options import agent_of, run_parser, typed_again
from jackfield_terminal.safe import Terminal
from jackfield_terminal.saved import claim_run, load_run, release_run, save_run
from jackfield_terminal.screen import Screen, warnings_shown


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield run`; returns its exit code."""
    options = run_parser().parse_args(arguments)
    bare = sys.stdout
    with guarded(Terminal):
        return run(options, bare)


def run(options: argparse.Namespace, bare: TextIO) -> int:
    """Ask one thing; the answer goes to standard output, all else to standard error. 1 if it did not finish."""
    check_folder(options.output)
    _check_resume(options)
    asked = () if options.resume else (_question(options),)
    agent, documents = agent_of(options)
    secrets = secrets_of(agent, settings=agent.host.settings)
    history = load_run(Path(options.resume), secrets, trust=options.trust) if options.resume else asked
    screen = Screen(options, bare=bare, notes=sys.stderr)
    screen.tell_skipped(documents)
    if not _is_for_programs(options):
        screen.tell_tools(agent)
    resume = _answers(history, options) if options.resume else False
    if options.resume:
        claim_run(Path(options.resume), again=options.again)
    result = shown_to_its_end(agent, history, options, screen, resume=resume)
    if result is None:  # an error is raised, and a run without an end cannot be gone on with
        return EXIT_CODES["cancelled"]
    if options.resume and not any(message.role == FUNCTION for message in result.messages):
        release_run(Path(options.resume))  # no call was made: the same calls wait
    _tell_end(result, options, screen, secrets)
    sys.stderr.write(_what_next(options, result.stop_reason, result.run_id if agent.store else ""))
    return EXIT_CODES.get(result.stop_reason, 1)


def _tell_end(result: RunResult, options: argparse.Namespace, screen: Screen, secrets: Secrets) -> None:
    """Print what comes after the answer, and save what is to be saved."""
    if options.json:
        print_json(secrets.hide_fields({**result.to_dict(), "files": list(map(str, screen.made.kept))}))
    elif not options.events:
        screen.tell_account()
    if options.save:
        save_run(Path(options.save), result.history, result.stop_reason, secrets)


EXIT_CODES = {"finished": 0, "cancelled": 130}
"""By how a run has ended; 1 for any other end."""


def shown_to_its_end(
    agent: Agent,
    history: Sequence[Message] | None,
    options: argparse.Namespace,
    screen: Screen,
    *,
    run_id: str | None = None,
    resume: bool | Mapping[str, bool] = False,
) -> RunResult | None:
    """A run, shown as it happens; what came of it, if it had an end. Without a history, that of a recorded run."""
    fold = ResultFold(history, system_text=agent.system_message)
    asker = Asker() if can_ask() else None
    secrets = secrets_of(agent, settings=agent.host.settings)
    hidden = HiddenEvents(secrets)
    resources = RunResources()  # until what was made is kept: the files of a run go with it
    try:
        with cancelled_by_ctrl_c() as cancel, warnings_shown(screen.renderer, secrets):
            if asker:
                asker.during(cancel, screen.renderer.end_line)
            events = agent.astream(
                history or (),
                lang=options.lang,
                cancel=cancel,
                resources=resources,
                resume=resume,
                approve=asker,
                run_id=run_id,
            )
            for event in sync.iterate(events):
                _show(event, options, screen, hidden)
                fold.feed(event)
    finally:
        _print_events(hidden.rest())
        screen.renderer.end_line()  # what is reported of an error begins a line, also in the middle of an answer
        sync.run(resources.aclose())
    return fold.result(str) if screen.account.end else None


def _show(event: RunEvent, options: argparse.Namespace, screen: Screen, hidden: HiddenEvents) -> None:
    if getattr(options, "events", False):
        _print_events(hidden.feed(event))
    if _is_for_programs(options):
        screen.keep(event)
    else:
        screen.show(event)


def _print_events(events: Sequence[Mapping[str, object]]) -> None:
    for told in events:
        print(json.dumps(told, ensure_ascii=in_ascii(sys.stdout)), flush=True)


def _is_for_programs(options: argparse.Namespace) -> bool:
    return bool(getattr(options, "json", False) or getattr(options, "events", False))


def _question(options: argparse.Namespace) -> Message:
    """What is asked: the prompt, and what comes through a pipe."""
    prompt = "" if options.prompt in (None, "-") else options.prompt
    parts = [prompt, read_text() if _is_text_piped(options) else ""]
    text = "\n\n".join(filter(str.strip, parts))
    if not text and options.prompt is None:
        raise ConfigError("what should be asked? Pass a prompt, pipe in a text, or use --resume FILE")
    return question(text, options.attach)


def _is_text_piped(options: argparse.Namespace) -> bool:
    """Whether standard input is a part of the prompt; it may be an attachment instead."""
    return "-" not in options.attach and (options.prompt == "-" or is_piped(sys.stdin))


def _check_resume(options: argparse.Namespace) -> None:
    if options.resume and (options.prompt is not None or options.attach):
        raise ConfigError("--resume continues a saved run: leave the prompt out")
    if (options.approve or options.refuse) and not options.resume:
        raise ConfigError("--approve and --refuse decide about the calls of a saved run: pass --resume FILE, too")
    if options.again and not options.resume:
        raise ConfigError("--again resumes a saved run once more: pass --resume FILE, too")


def _answers(history: Sequence[Message], options: argparse.Namespace) -> Mapping[str, bool]:
    """What the command line says to the calls that wait, and to no others."""
    waiting = open_calls(history) if options.approve or options.refuse else ()
    return {planned.call_id: bool(options.approve) for planned in waiting}


def how_to_resume(run_id: str, options: argparse.Namespace) -> str:
    """The command that answers the calls of a recorded run, whole."""
    return f"To continue: {_command(options, 'jackfield runs resume', run_id[:12])} --approve (or --refuse)\n"


def _what_next(options: argparse.Namespace, stop_reason: str, recorded: str) -> str:
    """What to type after a run that waits; '' after any other."""
    if stop_reason == "input_needed":
        return f"To have a say: {_command(options, 'jackfield chat')}\n"
    if stop_reason != "approval_needed":
        return ""
    if recorded:
        return f"It is recorded. {how_to_resume(recorded, options)}"
    if not options.save:
        return "Nothing was saved: run it in a terminal to be asked, or with --save FILE to answer later.\n"
    command = _command(options, "jackfield run --resume", shlex.quote(options.save))
    return f"Saved. To continue: {command} --approve (or --refuse)\n"


def _command(options: argparse.Namespace, *words: str) -> str:
    """A command with the options of the agent."""
    return " ".join(filter(None, (*words, typed_again(options))))
