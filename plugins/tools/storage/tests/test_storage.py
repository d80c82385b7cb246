"""What is kept, and that nothing else is reached or lost."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from jackfield import FnCallAgent
from jackfield.errors import ToolArgumentError, ToolServiceError
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import ToolContext, Workspace
from jackfield_local_state.ownfile import OwnFile
from jackfield_storage import entries
from jackfield_storage.plugin import tools
from jackfield_storage.tool import Storage
from jackfield_testkit.forks import outputs_of


@pytest.fixture
def tool(tmp_path: Path) -> Storage:
    return Storage(storage_root_path=tmp_path / "kept")


def do(tool: Storage, operate: str, key: str = "/", value: str | None = None) -> str:
    given: dict[str, Any] = {"operate": operate, "key": key}
    return tool.call(given if value is None else {**given, "value": value})


def test_what_is_put_is_got_scanned_and_deleted(tool: Storage) -> None:
    assert do(tool, "scan") == "Nothing is stored yet."
    assert do(tool, "put", "/notes//today/", "High water") == "Successfully saved notes/today."
    do(tool, "put", "notes/a/b", "线\n行")
    do(tool, "put", "notesbook", "x")
    do(tool, "put", "empty..", "")
    assert do(tool, "get", "empty..") == ""
    with pytest.raises(ToolArgumentError, match="has a value but nothing below it: use get"):
        do(tool, "scan", "empty..")
    do(tool, "delete", "empty..")
    assert do(tool, "get", "notes/today") == "High water"
    assert do(tool, "scan") == "/notes/a/b: 线\n行\n/notes/today: High water\n/notesbook: x"
    assert do(tool, "scan", "/notes") == "/a/b: 线\n行\n/today: High water"
    assert do(tool, "delete", "notes/today") == "Successfully deleted notes/today"
    for operate, key, says in (
        ("get", "notes/today", "nothing is stored under notes/today: use scan to list the keys"),
        ("delete", "notes/today", "Delete Failed: notes/today does not exist"),
        ("scan", "gone", "Scan Failed: nothing is stored below gone"),
        ("scan", "notesbook", "has a value but nothing below it: use get"),
    ):
        with pytest.raises(ToolArgumentError, match=says):
            do(tool, operate, key)


@pytest.mark.parametrize("key", ["", "/", "//", "../x", "a/../../b", "a\0b", "a\nb", "k" * 501])
def test_a_key_that_is_none_is_refused(tool: Storage, key: str, tmp_path: Path) -> None:
    with pytest.raises(ToolArgumentError, match="key"):
        do(tool, "put", key, "x")
    assert not (tmp_path / "kept").exists()


def test_a_key_that_looks_like_a_path_is_a_name(tool: Storage, tmp_path: Path) -> None:
    for key in ("/etc/passwd", "~/x", "C:\\x", "%2e%2e/x", "-rf", "file:///x"):
        do(tool, "put", key, f"mine: {key}")
        assert do(tool, "get", key) == f"mine: {key}"
    assert {path.name.partition("-")[0] for path in (tmp_path / "kept").iterdir()} == {"storage.sqlite"}
    assert {path.name for path in tmp_path.iterdir()} == {"kept"}


def test_it_is_kept_in_the_workspace_of_the_run_unless_a_folder_is_named(tmp_path: Path) -> None:
    context = ToolContext(workspace=Workspace(tmp_path))
    Storage().call({"operate": "put", "key": "a", "value": "x"}, context=context)
    assert (tmp_path / "tools/storage/storage.sqlite").exists()
    assert Storage().call({"operate": "get", "key": "a"}, context=context) == "x"


def test_there_is_a_limit_and_what_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    tool = Storage(storage_root_path=tmp_path, max_bytes=20)
    do(tool, "put", "a", "x" * 10)
    with pytest.raises(ToolArgumentError, match="no space left for a: the limit is 20 bytes"):
        do(tool, "put", "a", "y" * 20)
    assert do(tool, "get", "a") == "x" * 10
    do(tool, "put", "a", "y" * 19)  # it takes its own place


def test_the_room_is_looked_for_and_taken_in_one_transaction(tool: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    # Two processes that both find room for one text would put in two.
    do(tool, "put", "a", "x")
    statements: list[str] = []
    use = OwnFile.use

    @contextmanager
    def traced(file: OwnFile, **options: Any) -> Iterator[sqlite3.Connection]:
        with use(file, **options) as connection:
            connection.set_trace_callback(statements.append)
            yield connection
            connection.set_trace_callback(None)

    monkeypatch.setattr(OwnFile, "use", traced)
    do(tool, "put", "b", "y")
    assert [statement.split()[0] for statement in statements] == ["BEGIN", "SELECT", "INSERT", "COMMIT"]
    assert statements[0] == "BEGIN IMMEDIATE", "without it, two may read at the same time"


def test_a_long_scan_says_what_it_leaves_out(tmp_path: Path) -> None:
    tool = Storage(storage_root_path=tmp_path, max_scan_chars=100)
    for number in range(9):
        do(tool, "put", f"k{number}", "x" * 30)
    *shown, rest = do(tool, "scan").splitlines()
    assert len(shown) == 2
    assert rest == "[7 more, starting at /k2: get them by key, or scan a longer key]"


PROGRAM = """
import sys
from jackfield_storage.tool import Storage
tool = Storage(storage_root_path=sys.argv[1])
for number in range(30):
    tool.call({"operate": "put", "key": f"{sys.argv[2]}/{number}", "value": sys.argv[2] * 1000})
    tool.call({"operate": "put", "key": "same", "value": sys.argv[2] * 1000})
