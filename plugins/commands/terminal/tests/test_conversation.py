"""A conversation by itself: what it forgets, takes back and saves."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jackfield.errors import (
    ConfigError,
    ContextLengthError,
    JackfieldError,
    ModelAuthError,
    UnsupportedInputError,
)
from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield.secrets import Secret, Secrets
from jackfield_terminal.conversation import Conversation
from jackfield_terminal.interrupts import cancel_on_ctrl_c
from jackfield_terminal.options import chat_parser
from jackfield_terminal.screen import Screen
from jackfield_terminal.slash_commands import COMMANDS, LeaveError, run_command
from jackfield_terminal.summary import Summary

USED = [
    Message("user", "First"),
    Message("assistant", "", function_call=FunctionCall("look", "{}")),
    Message("function", "seen", name="look"),
    Message("assistant", "One."),
    Message("user", [ContentItem(text="Second"), ContentItem(image=f"data:image/png;base64,{'A' * 300}")]),
    Message("assistant", "Two."),
]


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))


def options(*words: str) -> argparse.Namespace:
    return chat_parser().parse_args(["-m", "offline:extractive", *words])


def conversation(*words: str) -> Conversation:
    chosen = options(*words)
    return Conversation(chosen, Screen(chosen, bare=sys.stdout, notes=sys.stderr))


def used() -> Conversation:
    chat = conversation("--no-record")
    chat.history = list(USED)
    return chat


def test_the_last_question_is_taken_back_with_all_after_it() -> None:
    chat = used()
    assert chat.undo() == "Second"
    assert chat.history == USED[:4]
    assert chat.undo() == "First"
    assert chat.history == []
    assert chat.undo() == ""


def test_a_conversation_is_forgotten_when_it_is_cleared() -> None:
    chat = used()
    chat.clear()
    assert chat.history == []


def test_it_is_saved_as_markdown_or_to_be_continued(tmp_path: Path) -> None:
    chat = used()
    chat.save(tmp_path / "talk.MD")
    told = (tmp_path / "talk.MD").read_text()
    assert told.startswith(
        "## You\n\nFirst\n\n## Answer\n\nOne.\n\n## You\n\nSecond\n\n(image: data:image/png;base64,AAA"
    )
    assert told.endswith("…)\n\n## Answer\n\nTwo.\n")
    assert "seen" not in told
    chat.save(tmp_path / "talk.json")
    assert json.loads((tmp_path / "talk.json").read_text())["stop_reason"] == "finished"
    again = conversation("--no-record", "--resume", str(tmp_path / "talk.json"))
    assert [message.content for message in again.history][:1] == ["First"]
    with pytest.raises(ConfigError, match=r"folder .* does not exist"):
        chat.save(tmp_path / "gone" / "talk.md")


@pytest.mark.parametrize("length", [200, 201])
def test_a_long_address_is_cut_in_a_transcript(tmp_path: Path, length: int) -> None:
    chat = conversation("--no-record")
    address = "https://acme.example/".ljust(length, "a")
    chat.history = [Message("user", [ContentItem(image=address)])]
    chat.save(tmp_path / "talk.md")
    shown = address if length == 200 else f"{address[:60]}…"
    assert f"(image: {shown})" in (tmp_path / "talk.md").read_text()


def test_another_model_is_used_only_if_there_is_one() -> None:
    chat = conversation("--no-record")
    agent = chat.agent
    with pytest.raises(Exception, match="no_such"):
        chat.use_model("no_such:model")
    assert (chat.agent, chat.model, chat.options.model) == (agent, "offline:extractive", "offline:extractive")
    chat.use_model("offline:other")
    assert (chat.model, chat.options.model) == ("offline:other", "offline:other")


def test_sessions_need_a_record_and_one_to_continue() -> None:
    for words in (("--session", "s"), ("--continue",)):
        with pytest.raises(ConfigError, match="--no-record records nothing, so it cannot be used with --session"):
            conversation("--no-record", *words)
    with pytest.raises(ConfigError, match="no recorded chat to continue: start a chat without --continue"):
        conversation("--continue")
    assert conversation("--session", "mine").session == "mine"
    assert conversation("--no-record").session == ""
    assert conversation().session.startswith("chat-")


def test_a_missing_attachment_is_reported_before_the_first_question() -> None:
    with pytest.raises(ConfigError, match=r"the attachment 'gone\.png' is not in"):
        conversation("--no-record", "--attach", "gone.png")


def test_an_attachment_that_is_gone_leaves_the_conversation_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    chat = used()
    chat.attachments = ["gone.png"]
    chat.ask("What is it?")
    assert chat.history == USED
    assert "jackfield: the attachment 'gone.png' is not in" in capsys.readouterr().err


# --- Ctrl-C ---


def test_the_first_ctrl_c_cancels_and_the_second_interrupts() -> None:
    before = signal.getsignal(signal.SIGINT)
    with cancel_on_ctrl_c() as token:
        assert not token.cancelled
        handler: Any = signal.getsignal(signal.SIGINT)
        handler(signal.SIGINT, None)
        assert token.cancelled
        with pytest.raises(KeyboardInterrupt):
            handler(signal.SIGINT, None)
    assert signal.getsignal(signal.SIGINT) == before


def test_the_handler_of_ctrl_c_is_put_back_after_an_error() -> None:
    before = signal.getsignal(signal.SIGINT)

    def fail() -> None:
        with cancel_on_ctrl_c():
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()
    assert signal.getsignal(signal.SIGINT) == before


# --- slash commands ---

HINT = " /help lists the commands. To send the line as text, put a space before it"


def said(chat: Conversation, line: str) -> list[str]:
    lines: list[str] = []
    run_command(line, chat, lambda text, indent="": lines.append(text))
    return lines


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("/undoo", [f"unknown command /undoo: did you mean /undo?{HINT}"]),
        ("/xyzxyz", [f"unknown command /xyzxyz;{HINT}"]),
        ("/tools", ["no tools; to add one, run: jackfield chat -t NAME"]),
        ("/files", ["no files; to add some, run: jackfield chat -f PATH; to attach a file, type /attach PATH"]),
        ("/attach", ["no file: type /attach PATH or URL"]),
        ("/attach  https://acme.example/a.png ", ["a.png will be attached to the next question"]),
        ("/model", ["offline:extractive"]),
        ("/model offline:other", ["offline:other"]),
        ("/undo", ["undone: Second"]),
        ("/clear", ["conversation cleared"]),
        ("/reset", ["conversation cleared"]),
        ("/save talk.md", ["saved talk.md"]),
        ("/save talk.json", ["saved talk.json; to continue, run: jackfield chat --resume talk.json"]),
    ],
)
def test_a_command_of_the_chat_answers_in_a_line(line: str, lines: list[str]) -> None:
    assert said(used(), line) == lines


@pytest.mark.parametrize("name", ["talk.json", "talk.md"])
def test_a_conversation_can_be_saved_in_the_home_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    assert said(used(), f"/save ~/{name}")[0].startswith(f"saved {home / name}")
    assert [*home.iterdir()] == [home / name]


@pytest.mark.parametrize(
    ("length", "told"), [(70, f"undone: {'x' * 70}"), (71, f"undone: {'x' * 70}…"), (0, "there is nothing to undo")]
)
def test_the_question_that_is_undone_is_told_up_to_70_characters(length: int, told: str) -> None:
    chat = conversation("--no-record")
    chat.history = [Message("user", "x" * length)] if length else []
    assert said(chat, "/undo") == [told]


def test_an_error_of_a_command_is_told_and_leaves_the_conversation() -> None:
    chat = used()
    (told,) = said(chat, "/attach gone.png")
    assert told.startswith("the attachment 'gone.png' is not in ")
    assert (chat.attachments, chat.history) == ([], USED)


@pytest.mark.parametrize("line", ["/exit", "/quit"])
def test_leaving_is_an_error_of_its_own(line: str) -> None:
    with pytest.raises(LeaveError):
        said(used(), line)


def test_help_lists_every_command_and_usage_counts() -> None:
    chat = used()
    lines = said(chat, "/?")
    assert [line.split()[0] for line in lines[: len(COMMANDS)]] == list(COMMANDS)
    assert said(chat, "/usage")[0].endswith(", 0 tool calls, 6 messages")


@pytest.mark.parametrize(
    ("error", "is_forgotten"),
    [
        (UnsupportedInputError("no files, please"), True),
        (ContextLengthError("too long"), True),
        (ModelAuthError("no key"), False),
    ],
    ids=["of the wrong kind", "too long", "for another reason"],
)
def test_attachments_that_no_question_could_be_sent_with_are_forgotten(
    error: JackfieldError,
    is_forgotten: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "a.txt").write_text("attached")
    chat = used()
    chat.attachments = ["a.txt"]

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(chat, "_run", fail)
    chat.ask("And this?")
    assert chat.history == USED
    assert chat.attachments == ([] if is_forgotten else ["a.txt"])
    said = capsys.readouterr().err
    assert ("! the next question has no attachments" in said) is is_forgotten
    assert f"jackfield: {error}" in said


def test_a_transcript_has_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = used()
    monkeypatch.setattr(chat, "_secrets", lambda: Secrets([Secret("KEY", "Zq83bXw4Rk2LpV7Tn")]))
    chat.history = [Message("user", "My key is Zq83bXw4Rk2LpV7Tn.")]
    chat.save(tmp_path / "talk.md")
    assert "Zq83" not in (tmp_path / "talk.md").read_text()


def test_the_usage_names_the_prices_of_today() -> None:
    old, new, own = (
        SimpleNamespace(valid_from=f"2026-0{month}-01", valid_until=until, source=source)
        for month, until, source in ((1, "2026-02-01", "acme.example"), (2, None, "acme.example"), (3, None, ""))
    )
    model = SimpleNamespace(facts=SimpleNamespace(prices=(old, new, own)))
    chat: Any = SimpleNamespace(
        screen=SimpleNamespace(total=Summary(calls=2)), history=USED, agent=SimpleNamespace(model=model)
    )
    said: list[str] = []
    COMMANDS["/usage"].run(chat, "", lambda text, *_: said.append(text))
    assert said == [
        "0.0 s, 2 tool calls, 6 messages", "prices from 2026-02-01: acme.example", "prices from 2026-03-01: your own",
    ]  # fmt: skip
