"""`jackfield chat`, as a person types it."""

from __future__ import annotations

import json
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine

Chat = Callable[..., Any]


def say(chat: Any, line: str, answer: str) -> None:
    """Type a line, and wait for an answer and the next prompt."""
    chat.type(f"{line}\r")
    chat.wait_for(answer)
    chat.wait_for(chat.prompt)


def leave(chat: Any) -> None:
    chat.type("\x04")
    assert chat.end() == 0


def test_chat_keeps_the_conversation_and_forgets_it_when_told(chat: Any) -> None:
    say(chat, "one", "(1 messages)")
    say(chat, "two", "(4 messages)")
    say(chat, "/reset", "conversation cleared")
    say(chat, "three", "(1 messages)")
    leave(chat)


def test_ctrl_c_stops_an_answer_and_the_chat_goes_on(chat: Any) -> None:
    chat.type("wait\r")
    chat.wait_for("I begin")
    os.kill(chat.pid, signal.SIGINT)
    chat.wait_for("cancelled")
    chat.wait_for(chat.prompt)
    chat.type("use it\r")
    chat.wait_for("→ clock {}")
    chat.wait_for("you said: noon")
    chat.wait_for(chat.prompt)
    chat.type("/exit\r")
    assert chat.end() == 0


def interrupt(chat: Any, shown: str) -> None:
    """Type Ctrl-C at the prompt; again, where it came between the prompt and the reading, and so was lost."""
    for patience_s in (2, 2, 5, 30):
        chat.type("\x03")
        try:
            chat.wait_for(shown, within_s=patience_s)
        except AssertionError:
            if patience_s == 30:
                raise
        else:
            return


def test_ctrl_c_at_the_prompt_and_twice_in_an_answer_loses_nothing(chat: Any) -> None:
    say(chat, "one", "(1 messages)")
    interrupt(chat, "Ctrl-D exits")
    chat.wait_for(chat.prompt)
    chat.type("stuck\r")
    chat.wait_for("I hang")
    os.kill(chat.pid, signal.SIGINT)
    os.kill(chat.pid, signal.SIGINT)
    chat.wait_for(chat.prompt, within_s=60)
    say(chat, "/usage", "messages")
    chat.type("two\r")
    chat.wait_for("you said: two")
    assert "(1 messages)" not in chat.seen, "what was said before is still known"
    chat.wait_for(chat.prompt)
    leave(chat)


def test_an_error_takes_the_question_back_and_keeps_the_rest(chat: Any) -> None:
    say(chat, "one", "(1 messages)")
    say(chat, "/model echo:", "no model specified for echo")
    say(chat, "/attach none.png", "'none.png' is not in")
    say(chat, "two", "(4 messages)")
    leave(chat)


def test_an_error_after_a_tool_call_keeps_the_question_and_what_was_done(chat: Any, command_line: CommandLine) -> None:
    say(chat, "break it", "it broke")
    say(chat, "/save talk.json", "saved talk.json")
    leave(chat)
    kept = json.loads((command_line.folder / "talk.json").read_text())["messages"]
    assert [message["role"] for message in kept] == ["user", "assistant", "function"]
    assert (kept[0]["content"], kept[2]["content"]) == ("break it", "noon")


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_the_help_of_a_chat_breaks_no_line_inside_a_word(
    open_terminal: Callable[..., Any], command_line: CommandLine, echo: None, columns: int
) -> None:
    env = {**command_line.env, "COLUMNS": str(columns)}
    terminal = open_terminal(["chat", "-m", "echo:m", "-t", "clock"], command_line.folder, env)
    terminal.wait_for("> ")
    say_help = "/help\r/nonsense\r"
    terminal.type(say_help)
    terminal.wait_for("before it")
    terminal.type("\x04")
    terminal.end()
    lines = (terminal.before + terminal.seen).replace("\r", "").split("\n")
    assert max(map(len, lines)) <= columns
    words = " ".join(lines).split()
    for word in ("documents,", "conversation;", "BACKEND:MODEL]", "attachments,", "completes,"):
        assert word in " ".join(words), (word, lines)


# --- lines that are edited --------------------------------------------------------------------------------------------


def test_chinese_is_deleted_by_the_character(open_chat: Chat) -> None:
    chat = open_chat()
    say(chat, "中文字\x7f\x7f国", "you said: 中国")
    leave(chat)


def test_a_paste_of_several_lines_is_one_message(open_chat: Chat, command_line: CommandLine) -> None:
    chat = open_chat()
    chat.type("\x1b[200~first\nsecond\n/third\x1b[201~")
    chat.wait_for("third")
    say(chat, "", "(1 messages)")
    say(chat, "/save talk.json", "saved talk.json")
    leave(chat)
    record = json.loads((command_line.folder / "talk.json").read_text())
    assert record["messages"][0]["content"] == "first\nsecond\n/third"
    assert stat.S_IMODE((command_line.folder / "talk.json").stat().st_mode) == 0o600


def test_ctrl_c_clears_what_is_typed(open_chat: Chat) -> None:
    chat = open_chat()
    chat.type("not this")
    chat.wait_for("this")
    say(chat, "\x03but that", "you said: but that")
    leave(chat)


def test_alt_enter_begins_a_line(open_chat: Chat) -> None:
    chat = open_chat("--plain")
    chat.type("one\x1b\r")
    say(chat, "two", "you said: one\r\ntwo")
    leave(chat)