"""


def test_several_processes_keep_at_once_and_none_loses_anything(tool: Storage, tmp_path: Path) -> None:
    outputs_of(PROGRAM, [(tmp_path / "kept", name) for name in "abc"])
    for name in "abc":
        assert [do(tool, "get", f"{name}/{number}") for number in range(30)] == [name * 1000] * 30
    assert do(tool, "get", "same") in {name * 1000 for name in "abc"}


def test_a_file_that_is_not_ours_is_left_alone(tool: Storage, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/storage.sqlite").write_bytes(b"somebody's letters, and not a database at all " * 100)
    before = (tmp_path / "kept/storage.sqlite").read_bytes()
    with pytest.raises(ToolServiceError, match="cannot open the storage"):
        do(tool, "put", "a", "x")
    assert (tmp_path / "kept/storage.sqlite").read_bytes() == before


def test_half_a_character_comes_back_as_it_was(tool: Storage) -> None:
    do(tool, "put", "a", "x\ud83dy")
    assert do(tool, "get", "a") == "x\ud83dy"
    assert do(tool, "scan") == "/a: x\ud83dy"


def test_an_agent_remembers_from_one_run_to_the_next(tmp_path: Path) -> None:
    setting = {"name": "storage", "storage_root_path": str(tmp_path)}
    saves = {"operate": "put", "key": "name", "value": "Ada"}
    first = ScriptedModel([calls(("storage", saves)), answer("I will remember.")])
    FnCallAgent([setting], first).ask("I am Ada.")
    second = ScriptedModel([calls(("storage", {"operate": "get", "key": "name"})), answer("Ada.")])
    result = FnCallAgent([setting], second).ask("Who am I?")
    assert [message.get_text_content() for message in result.messages if message.role == "function"] == ["Ada"]


@given(st.text(min_size=1), st.text())
def test_any_text_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, key: str, value: str) -> None:
    tool = Storage(storage_root_path=tmp_path_factory.getbasetemp() / "any")
    try:
        do(tool, "put", key, value)
    except ToolArgumentError:
        return
    assert do(tool, "get", key) == value


class AsADict(RuleBasedStateMachine):
    """Whatever is done, the storage has what a dict would have."""

    keys = st.sampled_from(["a", "a/b", "a/b/c", "ab", "b"])

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, str] = {}
        self.tool = Storage(storage_root_path=self.folder)
        for line in self.known_keys():
            do(self.tool, "delete", line)

    folder: Path

    def known_keys(self) -> list[str]:
        shown = do(self.tool, "scan")
        return [] if shown.startswith("Nothing") else [line[1:].partition(": ")[0] for line in shown.splitlines()]

    @rule(key=keys, value=st.sampled_from(["x", "y z"]))
    def put(self, key: str, value: str) -> None:
        do(self.tool, "put", key, value)
        self.known[key] = value

    @rule(key=keys)
    def delete(self, key: str) -> None:
        if self.known.pop(key, None) is not None:
            do(self.tool, "delete", key)
        else:
            with pytest.raises(ToolArgumentError):
                do(self.tool, "delete", key)

    @rule(key=keys)
    def scan(self, key: str) -> None:
        below = [f"{name[len(key) :]}: {self.known[name]}" for name in sorted(self.known) if name.startswith(f"{key}/")]
        if below:
            assert do(self.tool, "scan", key) == "\n".join(below)
        else:
            with pytest.raises(ToolArgumentError, match="Scan Failed"):
                do(self.tool, "scan", key)


def test_it_is_a_dict_that_lasts(tmp_path: Path) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    AsADict.folder = tmp_path
    run_state_machine_as_test(AsADict, settings=settings(stateful_step_count=20))


@pytest.mark.parametrize("operate", ["put", "get", "delete"])
def test_each_operation_needs_a_key_and_put_needs_a_value(tool: Storage, operate: str) -> None:
    with pytest.raises(ToolArgumentError, match=f"{operate} requires a key, such as notes/today"):
        tool.call({"operate": operate, "value": "x"})
    with pytest.raises(ToolArgumentError, match="put requires a value: the text to save"):
        do(tool, "put", "a")
    assert do(tool, "put", "a", "") == "Successfully saved a."
    assert do(tool, "get", "a") == ""


def test_a_key_may_have_just_the_limit(tool: Storage) -> None:
    do(tool, "put", "k" * 500, "x")
    for operate in ("get", "delete"):
        with pytest.raises(ToolArgumentError, match="a key can have at most 500 characters, got 501"):
            do(tool, operate, "k" * 501)
    assert do(tool, "scan") == f"/{'k' * 500}: x"


def test_a_missing_key_has_the_code_of_qwen_agent(tool: Storage) -> None:
    with pytest.raises(ToolArgumentError) as caught:
        do(tool, "get", "a")
    assert caught.value.code == "KeyNotExistsError"


def test_a_scan_of_just_the_limit_is_whole(tmp_path: Path) -> None:
    tool = Storage(storage_root_path=tmp_path, max_scan_chars=100)
    for name, size in (("a", 45), ("b", 45)):
        do(tool, "put", name, "x" * size)
    assert [line[:3] for line in do(tool, "scan").splitlines()] == ["/a:", "/b:"]
    do(tool, "put", "b", "x" * 46)
    assert do(tool, "scan").splitlines()[1].startswith("[1 more, starting at /b:")


def test_bytes_count_and_not_characters(tmp_path: Path) -> None:
    tool = Storage(storage_root_path=tmp_path, max_bytes=7)
    assert do(tool, "put", "a", "潮汐").startswith("Successfully")
    with pytest.raises(ToolArgumentError, match="no space left for b"):
        do(tool, "put", "b", "")
    do(tool, "delete", "a")
    do(tool, "put", "b", "x" * 6)


def test_the_settings_have_the_defaults_of_the_readme() -> None:
    config = Storage().config
    assert (config.storage_root_path, config.max_bytes, config.max_scan_chars) == (None, 100 * 2**20, 20_000)


@pytest.mark.parametrize(
    "arguments", [{}, {"operate": "list"}, {"operate": "put", "key": 1}, {"operate": "put", "value": 1}, {"key": "a"}]
)
def test_arguments_that_do_not_fit_are_refused(tool: Storage, arguments: dict[str, Any]) -> None:
    with pytest.raises(ToolArgumentError, match="invalid arguments for 'storage'"):
        tool.call(arguments)


def test_the_descriptor_states_its_effects() -> None:
    (spec,) = tools()  # the file may be outside of the workspace
    assert spec.effects == Storage().safety().effects == {"files"}


def test_each_workspace_has_its_own_file_and_a_named_folder_may_begin_with_a_tilde(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = Storage()
    contexts = {name: ToolContext(workspace=Workspace(tmp_path / name)) for name in "ab"}
    for name, context in contexts.items():
        tool.call({"operate": "put", "key": "k", "value": name}, context=context)
    for name, context in contexts.items():
        assert tool.call({"operate": "scan"}, context=context) == f"/k: {name}"
    monkeypatch.setenv("HOME", str(tmp_path))
    do(Storage(storage_root_path="~/own"), "put", "k", "x")
    assert (tmp_path / "own/storage.sqlite").exists()


def test_a_folder_that_cannot_be_made_is_an_error_for_the_model(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ToolServiceError, match="cannot open the storage"):
        do(Storage(storage_root_path=tmp_path / "file" / "folder"), "put", "a", "x")


def test_a_file_that_another_process_holds_is_an_error_that_says_so(
    tool: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "_PATIENCE_S", 0.05)
    do(tool, "put", "a", "x")
    holder = sqlite3.connect(tmp_path / "kept/storage.sqlite", isolation_level=None)
    try:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ToolServiceError, match="the storage is in use by another process: try again"):
            do(tool, "put", "a", "y")
    finally:
        holder.close()
    assert do(tool, "get", "a") == "x"
