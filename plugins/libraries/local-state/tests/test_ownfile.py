"""An SQLite file of one owner: what it is made with, and whom it lets in."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import ConfigError
from jackfield_local_state.ledger import FileLedger, _Change
from jackfield_local_state.ownfile import OtherVersionError, OwnFile, UnusableFileError, writing

MakeFile = Callable[..., OwnFile]


class Text:
    """A text as a state."""

    def __init__(self, text: str = "") -> None:
        self.text = text

    def add(self, more: str) -> str:
        self.text += more
        return self.text

    def to_json(self) -> str:
        return self.text

    @classmethod
    def from_json(cls, text: str) -> Text:
        return cls(text)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "own.sqlite"


@pytest.fixture
def make(path: Path) -> Iterator[MakeFile]:
    made: list[OwnFile] = []

    def own_file(**options: Any) -> OwnFile:
        about = {"application_id": 7, "version": 2, "schema": "CREATE TABLE a (b TEXT);\nCREATE TABLE c (d TEXT);"}
        made.append(OwnFile(options.pop("path", path), owner="acme", **{**about, **options}))
        return made[-1]

    yield own_file
    for one in made:
        one.close()


def pragmas(file: OwnFile) -> dict[str, object]:
    names = ("application_id", "user_version", "journal_mode", "synchronous")
    with file.use(patience_s=60) as connection:
        return {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names}


def test_a_file_is_marked_as_its_owners_when_it_is_made_and_only_then(make: MakeFile) -> None:
    created: list[list[str]] = []

    def note(connection: sqlite3.Connection) -> None:
        created.append([name for (name,) in connection.execute("SELECT name FROM sqlite_master ORDER BY name")])

    expected = {"application_id": 7, "user_version": 2, "journal_mode": "wal", "synchronous": 1}
    first = make(on_creation=note)
    assert pragmas(first) == expected
    first.close()
    assert pragmas(first) == pragmas(make(on_creation=note)) == expected
    assert created == [["a", "c"]]


def test_a_creation_that_fails_leaves_an_empty_file_for_the_next_attempt(make: MakeFile) -> None:
    def fail(_connection: sqlite3.Connection) -> None:
        raise KeyError("no")

    with pytest.raises(KeyError), make(on_creation=fail).use(patience_s=60):
        pass
    assert pragmas(make())["application_id"] == 7


@pytest.mark.parametrize("version", [1, 3])
def test_a_file_of_an_older_or_a_newer_version_is_refused(version: int, make: MakeFile) -> None:
    pragmas(make(version=version))
    with (
        pytest.raises(OtherVersionError, match=rf"it has version {version}, but this acme only reads version 2"),
        make().use(patience_s=60),
    ):
        pass


@pytest.mark.parametrize("name", ["a\0b.sqlite", "a\ud83d.sqlite"])
def test_a_name_that_no_file_can_have_is_refused(name: str, make: MakeFile, tmp_path: Path) -> None:
    with (
        pytest.raises(UnusableFileError, match="the path does not refer to a file"),
        make(path=tmp_path / name).use(patience_s=1),
    ):
        pass


@pytest.mark.parametrize("ended", [False, True], ids=["in the transaction", "after SQLite has rolled it back"])
def test_an_error_in_a_transaction_is_raised_as_it_is_and_changes_nothing(ended: bool, make: MakeFile) -> None:
    def write(connection: sqlite3.Connection) -> None:
        with writing(connection):
            connection.execute("INSERT INTO a VALUES ('half')")
            if ended:
                connection.execute("ROLLBACK")
            raise KeyError("why")

    with make().use(patience_s=60) as connection:
        with pytest.raises(KeyError, match="why"):
            write(connection)
        assert not connection.in_transaction
        assert connection.execute("SELECT count(*) FROM a").fetchone() == (0,)


@pytest.fixture
def ledger(path: Path) -> Iterator[FileLedger[Text]]:
    ledger = FileLedger(path, Text, application_id=7, version=1, owner="acme", what="the texts in")
    yield ledger
    ledger.close()


def test_a_change_whose_caller_has_given_up_before_it_began_is_not_made(ledger: FileLedger[Text]) -> None:
    change = _Change(ledger, "a", lambda text: text.add("x"))
    change.take_back(lambda text, _: text.add("undone"))
    with pytest.raises(asyncio.CancelledError):
        change.make()
    assert ledger.change("a", lambda text: text.text) == ""


def test_a_change_is_taken_back_with_its_result(ledger: FileLedger[Text]) -> None:
    change = _Change(ledger, "a", lambda text: text.add("x"))
    assert change.make() == "x"
    change.take_back(lambda text, result: text.add(f" without {result}"))
    assert ledger.change("a", lambda text: text.text) == "x without x"


def test_a_file_below_a_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    below = tmp_path / "file" / "a.sqlite"
    ledger = FileLedger(below, Text, application_id=7, version=1, owner="acme", what="the texts in")
    with pytest.raises(ConfigError, match=rf"the texts in {below} cannot be used"):
        ledger.change("a", lambda text: text.add("x"))


def test_a_note_that_cannot_be_written_is_an_error(ledger: FileLedger[Text], path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"a diary " * 200)
    with pytest.raises(ConfigError, match="cannot be used"):
        asyncio.run(ledger.anote("a", lambda text: text.add("x")))
