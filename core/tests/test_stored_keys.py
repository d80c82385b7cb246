"""Stored keys: in the keyring if one works and keeps them, else in a file that only its user can read."""

from __future__ import annotations

import json
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import ConfigError
from jackfield.storedkeys import KeyStorage, StoredKeys

keyring = pytest.importorskip("keyring")
KEY = "sk-" + "STORED"


def keyring_of(**changes: Any) -> Any:
    """Return a keyring in memory, in which some methods fail or do something else."""
    from keyring.backend import KeyringBackend
    from keyring.errors import PasswordDeleteError

    class Memory(KeyringBackend):
        priority = changes.get("priority", 5)  # type: ignore[assignment]

        def __init__(self) -> None:
            super().__init__()
            self.kept: dict[tuple[str, str], str] = {}

        def set_password(self, service: str, username: str, password: str) -> None:
            if error := changes.get("set"):
                raise error
            self.kept[service, username] = changes.get("as", password)

        def get_password(self, service: str, username: str) -> str | None:
            if error := changes.get("get"):
                raise error
            return self.kept.get((service, username))

        def delete_password(self, service: str, username: str) -> None:
            if error := changes.get("delete"):
                raise error
            if self.kept.pop((service, username), None) is None:
                raise PasswordDeleteError

    return Memory()


@pytest.fixture
def keys(tmp_path: Path) -> Iterator[StoredKeys]:
    before = keyring.get_keyring()
    keyring.set_keyring(keyring_of())
    yield StoredKeys(tmp_path / "own" / "keys.json")
    keyring.set_keyring(before)


def listed(keys: StoredKeys) -> Any:
    return json.loads(keys.path.read_text())


def test_a_key_in_the_keyring_is_listed_and_not_written(keys: StoredKeys) -> None:
    assert (keys.places(), keys.in_file(), keys.get("A_KEY"), keys.remove("A_KEY")) == ({}, {}, None, False)
    assert keys.set("A_KEY", KEY) == KeyStorage("keyring", "")
    assert keys.get("A_KEY") == KEY
    assert keys.get("B_KEY") is None
    assert (listed(keys), keys.places(), keys.in_file()) == ({"A_KEY": None}, {"A_KEY": "keyring"}, {})
    assert stat.S_IMODE(keys.path.stat().st_mode) == 0o600
    assert keyring.get_keyring().kept == {("jackfield", "A_KEY"): KEY}
    assert keys.remove("A_KEY")
    assert (listed(keys), keyring.get_keyring().kept) == ({}, {})


WEAK: dict[str, tuple[dict[str, Any], str]] = {
    "plain text": ({"priority": 0.5}, "this system has no encrypted keyring"),
    "fails": ({"set": RuntimeError(KEY)}, "the system keyring failed (RuntimeError)"),
    "keeps another": ({"as": "other"}, "the system keyring did not store the key"),
}


@pytest.mark.parametrize("case", WEAK)
def test_a_key_that_no_keyring_keeps_is_in_the_file_with_the_reason(keys: StoredKeys, case: str) -> None:
    changes, problem = WEAK[case]
    keys.set("A_KEY", "older")
    keyring.set_keyring(keyring_of(**changes))
    assert keys.set("B_KEY", KEY) == KeyStorage("file", problem)
    assert KEY not in problem
    assert (keys.get("B_KEY"), keys.in_file()) == (KEY, {"B_KEY": KEY})
    assert keys.places() == {"A_KEY": "keyring", "B_KEY": "file"}
    assert keys.set("A_KEY", KEY) == KeyStorage("file", f"{problem}, and still contains an older key with this name")
    assert keys.set("B_KEY", "new") == KeyStorage("file", problem)
    assert keys.get("B_KEY") == "new"
    assert list(listed(keys)) == ["A_KEY", "B_KEY"]
    keys.set("AB_KEY", KEY)
    assert list(listed(keys)) == ["AB_KEY", "A_KEY", "B_KEY"], "a user reads them by name"
    assert stat.S_IMODE(keys.path.stat().st_mode) == 0o600


def test_a_keyring_that_encrypts_just_enough_is_used(keys: StoredKeys) -> None:
    keyring.set_keyring(keyring_of(priority=1))
    assert keys.set("A_KEY", KEY).place == "keyring"


@pytest.mark.parametrize("change", ["get", "delete"])
def test_a_keyring_that_fails_later_says_what_to_do_and_shows_no_key(keys: StoredKeys, change: str) -> None:
    keys.set("A_KEY", KEY)
    keyring.set_keyring(keyring_of(**{change: RuntimeError(KEY)}))
    with pytest.raises(ConfigError) as caught:
        keys.get("A_KEY") if change == "get" else keys.remove("A_KEY")
    assert str(caught.value) == (
        "the key A_KEY is in the system keyring, which is not available here (RuntimeError): "
        "set the environment variable A_KEY instead"
    )
    assert keys.places() == {"A_KEY": "keyring"}, "nothing is forgotten"


def test_a_key_that_another_program_has_removed_is_none_and_can_be_removed(keys: StoredKeys) -> None:
    keys.set("A_KEY", KEY)
    keyring.get_keyring().kept.clear()
    assert keys.get("A_KEY") is None
    assert keys.remove("A_KEY")
    assert keys.places() == {}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"A_KEY": 5}', "[" * 100_000])
def test_a_damaged_file_says_what_to_do(keys: StoredKeys, text: str) -> None:
    keys.path.parent.mkdir()
    keys.path.write_text(text)
    keys.path.chmod(0o600)
    with pytest.raises(
        ConfigError, match=r"keys\.json is corrupted: remove the file, then store the keys again with `jackfield keys"
    ):
        keys.get("A_KEY")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_file_that_others_can_open_is_refused(keys: StoredKeys, mode: int) -> None:
    keys.path.parent.mkdir()
    keys.path.write_text("{}")
    keys.path.chmod(mode)
    with pytest.raises(
        ConfigError, match=r"the keys in .*keys\.json can be read by other users; to fix this, run: chmod 600 "
    ):
        keys.places()


def test_a_folder_in_the_place_of_the_file_is_an_error_and_one_below_a_file_is_none(keys: StoredKeys) -> None:
    keys.path.mkdir(parents=True, mode=0o700)
    with pytest.raises(ConfigError, match="cannot read the keys in"):
        keys.places()
    (keys.path.parent / "file").write_text("")
    assert StoredKeys(keys.path.parent / "file" / "keys.json").places() == {}


def test_keys_that_are_stored_and_removed_at_the_same_time_are_all_kept(keys: StoredKeys) -> None:
    keyring.set_keyring(keyring_of(priority=0))
    names, kept = [f"KEY_{number}" for number in range(8)], [f"KEPT_{number}" for number in range(8)]
    start = threading.Barrier(len(names))

    def change(name: str, other: str) -> None:
        start.wait(30)
        for _ in range(10):
            StoredKeys(keys.path).set(name, KEY)
            StoredKeys(keys.path).remove(name)
        StoredKeys(keys.path).set(other, KEY)

    with ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(change, names, kept))
    assert list(listed(keys)) == kept
