"""`jackfield keys`: keys are stored out of sight of command lines, screens and other users."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from jackfield.errors import ConfigError
from jackfield.settings import load_settings
from jackfield.storedkeys import StoredKeys
from jackfield_manage.cli import keys

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
    file.chmod(0o644)
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
    with pytest.raises(ConfigError, match=r"keys\.json is damaged"):
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


def test_a_keyring_that_only_fails_or_writes_plain_text_is_not_used(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = use_keyring(monkeypatch, 0.5)
    assert StoredKeys(home / "keys.json").set("ACME_API_KEY", KEY) == "file"
    assert ring.entries == {}


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
    assert "no component 'parot' is installed; did you mean 'parrot'?" in done.stderr


PLUGIN = """
from jackfield.plugins import LLMSpec, hook

@hook.llms
def llms():
    return [LLMSpec(name="parrot", target="acme_parrot:Parrot", secrets=("PARROT_KEY",))]
"""
