"""News are told and asked about at a terminal, and nowhere else."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield_manage.choices import replace_file
from jackfield_manage.cli.news import _fit_line, greet
from jackfield_manage.judging.news import Memory


class Screen(io.StringIO):
    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path / "state" / "seen.json", "here")


def said_by_greeting(
    monkeypatch: pytest.MonkeyPatch, host: Any, memory: Memory, *, shows: bool = True, types: bool = False
) -> str:
    screen = Screen(is_terminal=shows)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(sys, "stdin", Screen(is_terminal=types))
    assert not greet(host, memory)
    monkeypatch.undo()
    return screen.getvalue()


def test_without_a_terminal_nothing_is_told_or_remembered(
    site: Any, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add_tools("acme", "x")
    assert said_by_greeting(monkeypatch, site.host(), memory, shows=False) == ""
    assert not memory.path.exists()


def test_without_a_keyboard_news_are_told_once_and_still_to_be_asked(
    site: Any, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add_tools("acme", "x")
    assert "acme" in said_by_greeting(monkeypatch, site.host(), memory)
    assert said_by_greeting(monkeypatch, site.host(), memory) == ""
    assert not memory.seen()["acme"].asked


def test_in_safe_mode_nothing_is_told_or_forgotten(site: Any, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    site.add_tools("acme", "x")
    said_by_greeting(monkeypatch, site.host(), memory)
    site.remove("acme")
    assert said_by_greeting(monkeypatch, site.host(safe=True), memory) == ""
    assert "acme" in memory.seen()


def test_a_reader_finds_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    with target.open() as reader:
        replace_file(target, "new")
        assert (reader.read(), target.read_text()) == ("old", "new")


def test_a_write_that_fails_changes_and_leaves_nothing(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        replace_file(target, "new \ud800")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_line_that_does_not_fit_ends_after_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = "reads " + ", ".join(f"VARIABLE_{number}" for number in range(20))
    for length in range(60, len(text)):
        line = _fit_line(text[:length])
        assert len(line) < 80
        assert line == text[:length] or text.startswith(line.removesuffix(" …"))
        assert line.removesuffix(" …").split(", ")[-1] in (*text[6:length].split(", "), *text.split(", "))


def test_what_was_typed_ahead_is_not_taken_for_an_answer(
    command_line: Any, site: Any, open_terminal: Callable[..., Any]
) -> None:
    site.add_tools("acme", "x")
    env = {**command_line.env, "JACKFIELD_PLUGINS": "acme"}
    terminal = open_terminal(["plugins", "list"], command_line.folder, env)
    terminal.type("clear; ls\n")
    assert terminal.end() == 0
    assert "acme" in terminal.seen
    assert "[Y]es" not in terminal.seen
    terminal = open_terminal(["plugins", "list"], command_line.folder, env)
    terminal.wait_for("[Y]es, [n]o, [d]etails: ")
    terminal.type("y\n")
    assert terminal.end() == 0


@pytest.mark.parametrize("arguments", [["enable", "acme"], ["disable", "acme"], ["why", "acme"], ["freeze"]])
def test_commands_that_change_or_explain_what_loads_leave_news_to_others(
    command_line: Any, site: Any, open_terminal: Callable[..., Any], arguments: list[str]
) -> None:
    site.add_tools("acme", "x")
    env = {**command_line.env, "JACKFIELD_PLUGINS": "acme"}
    terminal = open_terminal(["plugins", *arguments], command_line.folder, env)
    terminal.type("\n")
    assert terminal.end() == 0
    assert "new here: acme" not in terminal.seen
    assert not list(Path(env["XDG_STATE_HOME"]).rglob("seen.json"))


def test_our_own_packages_are_asked_about_in_one_line(command_line: Any, open_terminal: Callable[..., Any]) -> None:
    env = {**command_line.env, "COLUMNS": "80"}
    terminal = open_terminal(["plugins", "list"], command_line.folder, env)
    terminal.wait_for("[d]etails: ")
    assert "\n" not in terminal.before
    assert terminal.before.startswith(("New: jackfield-", "2 new Jackfield packages: allow loading by name? "))
    assert len(terminal.before) < 80
    terminal.type("y\n")
    assert terminal.end() == 0


def test_without_a_keyboard_everything_is_told_our_own_and_changed_packages_too(
    site: Any, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("jackfield-storage", {"tool.storage": "ours"}, modules={"ours": "# sound"})
    assert "newly installed: jackfield-storage 1.0\n" in said_by_greeting(monkeypatch, site.host(), memory)
    site.remove("jackfield-storage")
    site.add("jackfield-storage", {"tool.storage": "ours"}, modules={"ours": "# changed"})
    assert "changed: jackfield-storage 1.0\n" in said_by_greeting(monkeypatch, site.host(), memory)
