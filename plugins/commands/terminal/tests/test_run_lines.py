"""The lines that commands print about recorded runs: states, steps, excerpts, and the next command."""

from __future__ import annotations

import argparse
import io
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.events import MediaDelta, RunEvent, TextDelta
from jackfield.messages import ContentItem
from jackfield.stores import StoredRun
from jackfield_terminal.options import format_agent_options, run_parser
from jackfield_terminal.run import EXIT_CODES, _next_step, how_to_resume
from jackfield_terminal.runs import _find_excerpt, _listed_state, _print_runs, _summarise, runs_parser, state_of
from jackfield_terminal.screen import Screen
from jackfield_terminal.stored_runs import find_last_chat
from jackfield_testkit.records import MemoryStore


def stored(state: str = "finished", **more: Any) -> StoredRun:
    return StoredRun(**{"run_id": "r" * 20, "state": state, "began": 0.0, "changed": 0.0, **more})


@pytest.mark.parametrize(
    ("state", "is_held", "told", "listed"),
    [
        ("running", True, "running", "running"),
        ("running", False, "interrupted", "interrupted"),
        ("approval_needed", False, "waiting for approval", "waiting"),
        ("input_needed", False, "waiting for input", "waiting"),
        ("finished", False, "finished", "finished"),
        ("failed", False, "failed", "failed"),
        ("cancelled", False, "cancelled", "cancelled"),
        ("token_limit", False, "token limit", "stopped"),
        ("empty_reply", False, "empty reply", "stopped"),
    ],
)
def test_a_state_is_told_in_words_and_listed_by_one(state: str, is_held: bool, told: str, listed: str) -> None:
    run = stored(state, is_held=is_held)
    assert (state_of(run), _listed_state(run)) == (told, listed)


CALL = {"name": "add", "arguments": '{"a": 1}'}
CITATION = {"mark": "1", "location": "a.pdf", "answer_ranges": [[0, 3]]}
PARTS = [{"content": "Hi"}, {"content": [{}, {}]}, {"content": []}]


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ({"event": "ApprovalDecided", "allowed": True, "call": CALL, "by": "the user"}, "add: allowed by the user"),
        ({"event": "ApprovalDecided", "allowed": False, "call": CALL, "by": "a rule"}, "add: denied by a rule"),
        ({"event": "ApprovalNeeded", "calls": [CALL, CALL]}, 'add({"a": 1}), add({"a": 1})'),
        ({"event": "Resumed", "approvals": {"c1": True, "c2": False}}, "c1: allowed, c2: denied"),
        ({"event": "Traced", "headers": {"traceparent": "00-1"}}, "00-1"),
        ({"event": "HandedOff", "to": "boss"}, "to boss"),
        ({"event": "PluginEvent", "name": "acme.found", "data": {"note": "two\nfiles"}}, "acme.found: two files"),
        ({"event": "PluginEvent", "name": "acme.found", "data": {"n": 1}}, "acme.found"),
        (
            {"event": "PluginEvent", "name": "acme.cited", "data": {"citations": [CITATION]}},
            "acme.cited: [1] a.pdf",
        ),
        (
            {"event": "RunStarted", "messages": [{"content": "Hi"}, {"content": [{}, {}]}, {"content": []}]},
            "Hi [2 parts]",
        ),
        ({"event": "ToolFinished", "message": {"content": "3"}}, "3"),
        ({"event": "TurnFinished", "messages": [{"content": "", "function_call": CALL}]}, 'add({"a": 1})'),
        ({"event": "RunFinished", "messages": [{"content": "So."}], "stop_reason": "finished"}, "So. finished"),
        ({"event": "RunFailed", "error": "no key"}, "no key"),
        ({"event": "Other"}, ""),
    ],
    ids=lambda value: "" if isinstance(value, str) else value["event"],
)
def test_a_step_is_told_in_one_line(entry: dict[str, Any], line: str) -> None:
    assert _summarise(entry) == line


