"""`jackfield runs`: the runs in a store, and what one can do with them."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from jackfield import sync
from jackfield.cli import Parser, guarded, in_ascii, print_json, print_table, printable
from jackfield.errors import RunNotFoundError
from jackfield.stores import RUNNING, Store, StoredRun
from jackfield_terminal.options import STORE, add_run_options, agent_of
from jackfield_terminal.safe import Terminal

if TYPE_CHECKING:
    from jackfield.agents import Agent
    from jackfield.events import RunEvent
    from jackfield.messages import FunctionCall, Message
    from jackfield_records.progress import Progress

_MOST = 10_000
_STATES = {"approval_needed": "waits for approval"}


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield runs`; returns its exit code."""
    options = runs_parser().parse_args(arguments)
    bare = sys.stdout
    with guarded(Terminal):
        code: int = options.act(options, bare)
        return code


def runs_parser() -> Parser:
    """What `jackfield runs` takes."""
    parser = Parser(prog="jackfield runs", description="List the recorded runs of agents, and go on with them.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    listing = _command(commands, "list", "the runs, the newest first", _list, of_one=False)
    listing.add_argument("--session", metavar="NAME", help="only those of a conversation")
    listing.add_argument("--limit", type=int, default=20, metavar="N", help="at most so many (20)")
    listing.add_argument("--json", action="store_true", help="print JSON")
    show = _command(commands, "show", "the steps of a run", _show)
    show.add_argument("--json", action="store_true", help="print the entries of its record as JSON")
    replay = _command(commands, "replay", "show a run again as it went; no model and no tool is asked", _replay)
    replay.add_argument("--events", action="store_true", help="print every event as a line of JSON")
    add_run_options(replay, agent=False)
    resume = _command(commands, "resume", "go on with a run that was interrupted, or that waits for approval", _resume)
    answer = resume.add_mutually_exclusive_group()
    answer.add_argument("--approve", action="store_true", help="allow the waiting calls")
    answer.add_argument("--refuse", action="store_true", help="refuse the waiting calls")
    add_run_options(resume)
    help_ = "resume all interrupted runs of an agent that no process holds"
    recovering = _command(commands, "recover", help_, _recover, of_one=False)
    recovering.add_argument("--list", action="store_true", help="only list them")
    add_run_options(recovering)
    fork = _command(commands, "fork", "make a run that goes another way after a step; resume it", _fork)
    fork.add_argument("--at", type=int, metavar="STEP", help="the last step that is taken over, as show counts them")
    delete = _command(commands, "delete", "forget runs", _delete, of_one=False)
    delete.add_argument("runs", nargs="+", metavar="RUN", help="their ids, the beginnings of them, or last")
    return parser


def _command(
    commands: argparse._SubParsersAction[Parser],
    name: str,
    help_: str,
    act: Callable[[argparse.Namespace, TextIO], int],
    *,
    of_one: bool = True,
) -> Parser:
    parser = commands.add_parser(name, help=help_, description=f"{help_[0].upper()}{help_[1:]}.")
    if of_one:
        parser.add_argument("run", metavar="RUN", help="its id, the beginning of it, or last")
    parser.add_argument("--store", default=STORE, metavar="NAME", help=f"the store ({STORE})")
    parser.set_defaults(act=act)
    return parser


# --- commands ---------------------------------------------------------------------------------------------------------


def _list(options: argparse.Namespace, _bare: TextIO) -> int:
    runs = sync.run(_store(options).runs(session=options.session, limit=options.limit))
    if options.json:
        print_json([{name: getattr(run, name) for name in StoredRun.__slots__} for run in runs])
        return 0
    if not runs:
        print("there are no runs")
    rows = [(run.run_id[:12], _when(run.began), state_of(run), run.agent, run.session, run.title) for run in runs]
    print_table(("run", "began", "state", "agent", "session", "asked"), rows)
    return 0


def _show(options: argparse.Namespace, _bare: TextIO) -> int:
    store = _store(options)
    run, entries = sync.run(store.read(run_id_of(store, options.run)))
    told = [json.loads(entry) for entry in entries]
    if options.json:
        print_json(told)
        return 0
    print(f"run {run.run_id}: {state_of(run)}")
    for name in ("agent", "session", "parent", "title"):
        if value := getattr(run, name):
            print(printable(f"{name}: {value}"))
    print(f"began: {_when(run.began)}")
    rows = [(str(place), entry["event"], _line_of(entry)) for place, entry in enumerate(told, start=1)]
    print_table(("step", "what", ""), rows)
    return 0


def _replay(options: argparse.Namespace, bare: TextIO) -> int:
    from jackfield_records import events_of
    from jackfield_records.eventjson import run_event_to_json
    from jackfield_terminal.screen import Screen

    store = _store(options)
    events = events_of(*sync.run(store.read(run_id_of(store, options.run))))
    if options.events:
        for event in events:
            print(json.dumps(run_event_to_json(event), ensure_ascii=in_ascii(sys.stdout)))
        return 0
    screen = Screen(options, bare=bare, notes=sys.stderr)
    for event in events:
        screen.show(event)
    screen.renderer.end_line()
    return 0


def _resume(options: argparse.Namespace, bare: TextIO) -> int:
    from jackfield_terminal.running import EXIT_CODES, how_to_resume, shown_to_its_end
    from jackfield_terminal.screen import Screen

    agent, documents = agent_of(options)
    assert agent.store is not None  # noqa: S101 - an option has a default
    run_id = run_id_of(agent.store, options.run)
    if sync.run(agent.store.read(run_id))[0].state == "finished":
        sys.stderr.write(f"It has finished. To see it again: jackfield runs replay {run_id[:12]}\n")
        return 0
    _require_consent(agent.store, [run_id], options)
    screen = Screen(options, bare=bare, notes=sys.stderr)
    screen.tell_skipped(documents)
    answers = _answers(agent.store, run_id, options)
    result = shown_to_its_end(agent, None, options, screen, run_id=run_id, resume=answers or True)
    if result is None:
        return EXIT_CODES["cancelled"]
    screen.tell_account()
    if result.stop_reason == "approval_needed":
        sys.stderr.write(f"It waits. {how_to_resume(run_id, options)}")
    return EXIT_CODES.get(result.stop_reason, 1)


def _recover(options: argparse.Namespace, _bare: TextIO) -> int:
    from jackfield_records.recovering import interrupted_runs, recover
    from jackfield_terminal.running import how_to_resume

    agent, _ = agent_of(options)
    assert agent.store is not None  # noqa: S101 - an option has a default
    runs = sync.run(interrupted_runs(agent.store, agent.name or type(agent).__name__))
    if options.list:
        if runs:
            print_table(("run", "began", "asked"), [(run.run_id[:12], _when(run.began), run.title) for run in runs])
        else:
            print("no run of this agent was interrupted")
        return 0
    _require_consent(agent.store, [run.run_id for run in runs], options)
    recovered = sync.run(recover(agent))
    if not recovered:
        print("no run of this agent was interrupted")
        return 0
    rows = [(one.run_id[:12], _STATES.get(one.outcome, one.outcome), printable(one.note)) for one in recovered]
    print_table(("run", "outcome", ""), rows)
    for one in recovered:
        if one.outcome == "approval_needed":
            sys.stderr.write(how_to_resume(one.run_id, options))
    return int(any(one.outcome != "finished" for one in recovered))


def _fork(options: argparse.Namespace, _bare: TextIO) -> int:
    from jackfield_records import fork

    store = _store(options)
    print(sync.run(fork(store, run_id_of(store, options.run), at=options.at)))
    return 0


def _delete(options: argparse.Namespace, _bare: TextIO) -> int:
    store = _store(options)
    for run_id in [run_id_of(store, given) for given in options.runs]:
        sync.run(store.delete(run_id))
        print(f"deleted {run_id}")
    return 0


# --- what they share --------------------------------------------------------------------------------------------------


def run_id_of(store: Store, given: str) -> str:
    """The id of the one run that begins like this, or of the `last` one.

    Raises:
        RunNotFoundError: There is none, or several.
    """
    ids = [run.run_id for run in sync.run(store.runs(limit=_MOST))]
    match _meant(given, ids):
        case [run_id]:
            return run_id
        case []:
            problem = f"there is no run {given!r}"
        case several:
            problem = f"{len(several)} runs begin with {given!r}: write more of it"
    raise RunNotFoundError(f"{problem}; jackfield runs list shows them")


def _meant(given: str, ids: Sequence[str]) -> Sequence[str]:
    """The ids, newest first, that somebody may mean."""
    if given in ids:
        return [given]
    return ids[:1] if given == "last" else [run_id for run_id in ids if run_id.startswith(given)]


def conversation_of(store: Store, session: str, agent: Agent) -> list[Message]:
    """What was said in a session: the history of its last run."""
    from jackfield.agents import RunView, with_calls_closed
    from jackfield.events import RunStarted
    from jackfield.messages import without_system_text
    from jackfield_records import events_of

    last = sync.run(store.runs(session=session, limit=1))
    if not last:
        return []
    events: list[RunEvent] = events_of(*sync.run(store.read(last[0].run_id)))
    view = RunView(agent.name)
    asked: list[Message] = []
    for event in events:
        if isinstance(event.event, RunStarted):
            asked = list(without_system_text(event.event.messages, agent.system_message))
        view.feed(event.event)
    return with_calls_closed([*asked, *view.messages()])


def last_session(store: Store) -> str | None:
    """The session whose run was begun last."""
    return next((run.session for run in sync.run(store.runs(limit=_MOST)) if run.session), None)


def state_of(run: StoredRun) -> str:
    """The state of a run, for people."""
    if run.state == RUNNING:
        return "running" if run.is_held else "interrupted"
    return _STATES.get(run.state, run.state.replace("_", " "))


def _store(options: argparse.Namespace) -> Store:
    from jackfield.plugins import default_host
    from jackfield.stores import load_store

    return load_store(options.store, default_host())


def _answers(store: Store, run_id: str, options: argparse.Namespace) -> Mapping[str, bool]:
    """What the command line says to the calls that wait, and to no others."""
    from jackfield.events import ApprovalNeeded
    from jackfield_records import events_of

    waiting: Sequence[str] = ()
    if options.approve or options.refuse:
        for one in events_of(*sync.run(store.read(run_id))):
            waiting = one.event.call_ids if isinstance(one.event, ApprovalNeeded) else waiting
    return dict.fromkeys(waiting, bool(options.approve))


def _require_consent(store: Store, run_ids: Sequence[str], options: argparse.Namespace) -> None:
    """Ask before calls are made that wait in a file which came from elsewhere.

    Raises:
        ConsentNeededError: The user has not agreed to them.
    """
    from jackfield.cli import with_consent
    from jackfield.consent import MakesCall, Request, content_hash, require_consent, unique
    from jackfield_records.progress import progress_of

    path = sync.run(store.foreign_file())
    if path is None:
        return
    records = {run_id: sync.run(store.read(run_id))[1] for run_id in run_ids}
    calls = [call for entries in records.values() for call in _waiting_calls(progress_of(entries))]
    content = content_hash({run_id: "\n".join(entries).encode() for run_id, entries in records.items()})
    effects = unique(MakesCall(call.name, call.arguments) for call in calls)
    request = Request(path, effects, content, by_command=False)
    with_consent(lambda: require_consent(request, trust=options.trust))


def _waiting_calls(progress: Progress) -> Iterator[FunctionCall]:
    """The calls of a run, and of the runs below it, that have no result."""
    from jackfield.agents import open_calls

    for planned in open_calls([*progress.messages, *progress.now()]):
        yield planned.call
    for below in progress.asked.values():
        yield from _waiting_calls(below)


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _line_of(entry: Mapping[str, object]) -> str:
    """One line of what an entry says."""
    line = " ".join(_said_by(entry).split())
    return line if len(line) <= 100 else f"{line[:99]}…"


def _said_by(entry: Mapping[str, object]) -> str:
    match entry:
        case {"event": "ApprovalDecided", "allowed": bool(allowed), "call": {"name": str(name)}, "by": str(by)}:
            return f"{name}: {_answer(allowed)} by {by}"
        case {"event": "ApprovalNeeded", "calls": list(calls)}:
            return ", ".join(map(_call, calls))
        case {"event": "Resumed", "approvals": {**approvals}}:
            return ", ".join(f"{call_id}: {_answer(allowed)}" for call_id, allowed in approvals.items())
        case {"event": "HandedOff", "to": str(to)}:
            return f"to {to}"
        case {"event": "PluginEvent", "name": str(name), "data": {"note": str(note)}}:
            return f"{name}: {note}"
        case {"event": "PluginEvent", "name": str(name)}:
            return name
    return _said_in_messages(entry)


def _said_in_messages(entry: Mapping[str, object]) -> str:
    messages = entry.get("messages", [entry["message"]] if "message" in entry else [])
    texts = map(_said_in, messages if isinstance(messages, list) else ())
    return " ".join([*filter(None, texts), str(entry.get("stop_reason") or entry.get("error") or "")])


def _said_in(message: Mapping[str, Any]) -> str:
    call, content = message.get("function_call"), message.get("content", "")
    if call:
        return _call(call)
    return content if isinstance(content, str) else f"[{len(content)} parts]" * bool(content)


def _call(call: Mapping[str, str]) -> str:
    return f"{call['name']}({call.get('arguments', '')})"


def _answer(allowed: object) -> str:
    return "allowed" if allowed else "refused"
