"""`jackfield runs`: list, search, show, replay, resume, fork and delete recorded runs."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from jackfield import sync
from jackfield.cli import Parser, escape_line, guard_output, needs_ascii, print_json, print_table, terminal_columns
from jackfield.defaults import STORE
from jackfield.errors import ConfigError, RunNotFoundError
from jackfield.plugins import default_host
from jackfield.plurals import format_count
from jackfield.stores import RUNNING, Store, StoredRun
from jackfield.suggestions import list_names
from jackfield_terminal.options import add_run_options, add_schema_option, create_agent_from
from jackfield_terminal.recording import ONE_SHOT, open_store
from jackfield_terminal.safe_text import Terminal
from jackfield_terminal.stored_runs import MAX_RUNS, choose_model, run_id_of

if TYPE_CHECKING:
    from jackfield.agents import Agent
    from jackfield.messages import FunctionCall
    from jackfield_records.progress import Progress

_STATES = {"approval_needed": "waiting for approval", "input_needed": "waiting for input"}
_LISTED_STATES = ("running", "interrupted", "waiting", "finished", "failed", "cancelled", "stopped")
_EXCERPT = 60  # characters on each side of a matching word


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield runs` and return its exit code."""
    options = runs_parser().parse_args(arguments)
    if getattr(options, "limit", 1) < 1:
        raise ConfigError(f"--limit must be at least 1, got {options.limit}")
    bare = sys.stdout
    with guard_output(Terminal):
        code: int = options.action(options, bare)
        return code


