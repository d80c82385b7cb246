"""Find recorded runs and conversations in a store."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jackfield import sync
from jackfield.errors import ConfigError, RunNotFoundError
from jackfield.plugins import default_host
from jackfield.secrets import placeholders_in
from jackfield.stores import Store, StoredRun
from jackfield_terminal.recording import ONE_SHOT, open_store

if TYPE_CHECKING:
    from jackfield.agents import Agent
    from jackfield.events import RunEvent
    from jackfield.messages import Message

MAX_RUNS = 10_000
"""Maximum number of runs examined when searching a store."""


def run_id_of(store: Store, text: str) -> str:
    """Return the id of the only run whose id starts with a text. `last` stands for the latest run.

    Raises:
        RunNotFoundError: No run matches, or several do.
    """
    ids = [run.run_id for run in sync.run(store.runs(limit=MAX_RUNS))]  # newest first
    if text in ids:
        return text
    matches = ids[:1] if text == "last" else [run_id for run_id in ids if run_id.startswith(text)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise RunNotFoundError(
            f"{len(matches)} runs start with {text!r}: type more characters; to list them, run: jackfield runs list"
        )
    raise RunNotFoundError(f"no such run: {text!r}; to list recorded runs, run: jackfield runs list")


def load_conversation(store: Store, session: str, agent: Agent) -> list[Message]:
    """Load a session's conversation, which is the history of its last run."""
    from jackfield.agents import RunView, with_calls_closed
    from jackfield.events import RunStarted
    from jackfield.messages import without_system_text
    from jackfield_records import events_of

    last = sync.run(store.runs(session=session, limit=1))
    if not last:
        return []
    events: list[RunEvent] = events_of(*sync.run(store.read(last[0].run_id)))
    view = RunView(agent.name)
    history: list[Message] = []
    for event in events:
        if isinstance(event.event, RunStarted):
            history = list(without_system_text(event.event.messages, agent.system_message))
        view.feed(event.event)
    return with_calls_closed([*history, *view.messages()])


def find_last_chat(store: Store, session: str | None) -> StoredRun | None:
    """Return a session's last run, or that of the last `jackfield chat` if `session` is None; None if none is found."""
    if session:
        runs = sync.run(store.runs(session=session, limit=1))
        return runs[0] if runs else None
    for run in sync.run(store.runs(limit=MAX_RUNS)):
        if run.session and not run.session.startswith(ONE_SHOT):
            return run
    return None


@dataclass(frozen=True, slots=True)
class LastRun:
    """The session that `jackfield run --continue` continues, with its store."""

    store: Store
    session: str


def choose_last_run(options: argparse.Namespace) -> LastRun:
    """Return the session of the last `jackfield run`, and use its model unless the options name one.

    Raises:
        ConfigError: There is no such run, or its model must be given explicitly.
    """
    store = open_store(options.store, default_host())
    for run in sync.run(store.runs(limit=MAX_RUNS)):
        if run.session.startswith(ONE_SHOT):
            choose_model(options, run, store)
            return LastRun(store, run.session)
    raise ConfigError("no recorded run to continue: ask the first question without --continue")


def choose_model(options: argparse.Namespace, run: StoredRun | None, store: Store) -> None:
    """Use the model and server of the run to continue, unless the options name a model or an agent file.

    Raises:
        ConfigError: The recorded address is incomplete, or the record came from elsewhere, so that its author would
            choose which server receives the user's key.
    """
    if run is not None and run.model and not (options.model or options.config):
        if path := sync.run(store.foreign_file()):
            raise ConfigError(
                f"{path} was not written on this machine, so its models are ignored: pass -m MODEL to choose one"
            )
        options.model, options.base_url = _read_model(run, options.base_url)


def _read_model(run: StoredRun, base_url: str | None) -> tuple[str, str | None]:
    """Return a run's model and its server's address, since the conversation must not be sent to another server.

    Raises:
        ConfigError: The recorded address is incomplete.
    """
    model, _, address = run.model.partition(" ")
    if base_url is None and placeholders_in(address):
        raise ConfigError(f"the URL {address} of the last run was not recorded in full: pass --base-url or -m")
    return model, base_url or address or None
