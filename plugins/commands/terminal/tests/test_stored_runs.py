"""Runs are found again in a store or a file, and each is continued as it was."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jackfield import FnCallAgent
from jackfield.errors import ConfigError, ConsentNeededError, RunNotFoundError
from jackfield.messages import FunctionCall, Message
from jackfield.plugins import default_host
from jackfield.secrets import SEAL, Secrets
from jackfield.stores import StoredRun, load_store
from jackfield.testing import ScriptedModel, answer
from jackfield_terminal import saved_runs, stored_runs
from jackfield_terminal.saved_runs import claim_run, load_run, release_run, save_run
from jackfield_terminal.stored_runs import choose_last_run, choose_model, find_last_chat, run_id_of


def store_of(*runs: StoredRun) -> Any:
    """A store with these runs, the newest first."""

    async def listed(*, session: str | None = None, limit: int) -> list[StoredRun]:
        return [run for run in runs if session in (None, run.session)][:limit]

    async def foreign_file() -> None:
        """Come from here."""

    return SimpleNamespace(runs=listed, foreign_file=foreign_file)


def test_a_run_is_named_by_its_id_its_beginning_or_as_the_last_one() -> None:
    store = store_of(*(StoredRun(run_id=name) for name in ("cd", "abc", "ab")))
    assert [run_id_of(store, text) for text in ("ab", "abc", "c", "last")] == ["ab", "abc", "cd", "cd"]
    with pytest.raises(RunNotFoundError, match="2 runs start with 'a'"):
        run_id_of(store, "a")
    for other, text in ((store, "b"), (store_of(), "last")):
        with pytest.raises(RunNotFoundError, match=f"no such run: '{text}'"):
            run_id_of(other, text)


RUNS = (
    StoredRun(run_id="1"), StoredRun(run_id="2", session="run:a"), StoredRun(run_id="3", session="chat-b"),
    StoredRun(run_id="4", session="run:c"), StoredRun(run_id="5", session="chat-d"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("session", "runs", "found"),
    [(None, RUNS, "3"), ("chat-d", RUNS, "5"), ("run:c", RUNS, "4"), ("x", RUNS, None), (None, RUNS[:2], None)],
)
def test_the_last_chat_is_the_newest_run_of_a_session_that_is_no_single_question(
    session: str | None, runs: tuple[StoredRun, ...], found: str | None
) -> None:
    run = find_last_chat(store_of(*runs), session)
    assert (run and run.run_id) == found


def options_of(**values: object) -> argparse.Namespace:
    return argparse.Namespace(**{"model": None, "config": None, "base_url": None, "store": None, **values})


def test_the_last_single_question_is_continued_with_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = StoredRun(run_id="4", session="run:c", model="openai:gpt-x https://example.org/v1")
    monkeypatch.setattr(stored_runs, "open_store", lambda *_: store_of(*RUNS[2:3], asked, RUNS[1]))
    options = options_of()
    assert choose_last_run(options).session == "run:c"
    assert (options.model, options.base_url) == ("openai:gpt-x", "https://example.org/v1")
    monkeypatch.setattr(stored_runs, "open_store", lambda *_: store_of(RUNS[0], RUNS[2]))
    with pytest.raises(ConfigError, match="no recorded run to continue"):
        choose_last_run(options)


@pytest.mark.parametrize(
    ("model", "given", "expected"),
    [
        ("m:x", {}, ("m:x", None)),
        ("m:x https://a", {}, ("m:x", "https://a")),
        ("m:x https://a", {"base_url": "https://b"}, ("m:x", "https://b")),
        ("m:x https://a", {"model": "m:y"}, ("m:y", None)),
        ("m:x https://a", {"config": "agent.yaml"}, (None, None)),
        ("", {}, (None, None)),
    ],
    ids=["without an address", "its address", "another address", "another model", "an agent", "unknown"],
)
def test_a_run_goes_on_with_its_model_and_its_server_unless_others_are_named(
    model: str, given: dict[str, str], expected: tuple[str | None, str | None]
) -> None:
    options = options_of(**given)
    choose_model(options, StoredRun(run_id="r", model=model), store_of())
    assert (options.model, options.base_url) == expected
    choose_model(options, None, store_of())
    assert (options.model, options.base_url) == expected


def test_an_address_that_is_not_recorded_whole_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_runs, "placeholders_in", lambda text: [text] if "secret" in text else [])
    run = StoredRun(run_id="r", model="m:x https://secret/v1")
    with pytest.raises(ConfigError, match="pass --base-url or -m"):
        choose_model(options_of(), run, store_of())
    options = options_of(base_url="https://b")
    choose_model(options, run, store_of())
    assert (options.model, options.base_url) == ("m:x", "https://b")


def test_the_model_of_a_run_from_elsewhere_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, the file's author would choose the server that gets the user's key."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    mine = {"name": "sqlite", "path": str(tmp_path / "mine" / "runs.sqlite")}
    FnCallAgent(llm=ScriptedModel([answer("Hi.")]), store=mine).ask("Hello")
    shutil.copytree(tmp_path / "mine", tmp_path / "theirs")
    theirs = {**mine, "path": str(tmp_path / "theirs" / "runs.sqlite")}
    run = StoredRun(run_id="r", model="m:x https://a")
    options = options_of()
    with pytest.raises(ConfigError, match=r"theirs/runs.sqlite was not written on this machine.*: pass -m"):
        choose_model(options, run, load_store(theirs, default_host()))
    assert (options.model, options.base_url) == (None, None)
    choose_model(options_of(model="m:y"), run, load_store(theirs, default_host()))
    choose_model(options, run, load_store(mine, default_host()))
    assert (options.model, options.base_url) == ("m:x", "https://a")


# --- files ---

WAITING = [
    Message("user", "Pay."),
    Message("assistant", "", function_call=FunctionCall("pay", '{"amount": 3}'), extra={"function_id": "c1"}),
]


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))


def test_a_saved_run_is_resumed_once_unless_no_call_was_made(tmp_path: Path) -> None:
    path, secrets = tmp_path / "run.json", Secrets([])
    save_run(path, WAITING, "approval_needed", secrets)
    text = path.read_text()
    assert load_run(path, secrets) == tuple(WAITING), "the user's own run needs no consent"
    release_run(path)
    assert path.read_text() == text
    claim_run(path)
    marked = path.read_text()
    assert load_run(path, secrets) == tuple(WAITING), "nor when it is marked"
    with pytest.raises(ConfigError, match=r"was resumed on \d{4}-\d\d-\d\d \d\d:\d\d, so its calls may have run"):
        claim_run(path)
    claim_run(path, again=True)
    assert path.read_text() == marked, "one mark is enough"
    release_run(path)
    assert path.read_text() == text
    claim_run(path)


def test_of_two_that_resume_a_saved_run_the_one_that_waited_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, lock = tmp_path / "run.json", saved_runs._lock
    save_run(path, WAITING, "approval_needed", Secrets([]))

    def wait(handle: int) -> None:
        monkeypatch.setattr(saved_runs, "_lock", lock)
        claim_run(path)  # by the other, while this one waits
        lock(handle)

    monkeypatch.setattr(saved_runs, "_lock", wait)
    with pytest.raises(ConfigError, match="was resumed on"):
        claim_run(path)


def test_consent_to_a_saved_run_is_for_all_but_the_digests_of_secrets() -> None:
    record = {"format": "f", "messages": [{"content": "Hi", SEAL: "digest"}, {"content": "Ho"}]}
    assert saved_runs._without_seals(record) == {"format": "f", "messages": [{"content": "Hi"}, {"content": "Ho"}]}


def test_a_saved_run_that_was_changed_needs_consent(tmp_path: Path) -> None:
    path, secrets = tmp_path / "run.json", Secrets([])
    save_run(path, WAITING, "approval_needed", secrets)
    path.write_text(path.read_text().replace("3}", "4}"))
    with pytest.raises(ConsentNeededError):
        load_run(path, secrets)
    assert load_run(path, secrets, trust=True)[1].function_call == FunctionCall("pay", '{"amount": 4}')


@pytest.mark.parametrize("record", [[], {}, {"format": "other", "messages": []}, {"format": saved_runs.FORMAT}])
def test_what_is_no_saved_run_is_refused(record: object, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(record))
    with pytest.raises(ConfigError, match="is not a conversation written by `jackfield run --save` or /save"):
        load_run(path, Secrets([]))