def runs_parser() -> Parser:
    """Return the argument parser of `jackfield runs`."""
    parser = Parser(prog="jackfield runs", description="List, search, show, replay and resume recorded runs of agents.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    listing = _command(commands, "list", "list runs, the newest first", _list, takes_run=False)
    listing.add_argument("--session", metavar="NAME", help="only runs of this conversation")
    listing.add_argument("--limit", type=int, default=20, metavar="N", help="maximum number of runs (20)")
    listing.add_argument(
        "--state",
        metavar="STATE",
        choices=_LISTED_STATES,
        help=f"only runs in this state: {', '.join(_LISTED_STATES)}",
    )
    listing.add_argument("--json", action="store_true", help="print JSON")
    search = _command(commands, "search", "find runs by words of their questions and answers", _search, takes_run=False)
    search.add_argument(
        "text", metavar="TEXT", nargs="+", help="words, all of which must occur, also as parts of words"
    )
    search.add_argument("--limit", type=int, default=20, metavar="N", help="maximum number of runs (20)")
    search.add_argument("--json", action="store_true", help="print JSON")
    show = _command(commands, "show", "show the steps of a run", _show)
    form = show.add_mutually_exclusive_group()
    form.add_argument(
        "--tree",
        action="store_true",
        help="print time, tokens and cost per step, nested agents indented (+: some cost is unknown)",
    )
    form.add_argument("--json", action="store_true", help="print the record as JSON")
    replay = _command(commands, "replay", "show a run again as it happened; no model or tool is called", _replay)
    replay.add_argument("--events", action="store_true", help="print every event as a line of JSON")
    add_run_options(replay, agent=False)
    resume = _command(commands, "resume", "continue a run that was interrupted, or is waiting for approval", _resume)
    answer = resume.add_mutually_exclusive_group()
    answer.add_argument("--approve", action="store_true", help="allow the pending calls")
    answer.add_argument("--deny", action="store_true", help="deny the pending calls")
    add_schema_option(resume)
    add_run_options(resume)
    recovering = _command(
        commands, "recover", "resume all runs of an agent whose process has ended", _recover, takes_run=False
    )
    recovering.add_argument("--list", action="store_true", help="only list them")
    add_run_options(recovering)
    fork = _command(commands, "fork", "copy a run up to a step, to resume it from there", _fork)
    fork.add_argument(
        "--at", type=int, metavar="STEP", help="the last step to copy, as numbered by show (default: all)"
    )
    delete = _command(commands, "delete", "delete runs", _delete, takes_run=False)
    delete.add_argument("runs", nargs="+", metavar="RUN", help="an id, the start of one, or last")
    return parser


def _command(
    commands: argparse._SubParsersAction[Parser],
    name: str,
    help_: str,
    action: Callable[[argparse.Namespace, TextIO], int],
    *,
    takes_run: bool = True,
) -> Parser:
    parser = commands.add_parser(name, help=help_, description=f"{help_[0].upper()}{help_[1:]}.")
    if takes_run:
        parser.add_argument("run", metavar="RUN", help="an id, the start of one, or last")
    parser.add_argument("--store", default=STORE, metavar="NAME", help=f"the store ({STORE})")
    parser.set_defaults(action=action)
    return parser


# --- commands ---------------------------------------------------------------------------------------------------------


def _list(options: argparse.Namespace, _bare: TextIO) -> int:
    store = open_store(options.store, default_host())
    # Filtered here, because the shown state also depends on whether the run is held.
    limit = MAX_RUNS if options.state else options.limit
    runs = sync.run(store.runs(session=options.session, limit=limit))
    if options.state:
        runs = [run for run in runs if _listed_state(run) == options.state][: options.limit]
    if options.json:
        print_json([_run_to_json(run) for run in runs])
        return 0
    if not runs:
        print(f"no runs are {options.state}" if options.state else "no runs are recorded")
    _print_runs(runs, ("asked", [run.title for run in runs]))
    return 0


def _search(options: argparse.Namespace, _bare: TextIO) -> int:
    from jackfield_records import search_words

    store = open_store(options.store, default_host())
    text = " ".join(options.text)
    runs = sync.run(store.search(text, limit=options.limit))
    words = search_words(text)
    excerpts = [_find_excerpt(store, run, words) for run in runs]
    if options.json:
        print_json([{**_run_to_json(run), "excerpt": excerpt} for run, excerpt in zip(runs, excerpts, strict=True)])
        return 0
    if not runs:
        print(f"no recorded run contains {escape_line(text)!r} in its question or answers")
    _print_runs(runs, ("text", excerpts))
    return 0


def _find_excerpt(store: Store, run: StoredRun, words: Sequence[str]) -> str:
    """Return the text around the first matching word in a run's question or answers, on one line."""
    from jackfield_records import texts_of

    try:
        _, entries = sync.run(store.read(run.run_id))
    except RunNotFoundError:  # deleted in the meantime
        return run.title
    for text in (text for entry in entries for text in texts_of(entry)):
        line = " ".join(text.split())
        # Case folding can change a text's length, but rarely, and the position need not be exact.
        positions = [line.casefold().find(word) for word in words]
        if max(positions) >= 0:
            start = max(0, min(position for position in positions if position >= 0) - _EXCERPT)
            end = start + 2 * _EXCERPT
            return f"{'…' if start else ''}{line[start:end].strip()}{'…' if end < len(line) else ''}"
    return run.title


def _print_runs(runs: Sequence[StoredRun], last: tuple[str, Sequence[str]]) -> None:
    """Print runs as a table, omitting empty columns."""
    columns = {
        "run": [run.run_id[:12] for run in runs],
        "began": [_format_time(run.began) for run in runs],
        "state": [state_of(run) for run in runs],
        "agent": [run.agent for run in runs],
        "model": [run.model.partition(" ")[0] for run in runs],
        "session": ["" if run.session.startswith(ONE_SHOT) else run.session for run in runs],
        last[0]: last[1],
    }
    columns = {name: cells for name, cells in columns.items() if any(cells)}
    print_table(list(columns), list(zip(*columns.values(), strict=True)))


def _run_to_json(run: StoredRun) -> dict[str, object]:
    return {name: getattr(run, name) for name in StoredRun.__slots__}


def _show(options: argparse.Namespace, _bare: TextIO) -> int:
    store = open_store(options.store, default_host())
    run, entries = sync.run(store.read(run_id_of(store, options.run)))
    record = [json.loads(entry) for entry in entries]
    if options.json:
        print_json(record)
        return 0
    print(f"run {run.run_id}: {state_of(run)}")
    for name in ("agent", "model", "session", "parent", "title"):
        if value := getattr(run, name):
            print(escape_line(f"{name}: {value}"))
    print(f"began: {_format_time(run.began)}")
    if options.tree:
        _print_tree(run, record)
        return 0
    rows = [(str(step), entry["event"], _summarise(entry)) for step, entry in enumerate(record, start=1)]
    print_table(("step", "event", ""), rows)
    return 0


def _print_tree(run: StoredRun, record: Sequence[Mapping[str, Any]]) -> None:
    from jackfield_terminal.run_tree import tree_lines, tree_of

    tree = tree_of(run.agent, record)
    if run.state != RUNNING:
        tree.seconds = run.changed - run.began
    print("\n".join(tree_lines(tree, terminal_columns(sys.stdout))))


def _replay(options: argparse.Namespace, bare: TextIO) -> int:
    from jackfield_records import events_of
    from jackfield_records.eventjson import run_event_to_json
    from jackfield_terminal.screen import Screen

    store = open_store(options.store, default_host())
    events = events_of(*sync.run(store.read(run_id_of(store, options.run))))
    if options.events:
        for event in events:
            print(json.dumps(run_event_to_json(event), ensure_ascii=needs_ascii(sys.stdout)))
        return 0
    screen = Screen(options, bare=bare, notes=sys.stderr)
    for event in events:
        screen.show(event)
    screen.renderer.end_line()
    return 0


def _resume(options: argparse.Namespace, bare: TextIO) -> int:
    from jackfield_terminal.run import EXIT_CODES, how_to_resume, print_output, read_form, run_and_show
    from jackfield_terminal.screen import Screen

    form = read_form(options)
    if not options.config:  # a file names its own model, and perhaps its own store
        store = open_store(options.store, default_host())
        run, _ = sync.run(store.read(run_id_of(store, options.run)))
        choose_model(options, run, store)
    agent, documents = create_agent_from(options)
    assert agent.store is not None  # noqa: S101 - an option has a default
    run_id = run_id_of(agent.store, options.run)
    run, entries = sync.run(agent.store.read(run_id))
    if run.state == "finished":
        sys.stderr.write(f"The run has finished. To see it again, run: jackfield runs replay {run_id[:12]}\n")
        return 0
    _require_consent(agent.store, [run_id], options)
    pending = _ids_for_approval(run, entries)
    if not (options.config or options.deny):
        _require_tools(agent, entries, pending)
    screen = Screen(options, bare=bare, notes=sys.stderr)
    screen.report_skipped(documents)
    decisions = dict.fromkeys(pending, bool(options.approve)) if options.approve or options.deny else {}
    result = run_and_show(agent, None, options, screen, run_id=run_id, resume=decisions or True, form=form)
    if result is None:
        return EXIT_CODES["cancelled"]
    print_output(result, options)
    screen.report_summary()
    if result.stop_reason == "approval_needed":
        sys.stderr.write(f"The run is waiting for approval. {how_to_resume(run_id, options)}")
    return EXIT_CODES.get(result.stop_reason, 1)


def _recover(options: argparse.Namespace, _bare: TextIO) -> int:
    from jackfield_records.recovering import interrupted_runs, recover
    from jackfield_terminal.run import how_to_resume

    agent, _ = create_agent_from(options)
    assert agent.store is not None  # noqa: S101 - an option has a default
    runs = sync.run(interrupted_runs(agent.store, agent))
    if options.list:
        if runs:
            print_table(
                ("run", "began", "asked"), [(run.run_id[:12], _format_time(run.began), run.title) for run in runs]
            )
        else:
            print("no run of this agent was interrupted")
        return 0
    _require_consent(agent.store, [run.run_id for run in runs], options)
    recovered = sync.run(recover(agent))
    if not recovered:
        print("no run of this agent was interrupted")
        return 0
    rows = [(run.run_id[:12], _STATES.get(run.outcome, run.outcome), escape_line(run.note)) for run in recovered]
    print_table(("run", "outcome", ""), rows)
    for run in recovered:
        if run.outcome == "approval_needed":
            sys.stderr.write(how_to_resume(run.run_id, options))
    return int(any(run.outcome != "finished" for run in recovered))


def _fork(options: argparse.Namespace, _bare: TextIO) -> int:
    from jackfield_records import fork

    store = open_store(options.store, default_host())
    print(sync.run(fork(store, run_id_of(store, options.run), at=options.at)))
    return 0


def _delete(options: argparse.Namespace, _bare: TextIO) -> int:
    store = open_store(options.store, default_host())
    for run_id in [run_id_of(store, text) for text in options.runs]:
        sync.run(store.delete(run_id))
        print(f"deleted {run_id}")
    return 0


# --- states, and calls that wait --------------------------------------------------------------------------------------


def state_of(run: StoredRun) -> str:
    """Describe a run's state."""
    if run.state == RUNNING:
        return "running" if run.is_held else "interrupted"
    return _STATES.get(run.state, run.state.replace("_", " "))


def _listed_state(run: StoredRun) -> str:
    """Return a run's state as used by `--state`, which is `stopped` for a run that reached a limit."""
    state = state_of(run).partition(" ")[0]
    return state if state in _LISTED_STATES else "stopped"


def _ids_for_approval(run: StoredRun, entries: Sequence[str]) -> frozenset[str]:
    """Return the ids of the calls for which the run last requested approval."""
    from jackfield.events import ApprovalNeeded
    from jackfield_records import events_of

    pending: Sequence[str] = ()
    for event in events_of(run, entries):
        if isinstance(event.event, ApprovalNeeded):
            pending = event.event.call_ids
    return frozenset(pending)


def _require_tools(agent: Agent, entries: Sequence[str], call_ids: Collection[str]) -> None:
    """Refuse to resume a run without the tools of its pending calls, since the calls would fail and the run would end.

    Raises:
        ConfigError: The agent lacks a tool of a pending call.
    """
    from jackfield.agents import open_calls
    from jackfield_records.progress import progress_of

    progress = progress_of(entries)
    planned = open_calls([*progress.messages, *progress.now()])
    needed = {one.call.name for one in planned if one.call_id in call_ids or one.call_id in progress.began}
    missing = sorted(needed - agent.function_map.keys())
    if missing and not agent.toolsets:  # the tools of a toolset are known only during a run
        options = " ".join(f"-t {shlex.quote(name)}" for name in missing)
        raise ConfigError(
            f"the run has pending calls to {list_names(missing)}, but this agent has no such tool: pass the options of "
            f"the run again, such as {options}, or its agent file (-C)"
        )


def _require_consent(store: Store, run_ids: Sequence[str], options: argparse.Namespace) -> None:
    """Ask for consent to pending calls if the store came from elsewhere.

    Raises:
        ConsentNeededError: The user has not agreed to the calls.
    """
    from jackfield.cli import with_consent
    from jackfield.consent import MakesCall, Request, content_hash, require_consent, unique
    from jackfield_records.progress import progress_of

    path = sync.run(store.foreign_file())
    if path is None:
        return
    records = {run_id: sync.run(store.read(run_id))[1] for run_id in run_ids}
    calls = [call for entries in records.values() for call in _pending_calls(progress_of(entries))]
    content = content_hash({run_id: "\n".join(entries).encode() for run_id, entries in records.items()})
    effects = unique(MakesCall(call.name, call.arguments) for call in calls)
    request = Request(path, effects, content, by_command=False)
    with_consent(lambda: require_consent(request, trust=options.trust))


def _pending_calls(progress: Progress) -> Iterator[FunctionCall]:
    """Yield the calls of a run and its sub-runs that have no result."""
    from jackfield.agents import open_calls

    for planned in open_calls([*progress.messages, *progress.now()]):
        yield planned.call
    for below in progress.asked.values():
        yield from _pending_calls(below)


def _format_time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _summarise(entry: Mapping[str, object]) -> str:
    """Summarise a record entry in one line."""
    line = " ".join(_content_of(entry).split())
    return line if len(line) <= 100 else f"{line[:99]}…"


def _content_of(entry: Mapping[str, object]) -> str:
    match entry:
        case {"event": "ApprovalDecided", "allowed": bool(allowed), "call": {"name": str(name)}, "by": str(by)}:
            return f"{name}: {_decision(allowed)} by {by}"
        case {"event": "ApprovalNeeded", "calls": list(calls)}:
            return ", ".join(_format_call(call) for call in calls)
        case {"event": "Resumed", "approvals": {**approvals}}:
            return ", ".join(f"{call_id}: {_decision(allowed)}" for call_id, allowed in approvals.items())
        case {"event": "Traced", "headers": {"traceparent": str(traceparent)}}:
            return traceparent
        case {"event": "HandedOff", "to": str(to)}:
            return f"to {to}"
        case {"event": "PluginEvent", "name": str(name), "data": {"note": str(note)}}:
            return f"{name}: {note}"
        case {"event": "PluginEvent", "name": str(name), "data": {"citations": [_, *_] as listed}}:
            from jackfield.citations import CITATIONS, citations_in

            cited = citations_in({CITATIONS: listed})
            return f"{name}: {', '.join(f'[{one.mark}] {one.place}' for one in cited)}"
        case {"event": "PluginEvent", "name": str(name)}:
            return name
    messages = entry.get("messages", [entry["message"]] if "message" in entry else [])
    texts = [_format_message(message) for message in messages] if isinstance(messages, list) else []
    texts.append(str(entry.get("stop_reason") or entry.get("error") or ""))
    return " ".join(texts)


def _format_message(message: Mapping[str, Any]) -> str:
    call, content = message.get("function_call"), message.get("content", "")
    if call:
        return _format_call(call)
    if isinstance(content, str):
        return content
    return f"[{format_count(len(content), 'part')}]" if content else ""


def _format_call(call: Mapping[str, str]) -> str:
    return f"{call['name']}({call.get('arguments', '')})"


def _decision(allowed: object) -> str:
    return "allowed" if allowed else "denied"