@pytest.mark.parametrize(("length", "told"), [(100, "x" * 100), (101, f"{'x' * 99}…")])
def test_a_step_has_at_most_100_characters(length: int, told: str) -> None:
    assert _summarise({"event": "ToolFinished", "message": {"content": "x" * length}}) == told


# --- excerpts ---


def excerpt(text: str, *words: str) -> str:
    """Find words in a run whose question is a text."""
    import asyncio
    import json

    store, run = MemoryStore(), stored("running", title="a title")
    message = {"role": "user", "content": text}
    asyncio.run(store.create(run, [json.dumps({"event": "RunStarted", "messages": [message]})]))
    return _find_excerpt(store, run, words)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("The otter swims.", "The otter swims."),
        ("The\n otter\tswims.", "The otter swims."),
        (f"{'a' * 60}otter{'b' * 55}", f"{'a' * 60}otter{'b' * 55}"),
        (f"{'a' * 60}otter{'b' * 56}", f"{'a' * 60}otter{'b' * 55}…"),
        (f"{'a' * 61}otter", f"…{'a' * 60}otter"),
        ("Nothing of it.", "a title"),
    ],
    ids=["whole", "lines", "fits", "end", "beginning", "none"],
)
def test_an_excerpt_shows_60_characters_before_a_word_and_as_many_from_it_on(text: str, told: str) -> None:
    assert excerpt(text, "otter") == told


def test_an_excerpt_is_about_the_first_word_that_occurs() -> None:
    assert excerpt(f"OTTER {'a' * 200} beaver", "beaver", "otter").startswith("OTTER aaa")


def test_a_run_that_was_deleted_meanwhile_has_its_title() -> None:
    assert _find_excerpt(MemoryStore(), stored(title="a title"), ["otter"]) == "a title"


def test_columns_that_are_empty_for_all_runs_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [stored(agent="a", session="run:1", model="openai:m http://x"), stored(run_id="other-run-id-1", session="s")]
    _print_runs(runs, ("asked", ["", ""]))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["run", "began", "state", "agent", "model", "session"]
    assert lines[1].split()[0] == "r" * 12
    assert "openai:m" in lines[1]
    assert "http" not in lines[1]
    assert "run:1" not in lines[1]
    assert lines[2].split()[-1] == "s"


# --- what to type next ---


RECORDED = "The run is recorded. To continue, run: jackfield runs resume"


def options(*words: str) -> argparse.Namespace:
    return run_parser().parse_args(words)


@pytest.mark.parametrize(
    ("words", "reason", "run_id", "told"),
    [
        ((), "finished", "r1", ""),
        ((), "token_limit", "r1", ""),
        (("-m", "echo:m"), "input_needed", "r1", "To reply, run: jackfield chat --model echo:m\n"),
        (
            ("-m", "echo:m"),
            "approval_needed",
            "abcdefghijklmnop",
            f"{RECORDED} abcdefghijkl --model echo:m --approve (or --deny)\n",
        ),
        (
            ("--schema", "a int"),
            "approval_needed",
            "r1",
            f"{RECORDED} r1 --schema 'a int' --approve (or --deny)\n",
        ),
        (
            (),
            "approval_needed",
            "",
            "Nothing was saved. Run the command in a terminal to answer now, or pass --save FILE to answer later.\n",
        ),
        (
            ("--save", "my run.json"),
            "approval_needed",
            "",
            "Saved. To continue, run: jackfield run --resume 'my run.json' --approve (or --deny)\n",
        ),
        (
            ("--save=-run.json",),
            "approval_needed",
            "",
            "Saved. To continue, run: jackfield run --resume ./-run.json --approve (or --deny)\n",
        ),
    ],
)
def test_a_run_that_waits_names_the_command_that_continues_it(
    words: tuple[str, ...], reason: str, run_id: str, told: str
) -> None:
    assert _next_step(options(*words), reason, run_id) == told


