"""`jackfield run`: ask one question."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from jackfield import sync
from jackfield.agents import Agent, open_calls
from jackfield.cli import guard_output, needs_ascii, print_json
from jackfield.errors import ConfigError
from jackfield.events import TextDelta
from jackfield.messages import FUNCTION, Message
from jackfield.results import ResultFold, RunResult
from jackfield.runs import RunResources
from jackfield.secrets import Secrets, secrets_of
from jackfield.suggestions import shell_path
from jackfield_agent_files.templates import fill_input
from jackfield_records.hiddenevents import HiddenEvents
from jackfield_terminal.approval import Asker, can_ask
from jackfield_terminal.inputs import is_piped, make_question, read_fragment, read_text
from jackfield_terminal.interrupts import cancel_on_ctrl_c
from jackfield_terminal.options import create_agent_from, format_agent_options, read_agent_file, run_parser
from jackfield_terminal.output_files import check_folder
from jackfield_terminal.recording import ONE_SHOT, name_session, was_recorded
from jackfield_terminal.safe_text import Terminal
from jackfield_terminal.saved_runs import check_target, claim_run, load_run, release_run, save_run
from jackfield_terminal.screen import Screen, show_warnings
from jackfield_terminal.stored_runs import choose_last_run, load_conversation

if TYPE_CHECKING:
    from jackfield.answers import Form

EXIT_CODES = {"finished": 0, "cancelled": 130}
"""Exit codes by stop reason; 1 for any other."""


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield run` and return its exit code."""
    options = run_parser().parse_args(arguments)
    bare = sys.stdout
    with guard_output(Terminal):
        return run(options, bare)


def run(options: argparse.Namespace, bare: TextIO) -> int:
    """Ask one question or resume a saved run. Return 1 if the run did not finish.

    The answer is written to standard output, and everything else to standard error.
    """
    check_folder(options.output)
    if options.save:
        check_target(Path(options.save))
    _check_resume(options)
    form = read_form(options)
    settings = read_agent_file(options)
    question = None if options.resume else _read_question(options, settings.get("prompt", ""))
    previous = choose_last_run(options) if options.continue_last else None
    agent, documents = create_agent_from(options, settings)
    secrets = secrets_of(agent, settings=agent.host.settings)
    history: Sequence[Message]
    if question is None:
        history = load_run(Path(options.resume), secrets, trust=options.trust)
    else:
        earlier = load_conversation(previous.store, previous.session, agent) if previous else ()
        history = (*earlier, question)
    screen = Screen(options, bare=bare, notes=sys.stderr)
    screen.report_skipped(documents)
    if not _is_machine_readable(options):
        screen.report_tools(agent)
    decisions: bool | Mapping[str, bool] = False
    if options.resume:
        decisions = _decide_pending(history, options)
        claim_run(Path(options.resume), again=options.again)
    session = previous.session if previous else name_session(ONE_SHOT)
    result = run_and_show(agent, history, options, screen, resume=decisions, session=session, form=form)
    if result is None:
        return EXIT_CODES["cancelled"]
    result = replace(result, warnings=(*map(str, documents.skipped), *result.warnings))
    if options.resume and not any(message.role == FUNCTION for message in result.messages):
        release_run(Path(options.resume))  # no call was made, so the same calls are still pending
    _finish(result, options, screen, secrets)
    recorded_id = result.run_id if was_recorded(agent.store, result.run_id) else ""
    sys.stderr.write(_next_step(options, result.stop_reason, recorded_id))
    return EXIT_CODES.get(result.stop_reason, 1)


def read_form(options: argparse.Namespace) -> Form[Any] | None:
    """Return the output format from `--schema`, or None for text.

    Raises:
        ConfigError: `--schema` is not a valid schema.
    """
    if options.schema is None:
        return None
    from jackfield_terminal.schemas import read_schema  # most answers are plain text

    return read_schema(options.schema)


def _check_resume(options: argparse.Namespace) -> None:
    if options.resume and (options.prompt is not None or options.attach):
        raise ConfigError("--resume continues a saved run: remove the prompt and attachments")
    if (options.approve or options.deny) and not options.resume:
        raise ConfigError("--approve and --deny require --resume FILE")
    if options.again and not options.resume:
        raise ConfigError("--again requires --resume FILE")


def _read_question(options: argparse.Namespace, template: str) -> Message:
    """Build the question from fragments, prompt, piped text and attachments.

    Args:
        options: The command's options.
        template: The agent file's prompt, or ''.
    """
    prompt = "" if options.prompt in (None, "-") else options.prompt
    piped = ""
    # Standard input may be an attachment instead.
    if "-" not in options.attach and (options.prompt == "-" or is_piped(sys.stdin)):
        piped = read_text()
    text = "\n\n".join(part for part in (prompt, piped) if part.strip())
    if template:
        text = fill_input(template, text)
    # An empty prompt may go with an attachment.
    if not (text or options.fragment or (options.attach and options.prompt is not None)):
        raise ConfigError("no prompt: pass one, pipe in text, or use --resume FILE")
    fragments = [read_fragment(source) for source in options.fragment]
    return make_question("\n\n".join([*fragments, text] if text else fragments), options.attach)