def test_lines_are_remembered_for_the_next_chat_by_their_owner_alone(
    open_chat: Chat, command_line: CommandLine
) -> None:
    chat = open_chat()
    say(chat, "remember me", "you said: remember me")
    leave(chat)
    file = Path(command_line.env["XDG_STATE_HOME"]) / "jackfield/chat-history"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "remember me" in file.read_text()
    file.chmod(0o644)
    again = open_chat()
    again.type("\x1b[A")
    again.wait_for("remember me")
    say(again, " too", "you said: remember me too")
    leave(again)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_history_that_cannot_be_kept_is_no_reason_not_to_talk(open_chat: Chat, command_line: CommandLine) -> None:
    file = Path(command_line.env["XDG_STATE_HOME"]) / "jackfield/chat-history"
    file.parent.mkdir(parents=True)
    file.symlink_to("/dev/null")
    chat = open_chat()
    assert "the history of this chat will not be saved" in chat.before
    say(chat, "one", "you said: one")
    leave(chat)


# --- commands ---------------------------------------------------------------------------------------------------------


def test_an_unknown_command_is_not_sent_and_names_the_nearest(chat: Any) -> None:
    say(chat, "/hlep", "unknown command /hlep: did you mean /help?")
    say(chat, "/usr/bin/python is broken", "unknown command /usr/bin/python")
    chat.type(" /usr is full\r")
    chat.wait_for("you said: /usr is full")
    chat.wait_for("(1 messages)")
    chat.wait_for(chat.prompt)
    leave(chat)


@pytest.fixture
def said(command_line: CommandLine, echo: None, shell: Callable[..., Any]) -> Callable[..., str]:
    """Runs a chat with what is typed, through a pipe; gives all it says."""

    def run(*typed: str, options: str = "") -> str:
        (command_line.folder / "typed").write_text("".join(f"{line}\n" for line in typed))
        done = shell(f"jackfield chat -m echo:m -t clock -t paint {options} < typed")
        assert done.returncode == 0, done.stderr
        return str(done.stdout + done.stderr)

    return run


Said = Callable[..., str]


def test_help_lists_every_command(said: Said) -> None:
    text = said("/help")
    for name in ("/help", "/tools", "/files", "/model", "/usage", "/save", "/undo", "/clear", "/attach", "/exit"):
        assert f"\n{name} " in text.replace("> /", "\n/").replace("> ", "\n")


def test_tools_say_what_they_do(said: Said) -> None:
    text = said("/tools")
    assert "tool clock\n" in text
    assert "tool paint: reads and writes files\n" in text.partition("Ctrl-D exits")[2]


def test_files_are_documents_attachments_and_what_was_made(said: Said, command_line: CommandLine) -> None:
    for name in ("a.md", "b.png"):
        (command_line.folder / name).write_text("x")
    text = said("use it", "/attach b.png", "/files", "look", "/files", options="-f a.md --agent fncall")
    first, second = text.split("look + image:b.png")
    assert "document: a.md\n" in first
    assert "attached to the next question: b.png" in first
    assert "attached to" not in second, "it has gone"


def test_what_code_made_is_listed(said: Said) -> None:
    text = said("use it", "/files", options="").replace("clock", "")
    assert "created: " not in text
    text = said("/model echo:other", "hi", "/model")
    assert "echo:other" in text


def test_undo_takes_the_last_question_back(said: Said) -> None:
    text = said("one", "two", "/undo", "three", "/undo", "/undo", "/undo")
    assert "undone: two" in text
    assert "you said: three\\x1b[31m (4 messages)" in text
    assert "there is nothing to undo" in text


def test_usage_sums_the_chat(said: Said) -> None:
    text = said("one", "two", "/usage")
    assert "14 + 6 tokens, price unknown, 2 turns, " in text
    assert "0 tool calls, 6 messages" in text


def test_a_conversation_is_saved_and_gone_on_with(said: Said, command_line: CommandLine) -> None:
    said("one", "/save talk.json", "/save talk.md")
    assert (command_line.folder / "talk.md").read_text().startswith("## You\n\none\n\n## Answer\n\nyou said: one")
    assert "(4 messages)" in said("two", options="--resume talk.json")


@pytest.mark.parametrize("line", ["/save none/talk.json", "/model nobody:m", "/attach none.png"])
def test_a_command_that_fails_is_one_line_and_the_chat_goes_on(said: Said, line: str) -> None:
    text = said(line, "one")
    assert "Traceback" not in text
    assert "you said: one" in text


def test_without_a_terminal_every_line_is_a_message(said: Said) -> None:
    text = said("one", "", "two")
    assert "(1 messages)" in text
    assert "(4 messages)" in text


def test_after_an_attachment_that_cannot_be_sent_the_chat_goes_on_without_it(
    echo: None, shell: Callable[..., Any], command_line: CommandLine
) -> None:
    (command_line.folder / "a.xyz").write_bytes(bytes(range(256)))
    (command_line.folder / "a.txt").write_text("forty sockets")
    (command_line.folder / "typed").write_text("/attach a.xyz\nlook\nand now\n/attach a.txt\nread\n")
    done = shell("jackfield chat -m echo:m < typed")
    assert "a.xyz cannot be read" in done.stderr
    assert "the next question has no attachments" in done.stdout + done.stderr
    assert "you said: and now\\x1b[31m (1 messages)" in done.stdout
    assert "forty sockets" in done.stdout


def test_an_attachment_goes_with_the_first_question(said: Said, command_line: CommandLine) -> None:
    (command_line.folder / "a.png").write_bytes(b"x")
    text = said("look", "and now", options="-a a.png")
    assert "you said: look + image:a.png" in text
    assert "you said: and now\\x1b[31m" in text
