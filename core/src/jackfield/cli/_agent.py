"""`jackfield run` and `jackfield chat`."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from jackfield import sync
from jackfield.agents import Agent, CancelToken, RunView, create_agent
from jackfield.agents._decide import open_calls
from jackfield.agents._spec import load_agent_config
from jackfield.cli._approval import Asker, can_ask, load_run, save_run
from jackfield.cli._render import Renderer, in_colour
from jackfield.cli._tables import in_ascii
from jackfield.cli._terminal import shown_name
from jackfield.config import Limits
from jackfield.defaults import AGENT_WITH_FILES, FIRST_BACKEND
from jackfield.errors import ConfigError, JackfieldError
from jackfield.eventjson import run_event_to_json
from jackfield.events import RunFinished
from jackfield.messages import USER, Message
from jackfield.plugins._host import default_host
from jackfield.runs._resources import RunResources
from jackfield.settings import some_of

MODEL_VARIABLE = "JACKFIELD_MODEL"


def run(options: argparse.Namespace) -> int:
    """Ask one thing; the answer goes to standard output, all else to standard error. 1 if it did not finish."""
    _check_resume(options)
    history = load_run(Path(options.resume)) if options.resume else (Message(USER, _prompt(options)),)
    agent = _make_agent(options)
    renderer = Renderer(sys.stdout, sys.stderr, colour=in_colour(sys.stderr))
    asker = Asker() if can_ask() else None
    end: RunFinished | None = None
    with _cancelled_by_ctrl_c() as cancel:
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
    if end is None:  # an error is raised, and a run without an end is none that can be gone on with
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


def chat(options: argparse.Namespace) -> int:
    """Talk until end of input. Ctrl-C stops an answer; at the prompt it leaves."""
    agent = _make_agent(options)
    print(shown_name(f"{agent.model.backend}:{agent.model.config.model}"))
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
        with _cancelled_by_ctrl_c() as cancel:
            if asker:
                asker.during(cancel, renderer.end_line)
            events = agent.astream(history, lang=lang, cancel=cancel, resources=resources, approve=asker)
            for event in sync.iterate(events):
                renderer.show(event)
                view.feed(event.event)
    except JackfieldError as error:
        renderer.end_line()
        sys.stderr.write(f"jackfield: {shown_name(str(error))}\n")
        return history[:-1]
    return [*history, *view.messages()]


@contextmanager
def _cancelled_by_ctrl_c() -> Iterator[CancelToken]:
    """A token that the first Ctrl-C cancels, so that the run ends by itself; the second interrupts as usual."""
    token = CancelToken()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        if token.cancelled:
            raise KeyboardInterrupt
        token.cancel()

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield token
    finally:
        signal.signal(signal.SIGINT, before)


def _make_agent(options: argparse.Namespace) -> Agent:
    """The agent of the configuration file, if there is one, with what the command line says over it."""
    given: dict[str, Any] = {}
    if options.config:
        config = load_agent_config(options.config)
        given = {key: getattr(config, key) for key in config.model_fields_set}
        _check_files(Path(options.config), config.files)
    if options.model or options.base_url or "llm" not in given:
        given["llm"] = _model_config(options.model or os.environ.get(MODEL_VARIABLE), options.base_url)
    if options.tool:
        given["function_list"] = (*given.get("function_list", ()), *options.tool)
    if options.file:
        given["files"] = (*given.get("files", ()), *options.file)
    if options.system is not None:
        given["system_message"] = options.system
    if options.max_turns is not None:
        given["limits"] = {**Limits.parse(given.get("limits")).model_dump(), "turns": options.max_turns}
    given["agent"] = options.agent or given.get("agent") or (AGENT_WITH_FILES if options.file else "fncall")
    return create_agent(given)


def _check_files(agent_file: Path, files: Sequence[str]) -> None:
    """Raise ConfigError if a file that an agent's file names is not there."""
    for file in files:
        if "://" not in file and not Path(file).exists():
            path = Path(file)
            raise ConfigError(f"{agent_file} names the file {path.name!r}, which is not in {path.resolve().parent}")


def _model_config(model: str | None, base_url: str | None) -> dict[str, Any] | str:
    if not model:
        backends: Sequence[str] = default_host().names("llm")
        listed = some_of(backends) or f"none; try pip install {FIRST_BACKEND}"
        raise ConfigError(
            f"which model? Pass --model backend:model, or set {MODEL_VARIABLE}. Installed backends: {listed}"
        )
    if not base_url:
        return model
    backend, colon, name = model.partition(":")
    chosen = {"model_type": backend, "model": name} if colon else {"model": model}
    return {**chosen, "base_url": base_url}
