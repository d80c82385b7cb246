"""The pictures of the terminal show what the commands print. `make recordings` makes them anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.recording import ASSETS, WIDTHS, Command, Player, Recording, check, player, small_player
from tests.support.screen import Screen, draw
from tests.test_gallery import ENDS, ENTRIES

__all__ = ["player", "small_player"]

EDIT = '{"path": "tides.md", "edits": [{"old_text": "once a day", "new_text": "twice a day"}]}'
PROMPT = "\x1b[?2004h"
"""A line editor asks the terminal to mark what is pasted, and then waits for a line."""
RECORDINGS = {
    "run": Recording(
        "jackfield run: a tool asks before it changes a file",
        [
            Command(
                'jackfield run -m openai:gpt-4.1-mini -t files "Correct tides.md."',
                [("Allow it?", "y\n")],
            )
        ],
        [
            'call read_file {"path": "tides.md"}',
            f"call edit_file {EDIT}",
            "I corrected `tides.md`: high water comes **twice** a day.",
        ],
    ),
    "chat": Recording(
        "jackfield chat: a conversation, and what it has cost",
        [
            Command(
                "jackfield chat -m openai:gpt-4.1-mini",
                [
                    (PROMPT, "When is high water?\r"),
                    (PROMPT, "Why?\r"),
                    (PROMPT, "/usage\r"),
                    (PROMPT, "/exit\r"),
                ],
            )
        ],
        [
            "Twice a day:\\n\\n| | time |\\n|---|---|\\n| morning | 06:10 |\\n| evening | 18:35 |\\n",
            "Because the **moon** pulls at the water, on both sides of the earth.",
        ],
    ),
}
DOCTOR = Recording(
    "jackfield plugins doctor: a broken package, and its remedy",
    [Command("jackfield plugins doctor")],
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file for the tools."""
    note = tmp_path / "project/workspace/tides.md"
    note.parent.mkdir(parents=True)
    note.write_text("High water comes once a day.\n", encoding="utf-8")
    return tmp_path / "project"


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_shows_what_the_command_prints(name: str, end: str, player: Player, folder: Path) -> None:
    check(RECORDINGS[name], player, folder, name=f"{name}{end}", columns=WIDTHS[end])


@pytest.mark.parametrize("end", ENDS)
def test_the_recording_of_the_doctor_shows_what_it_prints(end: str, small_player: Player, tmp_path: Path) -> None:
    check(DOCTOR, small_player, tmp_path, name=f"doctor{end}", columns=WIDTHS[end])


def test_each_picture_of_the_terminal_is_recorded_in_both_widths() -> None:
    names = [*RECORDINGS, *ENTRIES, "doctor"]
    assert {path.stem for path in ASSETS.glob("*.svg")} == {name + end for name in names for end in WIDTHS}


# --- the screen ---


def shown(output: str, *, columns: int = 20) -> str:
    """Return the lines that a screen shows."""
    screen = Screen(columns)
    screen.feed(output)
    return screen.text()


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("one\r\ntwo", "one\ntwo"),
        ("half\rwhole", "whole"),
        ("Hello **\r\n\x1b[1A\r\x1b[JHello you.", "Hello you."),
        ("one\r\ntwo\r\n\x1b[2A\x1b[Jnew", "new"),
        (">\x08\x1b[2C\x1b[2D> Hi", "> Hi"),
        ("reading 3 files\r\x1b[Kdone", "done"),
        ("x" * 25, "x" * 20 + "\n" + "x" * 5),
        ("漢字漢字漢字漢字漢字漢", "漢字漢字漢字漢字漢字\n漢"),
        ("\x1b[1mbold\x1b[0m plain", "bold plain"),
    ],
)
def test_a_screen_shows_what_a_terminal_does(output: str, text: str) -> None:
    assert shown(output) == text


@pytest.mark.parametrize("output", ["\x1b[2J", "\x1b[5;5H", "\x1b[99m", "\x07", "\x1b]0;title\x07"])
def test_a_screen_refuses_what_it_could_not_show_as_a_terminal_does(output: str) -> None:
    with pytest.raises((KeyError, ValueError)):
        shown(output)


def test_a_drawing_has_each_text_at_its_column_in_its_style() -> None:
    screen = Screen(20)
    screen.feed("a \x1b[1;31m<b>\x1b[0m 漢 c")
    drawn = draw(screen, title="Letters & signs")
    assert '<title id="title">Letters &amp; signs</title>' in drawn
    assert '<text x="14" y="29" textLength="8.4">a</text>' in drawn
    assert '<text class="bold red" x="30.8" y="29" textLength="25.2">&lt;b&gt;</text>' in drawn
    assert 'x="64.4" y="29" textLength="33.6">漢 c</text>' in drawn