def _decide_pending(history: Sequence[Message], options: argparse.Namespace) -> Mapping[str, bool]:
    """Return the decisions about pending calls given on the command line."""
    if not (options.approve or options.deny):
        return {}
    return {planned.call_id: bool(options.approve) for planned in open_calls(history)}


def run_and_show(
    agent: Agent,
    history: Sequence[Message] | None,
    options: argparse.Namespace,
    screen: Screen,
    *,
    run_id: str | None = None,
    resume: bool | Mapping[str, bool] = False,
    session: str = "",
    form: Form[Any] | None = None,
) -> RunResult[Any] | None:
    """Run an agent and show its progress; return the result, or None if the run was interrupted.

    Args:
        agent: The agent.
        history: The messages, or None to continue the recorded run `run_id`.
        options: The command's options.
        screen: The screen.
        run_id: The id of a recorded run.
        resume, session: See `Agent.astream`.
        form: The output format of a structured answer, whose text is then not shown.
    """
    fold = ResultFold(history, system_text=agent.system_message)
    asker = Asker() if can_ask() else None
    secrets = secrets_of(agent, settings=agent.host.settings)
    hidden = HiddenEvents(secrets)
    resources = RunResources()  # kept open until its files are saved
    try:
        with cancel_on_ctrl_c() as cancel, show_warnings(screen.renderer, secrets):
            if asker:
                asker.start_run(cancel, screen.renderer.make_room)
            events = agent.astream(
                history or (),
                lang=options.lang,
                cancel=cancel,
                resources=resources,
                resume=resume,
                approve=asker,
                run_id=run_id,
                session=session,
                output=form,
            )
            for event in sync.iterate(events):
                if asker and cancel.cancelled:
                    asker.end_line()
                if getattr(options, "events", False):
                    _print_events(hidden.feed(event))
                is_data = form is not None and event.depth == 0 and isinstance(event.event, TextDelta)
                if _is_machine_readable(options) or is_data:
                    screen.record(event)
                else:
                    screen.show(event)
                fold.feed(event)
    finally:
        _print_events(hidden.rest())
        screen.renderer.end_line()  # an error report starts a new line, even in the middle of an answer
        sync.run(resources.aclose())
    return fold.result(str if form is None else form.read) if screen.total.end else None


def _print_events(events: Sequence[Mapping[str, object]]) -> None:
    for event in events:
        print(json.dumps(event, ensure_ascii=needs_ascii(sys.stdout)), flush=True)


def _is_machine_readable(options: argparse.Namespace) -> bool:
    return bool(getattr(options, "json", False) or getattr(options, "events", False))


def _finish(result: RunResult[Any], options: argparse.Namespace, screen: Screen, secrets: Secrets) -> None:
    """Print the lines that follow the answer, and save the conversation if requested."""
    if options.json:
        files = [str(path) for path in screen.output_files.saved]
        output = {} if options.schema is None else {"output": result.output}
        print_json(secrets.hide_fields({**result.to_dict(), **output, "files": files}))
    elif not options.events:
        print_output(result, options)
        screen.report_summary()
    if options.save:
        save_run(Path(options.save), result.history, result.stop_reason, secrets)


def print_output(result: RunResult[Any], options: argparse.Namespace) -> None:
    """Print a structured answer; text has already been shown while it was streamed."""
    if options.schema is not None and result.stop_reason == "finished":
        print(json.dumps(result.output, indent=2, ensure_ascii=needs_ascii(sys.stdout)))


def _next_step(options: argparse.Namespace, stop_reason: str, run_id: str) -> str:
    """Return the command to type if a run awaits the user, otherwise ''. `run_id` is '' for an unrecorded run."""
    if stop_reason == "input_needed":
        return f"To reply, run: {_command(options, 'jackfield chat')}\n"
    if stop_reason != "approval_needed":
        return ""
    if run_id:
        return f"The run is recorded. {how_to_resume(run_id, options)}"
    if not options.save:
        return "Nothing was saved. Run the command in a terminal to answer now, or pass --save FILE to answer later.\n"
    command = _command(options, "jackfield run --resume", shell_path(options.save))
    return f"Saved. To continue, run: {command} --approve (or --deny)\n"


def how_to_resume(run_id: str, options: argparse.Namespace) -> str:
    """Return a sentence with the command that approves a recorded run's calls."""
    schema = f" --schema {shell_path(options.schema)}" if getattr(options, "schema", None) else ""
    command = _command(options, "jackfield runs resume", run_id[:12])
    return f"To continue, run: {command}{schema} --approve (or --deny)\n"


def _command(options: argparse.Namespace, *words: str) -> str:
    """Return a command line with the agent's options."""
    agent_options = format_agent_options(options)
    return " ".join([*words, agent_options] if agent_options else words)
