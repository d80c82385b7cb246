"""Questions are recorded unless recording is switched off, and no answer is lost to a store."""

from __future__ import annotations

import asyncio
import io
import json
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jackfield import FnCallAgent
from jackfield.cli.main import main
from jackfield.defaults import STORE
from jackfield.errors import RunBusyError, StoreError
from jackfield.plugins import PluginHost
from jackfield.settings import Settings, load_settings
from jackfield.stores import StoredRun
from jackfield.testing import ScriptedModel, answer
from jackfield_terminal import recording
from jackfield_terminal.recording import BestEffortStore, configure_store, open_recording, open_store
from jackfield_testkit.records import MemoryStore
from jackfield_testkit.server import FakeOpenAI, text

Run = Callable[..., tuple[int, str, str]]
MODEL = ("-m", "offline:extractive")


@pytest.fixture
def jackfield(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("JACKFIELD_RECORD", raising=False)

    def run(*arguments: str, typed: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        code = main(list(arguments))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def recorded(jackfield: Run) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads(jackfield("runs", "list", "--json")[1])
    return runs


def test_a_run_and_a_chat_are_recorded_in_a_private_file(jackfield: Run, tmp_path: Path) -> None:
    assert jackfield("run", *MODEL, "What is a tide?")[0] == 0
    assert jackfield("chat", *MODEL, typed="one\ntwo\n")[0] == 0
    titles = [run["title"] for run in recorded(jackfield)]
    assert titles == ["two", "one", "What is a tide?"]
    files = [path for path in (tmp_path / "jackfield").rglob("*") if path.is_file()]
    assert files
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_an_option_switches_recording_off(jackfield: Run, tmp_path: Path) -> None:
    assert jackfield("run", *MODEL, "--no-record", "What is a tide?")[0] == 0
    assert jackfield("chat", *MODEL, "--no-record", typed="one\n")[0] == 0
    assert not list(tmp_path.rglob("*.sqlite"))


@pytest.mark.parametrize(
    ("variable", "setting", "is_recorded"),
    [("", "", True), ("0", "", False), ("", "record = false", False), ("1", "record = false", True)],
)
def test_the_environment_and_the_settings_switch_recording_off(
    tmp_path: Path, variable: str, setting: str, is_recorded: bool
) -> None:
    (tmp_path / "config.toml").write_text(setting)
    environ = {"JACKFIELD_RECORD": variable}
    settings = load_settings(environ, project_dir=tmp_path, user_file=tmp_path / "config.toml")
    assert (open_recording(PluginHost(settings=settings)) is not None) == is_recorded


def test_the_settings_of_the_default_store_apply_wherever_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(f"record = {{path = '{tmp_path}/mine.sqlite', keep_days = 30}}\n")
    for environ in ({}, {"JACKFIELD_RECORD": "1"}):
        settings = load_settings(environ, project_dir=tmp_path, user_file=tmp_path / "config.toml")
        host = PluginHost(settings=settings)
        recording = open_recording(host)
        assert recording is not None
        FnCallAgent(llm=ScriptedModel([answer("The sea.")]), store=recording).ask("What is a tide?")
        for name in (None, "sqlite"):
            assert asyncio.run(open_store(name, host).runs(limit=1))[0].title == "What is a tide?"
    assert (tmp_path / "mine.sqlite").exists()
    (tmp_path / "config.toml").write_text("record = {name = 'absent'}\n")
    settings = load_settings({}, project_dir=tmp_path, user_file=tmp_path / "config.toml")
    assert open_recording(PluginHost(settings=settings)) is None


def test_without_an_allowed_store_nothing_is_recorded_and_nothing_is_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    host = PluginHost(settings=Settings(block=frozenset({"jackfield-sqlite-store"})))
    assert open_recording(host) is None
    assert capsys.readouterr().err == ""


def test_a_store_of_an_agent_file_is_not_used_either_if_nothing_is_to_be_recorded(
    jackfield: Run, tmp_path: Path
) -> None:
    (tmp_path / "agent.json").write_text(json.dumps({"llm": "offline:extractive", "store": "sqlite"}))
    assert jackfield("run", "--config", "agent.json", "--no-record", "Hello")[0] == 0
    assert not list(tmp_path.rglob("*.sqlite"))
    assert jackfield("chat", *MODEL, "--session", "a", "--no-record")[0] == 1


# --- continuing -------------------------------------------------------------------------------------------------------


def last_request(server: FakeOpenAI) -> dict[str, Any]:
    body = server.requests[-1].json
    assert isinstance(body, dict)
    return body


def questions(server: FakeOpenAI) -> list[str]:
    return [message["content"] for message in last_request(server)["messages"] if message["role"] == "user"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-Zq83bXw4Rk2LpV7Tn")
        yield server


def test_a_run_continues_the_last_one_with_its_model_at_its_server(jackfield: Run, server: FakeOpenAI) -> None:
    server.reply(*(text(f"Answer {number}.") for number in range(5)))
    assert jackfield("run", "-c", "Why?")[2].endswith("ask the first question without --continue\n")
    address = ("-m", "openai:tide-model", "--base-url", server.url)
    assert jackfield("run", *address, "-s", "Be brief.", "What is a tide?")[0] == 0
    assert jackfield("chat", *address, typed="Another conversation.\n")[0] == 0
    assert jackfield("run", "-c", "Why?")[0] == 0
    assert last_request(server)["model"] == "tide-model"
    assert [(one["role"], one["content"]) for one in last_request(server)["messages"]] == [
        ("system", "Be brief."),
        ("user", "What is a tide?"),
        ("assistant", "Answer 0."),
        ("user", "Why?"),
    ]
    assert jackfield("run", "--continue", "-m", "openai:other", "--base-url", server.url, "And?")[0] == 0
    assert (questions(server), last_request(server)["model"]) == (["What is a tide?", "Why?", "And?"], "other")
    assert jackfield("chat", "-c", typed="Go on.\n")[0] == 0
    assert last_request(server)["model"] == "tide-model"
    assert questions(server) == ["Another conversation.", "Go on."]


def test_a_run_that_is_not_recorded_can_continue_one_that_was(jackfield: Run, server: FakeOpenAI) -> None:
    server.reply(*(text(f"Answer {number}.") for number in range(3)))
    assert jackfield("run", "-m", "openai:m", "--base-url", server.url, "One?")[0] == 0
    assert jackfield("run", "-c", "--no-record", "Two?")[0] == 0
    assert jackfield("run", "-c", "Three?")[0] == 0
    assert questions(server) == ["One?", "Three?"]


# --- a store that fails -----------------------------------------------------------------------------------------------


@contextmanager
def locked(tmp_path: Path) -> Iterator[None]:
    file = sqlite3.connect(tmp_path / "jackfield/runs.sqlite", isolation_level=None)
    file.execute("BEGIN EXCLUSIVE")
    yield
    file.execute("ROLLBACK")
    file.close()


def test_a_locked_store_warns_once_and_loses_no_answer(
    jackfield: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_TIMEOUT_S", 0.2)
    _, expected, _ = jackfield("run", *MODEL, "What is a tide?")
    with locked(tmp_path):
        code, out, err = jackfield("run", *MODEL, "What is a tide?")
    assert (code, out) == (0, expected)
    assert err.count("! this run is not recorded: ") == 1
    assert len(recorded(jackfield)) == 1


def test_a_store_without_a_folder_warns_and_loses_no_answer(jackfield: Run, tmp_path: Path) -> None:
    (tmp_path / "jackfield").write_text("a file where the folder of the store belongs")
    code, out, err = jackfield("run", *MODEL, "What is a tide?")
    assert code == 0, err
    assert "no documents" in out
    assert "! this run is not recorded: the store" in err


class FullStore(MemoryStore):
    """Has room for so many entries."""

    room = 0

    async def create(self, run: Any, entries: Any) -> int:
        self._fill(entries)
        return await super().create(run, entries)

    async def append(self, run_id: str, hold: int, entries: Any, *, state: str = "running") -> None:
        self._fill(entries)
        await super().append(run_id, hold, entries, state=state)

    def _fill(self, entries: Any) -> None:
        if self.room < len(entries):
            raise StoreError("the disk is full")
        self.room -= len(entries)


@pytest.mark.parametrize("room", range(4))
def test_a_store_that_fills_up_at_any_step_loses_no_answer(room: int, caplog: pytest.LogCaptureFixture) -> None:
    full = FullStore()
    full.room = room
    store = BestEffortStore(full)
    result = FnCallAgent(llm=ScriptedModel([answer("The sea.")]), store=store).ask("What is a tide?")
    assert result.text == "The sea."
    assert caplog.text.count("this run is not recorded: the disk is full") == (room < 3)
    assert store.has_recorded(result.run_id) == (room == 3)
    runs = asyncio.run(full.runs())
    assert not any(run.is_held for run in runs), "nothing holds a run that has ended"
    assert [run.state for run in runs] == ([] if room == 0 else ["finished" if room == 3 else "failed"])


class Noted:
    """A store that notes what it is asked for, and raises what it is told for some of it."""

    content = True

    def __init__(self, **errors: Exception) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self._errors = errors

    async def create(self, run: StoredRun, entries: Any) -> int:
        return self._note(5, "create", run.run_id)

    async def append(self, run_id: str, hold: int, entries: Any, *, state: str) -> None:
        self._note(0, "append", hold, list(entries), state)

    async def release(self, run_id: str, hold: int) -> None:
        self._note(0, "release", hold)

    def _note(self, value: int, name: str, *facts: object) -> int:
        self.asked.append((name, *facts))
        if name in self._errors:
            raise self._errors[name]
        return value


def record(store: Noted, *, state: str = "finished") -> BestEffortStore:
    """Record a run of two steps."""

    async def steps() -> BestEffortStore:
        recorded = BestEffortStore(store)  # type: ignore[arg-type]
        hold = await recorded.create(StoredRun(run_id="r"), ["first"])
        await recorded.append("r", hold, ["second"])
        await recorded.append("r", hold, ["last"], state=state)
        await recorded.release("r", hold)
        return recorded

    return asyncio.run(steps())


FULL = StoreError("the disk is full")


@pytest.mark.parametrize(
    ("errors", "asked"),
    [
        ({}, [("append", 5, ["second"], "running"), ("append", 5, ["last"], "finished"), ("release", 5)]),
        ({"create": FULL}, []),
        (
            {"append": FULL},
            [("append", 5, ["second"], "running"), ("append", 5, [], "failed"), ("release", 5), ("release", 5)],
        ),
    ],
    ids=["all is well", "never begun", "a gap"],
)
def test_a_run_with_a_gap_has_failed_and_is_let_go_and_one_without_a_beginning_is_left_alone(
    errors: dict[str, Exception], asked: list[tuple[Any, ...]], caplog: pytest.LogCaptureFixture
) -> None:
    store = Noted(**errors)
    assert record(store).has_recorded("r") is not bool(errors)
    assert store.asked == [("create", "r"), *asked]
    assert caplog.text.count("this run is not recorded: the disk is full") == bool(errors)


def test_a_run_that_another_process_has_resumed_does_not_go_on_here() -> None:
    store = Noted(append=RunBusyError("it is held elsewhere"))
    with pytest.raises(RunBusyError, match="held elsewhere"):
        record(store)
    assert store.asked[1:] == [("append", 5, ["second"], "running")]


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        (None, {"path": "x"}, {"name": STORE, "path": "x"}),
        (STORE, {"path": "x"}, {"name": STORE, "path": "x"}),
        ("other", {"path": "x"}, {"name": "other"}),
        (None, {"name": "other", "dsn": "x"}, {"name": "other", "dsn": "x"}),
        (None, True, {"name": STORE}),
    ],
)
def test_settings_of_recording_are_for_the_default_store_only(
    name: str | None, settings: Any, expected: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    host: Any = SimpleNamespace(settings=SimpleNamespace(record=settings))
    assert configure_store(name, host) == expected
    loaded: list[Any] = []
    monkeypatch.setattr(recording, "load_store", lambda given, _: loaded.append(given) or Noted())
    open_recording(host)
    [given] = loaded
    assert given.get("timeout_s") == (3.0 if given["name"] == STORE else None), "an answer does not wait long"