def test_a_command_that_continues_a_run_has_all_options_of_the_agent() -> None:
    words = (
        "--config a.yaml --param x=1 --param y=2 --model echo:m --base-url http://127.0.0.1 --option seed=1 "
        "--agent fncall --tool clock --tool look --file a.md --index notes --system 'Be brief.' --max-turns 3 "
        "--allow look --forbid network --lang zh --output out --trust --store other"
    )
    assert format_agent_options(options(*shlex.split(words))) == words
    assert format_agent_options(options("--ask", "ask", "--attach", "a.png", "-q", "Hi")) == "--ask ask"
    assert format_agent_options(options("--store", "sqlite")) == ""
    parsed = runs_parser().parse_args(["resume", "last", "--approve"])
    assert how_to_resume("r1", parsed) == "To continue, run: jackfield runs resume r1 --approve (or --deny)\n"


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.sampled_from(["--", "-", ""]))
def test_any_value_of_an_option_survives_in_the_command_that_continues_a_run(text: str, start: str) -> None:
    value = start + text
    parsed = options(f"--file={value}", f"--system={value}", f"--model={value}")
    again = options(*shlex.split(format_agent_options(parsed)))
    assert (again.file, again.system, again.model) == ([value], value, value)


def test_exit_codes_are_those_of_shells() -> None:
    assert {reason: EXIT_CODES.get(reason, 1) for reason in ("finished", "cancelled", "token_limit")} == {
        "finished": 0,
        "cancelled": 130,
        "token_limit": 1,
    }


@pytest.mark.parametrize(
    ("words", "defaults"),
    [
        (["list"], {"limit": 20, "session": None, "state": None, "json": False, "store": "sqlite"}),
        (["search", "a", "b"], {"text": ["a", "b"], "limit": 20, "json": False}),
        (["show", "last"], {"run": "last", "tree": False, "json": False}),
        (["replay", "last"], {"events": False, "quiet": False, "plain": False, "output": None}),
        (["resume", "last"], {"approve": False, "deny": False, "schema": None, "attach": [], "tool": []}),
    ],
)
def test_options_of_runs_have_these_defaults(words: list[str], defaults: dict[str, object]) -> None:
    parsed = vars(runs_parser().parse_args(words))
    assert {name: parsed[name] for name in defaults} == defaults


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["list", "--state", "odd"],
        ["show"],
        ["show", "last", "--tree", "--json"],
        ["resume", "x", "--approve", "--deny"],
    ],
    ids=" ".join,
)
def test_wrong_words_end_with_2(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        runs_parser().parse_args(words)
    assert ended.value.code == 2


# --- the last chat ---


@pytest.mark.parametrize(
    ("session", "found"),
    [(None, "newest"), ("a", "older"), ("b", "newest"), ("gone", None)],
)
def test_the_last_chat_is_that_of_the_session_or_of_the_last_one(session: str | None, found: str | None) -> None:
    import asyncio

    store = MemoryStore()
    runs = [("older", "a"), ("newest", "b"), ("alone", "run:1"), ("without", "")]
    for number, (run_id, name) in enumerate(runs):
        run = stored("running", run_id=run_id, session=name, began=float(number), changed=float(number))
        asyncio.run(store.create(run, []))
    last = find_last_chat(store, session)
    assert (last and last.run_id) == found


def test_a_file_that_cannot_be_saved_is_told_once(tmp_path: Path) -> None:
    parsed = options("--output", str(tmp_path / "file" / "inner"), "--plain")
    (tmp_path / "file").write_text("")
    notes = io.StringIO()
    screen = Screen(parsed, bare=io.StringIO(), notes=notes)
    image = ContentItem(image="data:image/png;base64,iVBORw0KGgo=")
    screen.record(RunEvent("r", 1, "a", 0, MediaDelta(image)))
    screen.record(RunEvent("r", 2, "a", 0, TextDelta("more")))
    assert notes.getvalue().count("! answer-1.png could not be saved in ") == 1
