"""The command as it is typed: it makes, refuses, and asks, and shows no traceback."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from jackfield.cli.main import main as jackfield
from tests.support.command_line import Tty


@dataclass(frozen=True)
class Said:
    """What a command gave: its exit code, and its two outputs."""

    code: int
    out: str
    err: str


Typed = Callable[..., Said]


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Runs `jackfield new` with arguments, in a folder of its own, with nobody at the terminal.

    Whatever it raises but an exit would be a traceback, and fails the test.
    """
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Said:
        with open(os.devnull) as nobody, monkeypatch.context() as patch:  # noqa: PTH123 - a name, not a path
            patch.setattr(sys, "stdin", nobody)
            try:
                code = jackfield(["new", *arguments])
            except SystemExit as stop:
                code = int(stop.code or 0)
        said = Said(code, *capsys.readouterr())
        assert said.err.replace("\n", "").isprintable()
        return said

    return run


def test_alone_it_lists_the_kinds_with_a_line_each(typed: Typed) -> None:
    done = typed()
    assert done.code == 0
    kinds = [line.split()[0] for line in done.out.splitlines()[1:]]
    assert kinds == [
        "tool",
        "llm",
        "searcher",
        "parser",
        "tokenizer",
        "embedder",
        "processor",
        "call_format",
        "agent",
        "sandbox",
        "observer",
        "store",
        "server",
        "command",
    ]


def test_help_names_every_option(typed: Typed) -> None:
    shown = typed("--help").out
    for option in ("--author", "--description", "--http", "--no-http", "--in-repo", "--dir"):
        assert option in shown


def test_the_folder_is_named_for_the_plugin_and_the_next_three_commands_are_told(typed: Typed, tmp_path: Path) -> None:
    done = typed("tool", "tide-table", "--author", "Ada", "--description", "Tides & winds.")
    assert (tmp_path / "jackfield-tide-table/src/jackfield_tide_table/tool.py").is_file()
    assert done.out.splitlines()[1:] == [
        "  cd jackfield-tide-table",
        '  python -m pip install -e ".[test]"',
        "  python -m pytest",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["jackfield-tide-table"]


def test_a_folder_with_blanks_is_told_as_a_shell_takes_it(typed: Typed) -> None:
    assert "cd 'my plugin'" in typed("tool", "tide", "--dir", "my plugin").out


def test_inside_of_the_repository_it_goes_to_its_kind(typed: Typed, tmp_path: Path) -> None:
    assert "no 'plugins' folder" in typed("call_format", "tide", "--in-repo").err
    (tmp_path / "plugins").mkdir()
    assert "make known" in typed("call_format", "tide", "--in-repo").out
    assert (tmp_path / "plugins/call-formats/tide/pyproject.toml").is_file()
    for name in (".github", ".jackfield-new.json"):
        assert not (tmp_path / "plugins/call-formats/tide" / name).exists()
    assert typed("llm", "openai", "--in-repo").code == 0  # which may be written anew only there


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["tool"], 1, "NAME is missing"),
        (["tool", "a/b"], 1, "name: Use lower-case letters"),
        (["tool", "\x1b[31m"], 1, "name: Use lower-case letters"),
        (["\x1b[31m", "tide"], 1, "kind: Must be one of"),
        (["tool", "tide", "--\x1b[31m"], 2, "unrecognized arguments"),
        (["tool", "tide", "--dir", "\x1b[31m"], 1, "contains unprintable characters"),
        (["tool", "tide", "--dir", os.fsdecode(b"\xff")], 1, "contains unprintable characters"),
        (["tool", "tide", "--author", os.fsdecode(b"\xff")], 1, "author: Use a name"),
        (["tool", "tide", "--dir", "there"], 1, "not empty"),
        (["tool", "tide", "--dir", "x" * 300], 1, "cannot be created"),
        (["tool", "openai"], 1, "jackfield-openai is an existing Jackfield package"),
        (["command", "documents"], 1, "jackfield-documents is an existing Jackfield package"),
        (["tool", "tide", "--no-http"], 1, "http is not an option"),
        (["tool", "tide", "--auth", "A"], 2, "unrecognized arguments"),
    ],
    ids=repr,
)
def test_what_cannot_be_is_one_clear_line_and_nothing_is_made(
    typed: Typed, tmp_path: Path, arguments: list[str], code: int, text: str
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/mine").touch()
    done = typed(*arguments)
    assert (done.code, done.out) == (code, "")
    assert text in done.err
    assert {path.name for path in tmp_path.rglob("*")} == {"there", "mine"}


def test_a_kind_of_two_words_may_have_a_hyphen(typed: Typed) -> None:
    assert typed("call-format", "tide").out == typed("call_format", "tide", "--dir", "other").out.replace(
        "other", "jackfield-tide"
    )


def test_only_who_leaves_out_the_name_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", Tty())  # where the input is at its end
    assert jackfield(["new", "tool", "tide"]) == 0
    assert jackfield(["new", "tool"]) == 1
    assert "name: no answer was given, so nothing was created" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["jackfield-tide"]


class Terminal:
    """The person's side of a terminal."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.shown = ""

    def answer(self, prompt: str, typed: str) -> None:
        """Type a line once a prompt has come."""
        seen = len(self.shown)
        while prompt not in self.shown[seen:]:
            assert self.read(), f"no {prompt!r} came, but: {self.shown}"
        os.write(self.descriptor, f"{typed}\n".encode())

    def read(self) -> bool:
        """Read some of what is shown; False at the end."""
        assert select.select([self.descriptor], [], [], 60)[0], f"nothing more came after: {self.shown}"
        try:
            piece = os.read(self.descriptor, 4096)
        except OSError:
            return False  # on some systems that is how a terminal ends
        self.shown += piece.decode()
        return bool(piece)


def test_at_a_terminal_it_asks_for_what_is_missing(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "jackfield", "new", "llm", "--author", "Ada"]
    # A home of its own, in which the first command asks whether what is new may load.
    homes = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    env = {**os.environ, **homes, "JACKFIELD_PLUGINS": "jackfield-new"}
    process = subprocess.Popen(command, cwd=tmp_path, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    terminal = Terminal(ours)
    try:
        terminal.answer("Allow loading by name? [Y]es, [n]o, [d]etails: ", "y")
        terminal.answer("jackfield-NAME. ", "A/B")
        terminal.answer("jackfield-NAME. ", "acme")
        terminal.answer("[A plugin for Jackfield.] ", "")
        terminal.answer("[yes] ", "no")
        terminal.answer("[yes] ", "")
        while terminal.read():
            pass
        assert process.wait(timeout=60) == 0, terminal.shown
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert "Use lower-case letters" in terminal.shown
    assert "Who is the author?" not in terminal.shown
    made = (tmp_path / "jackfield-acme/src/jackfield_acme/backend.py").read_text(encoding="utf-8")
    assert "jackfield_http" not in made
    assert 'name = "Ada"' in (tmp_path / "jackfield-acme/pyproject.toml").read_text(encoding="utf-8")
