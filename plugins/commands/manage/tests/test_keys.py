"""`jackfield keys`: keys are stored out of sight of command lines, screens and other users."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from jackfield.errors import ConfigError
from jackfield.plugins import LLMSpec
from jackfield.settings import load_settings
from jackfield.storedkeys import StoredKeys
from jackfield_manage.cli import keys
from tests.support.command_line import Tty

KEY = "sk-a-key-of-somebody"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("ACME_API_KEY", raising=False)
    monkeypatch.setitem(sys.modules, "keyring", None)
    return tmp_path / "jackfield"


def enter(monkeypatch: pytest.MonkeyPatch, text: str, *words: str) -> int:
    import io

    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    return keys.main(words)


def test_a_stored_key_is_found_by_components_and_shown_by_no_command(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert load_settings().secret("ACME_API_KEY") is None
    assert enter(monkeypatch, f"{KEY}\n", "set", "ACME_API_KEY") == 0
    settings = load_settings()
    assert settings.secret("ACME_API_KEY") == KEY
    assert settings.named_secrets()["ACME_API_KEY"] == KEY, "writers must hide it"
    assert settings.with_secrets(["OTHER"]).secret("ACME_API_KEY") is None
    assert settings.with_secrets(["OTHER"]).named_secrets() == {}
    assert keys.main(["list"]) == keys.main(["list", "--json"]) == 0
    assert keys.main(["remove", "ACME_API_KEY"]) == 0
    assert load_settings().secret("ACME_API_KEY") is None
    assert KEY not in "".join(capsys.readouterr())
    assert KEY not in repr(settings)


def test_the_environment_and_the_users_file_win_over_a_stored_key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter(monkeypatch, KEY, "set", "ACME_API_KEY")
    (home / "config.toml").write_text('[secrets]\nACME_API_KEY = "of the file"\n')
    assert load_settings().secret("ACME_API_KEY") == "of the file"
    monkeypatch.setenv("ACME_API_KEY", "of the environment")
    assert load_settings().secret("ACME_API_KEY") == "of the environment"


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_only_the_user_can_read_the_file_and_a_file_that_others_can_read_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.umask(0)
    try:
        enter(monkeypatch, KEY, "set", "ACME_API_KEY")
    finally:
        os.umask(before)
    file = home / "keys.json"
    assert file.stat().st_mode & 0o777 == 0o600
    for mode in (0o644, 0o640, 0o604, 0o620):
        file.chmod(mode)
        with pytest.raises(ConfigError, match="chmod 600"):
            load_settings().secret("ACME_API_KEY")


@pytest.mark.parametrize("text", ["", "\n", "two\nlines", "ключ"])
def test_what_cannot_be_a_key_is_refused_and_not_shown(home: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError) as caught:
        enter(monkeypatch, text, "set", "ACME_API_KEY")
    assert not (home / "keys.json").exists()
    assert not text.strip() or text not in str(caught.value)


@pytest.mark.parametrize("content", ["{", "[]", '{"ACME_API_KEY": 1}'])
def test_a_damaged_file_is_an_error_that_names_it(home: Path, content: str) -> None:
    home.mkdir()
    (home / "keys.json").write_text(content)
    (home / "keys.json").chmod(0o600)
    with pytest.raises(ConfigError, match=r"keys\.json is corrupted"):
        load_settings().secret("ACME_API_KEY")


class Keyring(ModuleType):
    def __init__(self, priority: float) -> None:
        super().__init__("keyring")
        self.priority = priority
        self.entries: dict[tuple[str, str], str] = {}

    def get_keyring(self) -> Any:
        return self

    def set_password(self, service: str, name: str, key: str) -> None:
        self.entries[service, name] = key

    def get_password(self, service: str, name: str) -> str | None:
        return self.entries.get((service, name))

    def delete_password(self, service: str, name: str) -> None:
        del self.entries[service, name]


def use_keyring(monkeypatch: pytest.MonkeyPatch, priority: float) -> Keyring:
    ring, errors = Keyring(priority), ModuleType("keyring.errors")
    errors.PasswordDeleteError = KeyError  # type: ignore[attr-defined]
    ring.errors = errors  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", ring)
    monkeypatch.setitem(sys.modules, "keyring.errors", errors)
    return ring


def test_a_key_in_the_keyring_is_not_in_the_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = use_keyring(monkeypatch, 5)
    enter(monkeypatch, KEY, "set", "ACME_API_KEY")
    assert KEY not in (home / "keys.json").read_text()
    assert load_settings().secret("ACME_API_KEY") == KEY
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ConfigError, match="set the environment variable ACME_API_KEY"):
        load_settings().secret("ACME_API_KEY")
    monkeypatch.setitem(sys.modules, "keyring", ring)
    keys.main(["remove", "ACME_API_KEY"])
    assert ring.entries == {}
    assert json.loads((home / "keys.json").read_text()) == {}


def test_a_variable_of_the_environment_that_wins_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    enter(monkeypatch, KEY, "set", "ACME_API_KEY")
    assert "environment" not in capsys.readouterr().out
    monkeypatch.setenv("ACME_API_KEY", "other")
    enter(monkeypatch, KEY, "set", "ACME_API_KEY")
    assert "The environment variable ACME_API_KEY is also set, and takes precedence" in capsys.readouterr().out
    keys.main(["list"])
    keys.main(["list", "--json"])
    table, rows = capsys.readouterr().out.split("{", 1)
    assert "overridden" in table
    assert json.loads("{" + rows)["keys"] == [{"name": "ACME_API_KEY", "place": "file", "overridden": True}]


def test_a_stored_key_is_removed_by_any_name_and_the_file_lists_no_key_of_the_keyring(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = StoredKeys(home / "keys.json")
    stored.set("odd name", KEY)  # no name of a variable or a component
    use_keyring(monkeypatch, 5)
    stored.set("ACME_API_KEY", KEY)
    assert stored.in_file() == {"odd name": KEY}
    assert keys.main(["remove", "odd name"]) == 0
    assert stored.places() == {"ACME_API_KEY": "keyring"}


def host_of(secrets: tuple[str, ...], **policy: Any) -> Any:
    """A host with one backend, `parrot`, that reads these keys."""

    class Row:
        name = "parrot"

    rows = {"rows": lambda kind: [Row()] if kind == "llm" else [], "why_not": lambda _: ""}
    spec = LLMSpec(name="parrot", target="acme:Parrot", secrets=secrets)
    return SimpleNamespace(policy=SimpleNamespace(**rows | policy), spec_of=lambda *_: spec, names=lambda _: ["parrot"])


@pytest.mark.parametrize(
    ("secrets", "variable"),
    [
        (("OTHER_KEY",), "OTHER_KEY"),
        (("OTHER_KEY", "PARROT_TOKEN"), "PARROT_TOKEN"),
        (("OTHER_KEY", "PARROT_TOKEN", "PARROT_API_KEY"), "PARROT_API_KEY"),
        (("PARROTS_KEY", "PARROT_TOKEN"), "PARROT_TOKEN"),
    ],
)
def test_a_component_is_meant_by_the_key_of_its_name(secrets: tuple[str, ...], variable: str) -> None:
    assert keys.variable_of("parrot", host_of(secrets)) == variable
    assert keys.variable_of("ANY_KEY", host_of(secrets)) == "ANY_KEY"
    with pytest.raises(ConfigError, match="component 'parrot' is not installed"):
        keys.variable_of("parrot", host_of(secrets, why_not=lambda _: "blocked"))


@pytest.mark.parametrize(
    ("secrets", "says"),
    [
        (("A_KEY", "B_KEY"), "parrot uses more than one key: specify one of A_KEY, B_KEY instead"),
        (("PARROT_A", "PARROT_B"), "parrot uses more than one key: specify one of PARROT_A, PARROT_B instead"),
        (
            (),
            "parrot does not use a key; to store another key, specify its environment variable, such as OPENAI_API_KEY",
        ),
    ],
)
def test_a_component_without_a_key_of_its_name_is_refused(secrets: tuple[str, ...], says: str) -> None:
    with pytest.raises(ConfigError, match=f"^{says}$"):
        keys.variable_of("parrot", host_of(secrets))


def test_a_key_that_is_not_stored_is_named_with_what_is_close(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        ConfigError, match=r"^no key named ACME_API_KEY is stored\. To list all keys, run: jackfield keys list$"
    ):
        keys.main(["remove", "ACME_API_KEY"])
    enter(monkeypatch, KEY, "set", "ACME_API_KEY")
    with pytest.raises(
        ConfigError, match=r"^no key named ACME_API_KY is stored; did you mean 'ACME_API_KEY'\? To list all keys"
    ):
        keys.main(["remove", "ACME_API_KY"])
    with pytest.raises(ConfigError, match=r"^no key named X is stored; known: ACME_API_KEY\. To list all keys"):
        keys.main(["remove", "X"])


def test_keys_are_listed_by_name_and_an_empty_variable_does_not_win(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert keys.main([]) == 0
    assert capsys.readouterr().out.startswith("No keys are stored. To store a key, run: jackfield keys set NAME")
    monkeypatch.setenv("ACME_API_KEY", "")
    for name in ("ZOO_KEY", "ACME_API_KEY"):
        enter(monkeypatch, KEY, "set", name)
    assert "overridden" not in capsys.readouterr().out
    assert keys.main([]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["name", "stored", "in"],
        ["ACME_API_KEY", "file"],
        ["ZOO_KEY", "file"],
    ]


def test_the_end_of_the_input_at_a_terminal_stores_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(prompt: str) -> str:
        raise EOFError

    monkeypatch.setattr("sys.stdin", Tty())
    monkeypatch.setattr("getpass.getpass", leave)
    with pytest.raises(ConfigError, match="no key was entered, so nothing was stored"):
        keys.main(["set", "ACME_API_KEY"])
    assert not home.exists()


def test_a_file_that_cannot_be_written_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.write_text("in the way")
    with pytest.raises(ConfigError, match=r"keys\.json cannot be written: "):
        enter(monkeypatch, KEY, "set", "ACME_API_KEY")


FAULTS: dict[str, tuple[Callable[[Keyring], object], str]] = {
    "writes plain text": (lambda ring: setattr(ring, "priority", 0.5), "no encrypted keyring"),
    "only fails": (lambda ring: setattr(ring, "priority", 0), "no encrypted keyring"),
    "cannot be found": (lambda ring: setattr(ring, "get_keyring", fail), "failed (OSError)"),
    "is locked": (lambda ring: setattr(ring, "set_password", fail), "failed (OSError)"),
    "cannot be read": (lambda ring: setattr(ring, "get_password", fail), "failed (OSError)"),
    "forgets": (lambda ring: setattr(ring, "get_password", lambda *_: None), "did not store the key"),
}


def fail(*words: str) -> None:
    raise OSError(*words)  # such errors may hold the key


@pytest.mark.parametrize("fault", FAULTS)
def test_a_keyring_that_does_not_work_is_named_and_the_file_used(
    fault: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    break_it, reason = FAULTS[fault]
    break_it(use_keyring(monkeypatch, 5))
    assert enter(monkeypatch, KEY, "set", "ACME_API_KEY") == 0
    printed = capsys.readouterr().out
    assert f"unencrypted in {home / 'keys.json'}" in printed
    assert reason in printed
    assert KEY not in printed
    assert load_settings().secret("ACME_API_KEY") == KEY


def test_without_keyring_the_file_is_used_and_the_reason_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    enter(monkeypatch, KEY, "set", "ACME_API_KEY")
    assert "the keyring package is not installed" in capsys.readouterr().out
    use_keyring(monkeypatch, 1)  # the lowest that encrypts
    enter(monkeypatch, KEY, "set", "ACME_API_KEY")
    assert capsys.readouterr().out == "Stored ACME_API_KEY in the system keyring.\n"
    assert StoredKeys(home / "keys.json").places() == {"ACME_API_KEY": "keyring"}


def test_an_older_key_that_stays_in_the_keyring_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = StoredKeys(home / "keys.json")
    ring = use_keyring(monkeypatch, 5)
    assert stored.set("ACME_API_KEY", KEY) == ("keyring", "")
    monkeypatch.setattr(ring, "set_password", fail)
    place, problem = stored.set("ACME_API_KEY", "sk-another")
    assert (place, stored.get("ACME_API_KEY")) == ("file", "sk-another")
    assert "still contains an older key" in problem
    assert "older" not in stored.set("ACME_API_KEY", "sk-another")[1]
    assert "older" not in stored.set("OTHER_API_KEY", "sk-another")[1]


def test_a_key_that_another_program_removed_from_the_keyring_can_be_removed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, ring = StoredKeys(home / "keys.json"), use_keyring(monkeypatch, 5)
    stored.set("ACME_API_KEY", KEY)
    ring.entries.clear()
    assert stored.get("ACME_API_KEY") is None
    assert stored.remove("ACME_API_KEY")
    assert not stored.remove("ACME_API_KEY")


def test_a_key_stays_listed_if_the_keyring_cannot_remove_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored, ring = StoredKeys(home / "keys.json"), use_keyring(monkeypatch, 5)
    stored.set("ACME_API_KEY", KEY)
    monkeypatch.setattr(ring, "delete_password", fail)
    with pytest.raises(ConfigError, match="is not available here") as caught:
        stored.remove("ACME_API_KEY")
    assert stored.places() == {"ACME_API_KEY": "keyring"}
    assert "ACME" in str(caught.value)


def test_the_name_of_a_component_is_enough_and_an_unknown_name_is_refused(
    command_line: Any, site: Any, open_terminal: Callable[..., Any]
) -> None:
    site.add("acme", {"llm.parrot": "acme_parrot"}, modules={"acme_parrot": PLUGIN})
    env = {**command_line.env, "JACKFIELD_PLUGINS": "acme", "JACKFIELD_SAFE": "0"}
    terminal = open_terminal(["keys", "set", "parrot"], command_line.folder, env)
    terminal.wait_for("PARROT_KEY: ")
    terminal.type(f"{KEY}\n")
    assert terminal.end() == 0
    assert KEY not in terminal.before + terminal.seen
    assert json.loads((command_line.config / "keys.json").read_text()) == {"PARROT_KEY": KEY}
    done = command_line("keys", "remove", "parot")
    assert (done.returncode, done.stdout) == (1, "")
    assert "component 'parot' is not installed; did you mean 'parrot'? To store a key" in done.stderr


PLUGIN = """
from jackfield.plugins import LLMSpec, hook

@hook.llms
def llms():
    return [LLMSpec(name="parrot", target="acme_parrot:Parrot", secrets=("PARROT_KEY",))]
"""
