"""`jackfield chat`, as a person types it."""

from __future__ import annotations

import os
import signal
from typing import Any


def test_chat_keeps_the_conversation_and_forgets_it_when_told(chat: Any) -> None:
    chat.type("one\n")
    chat.wait_for("you said: one\\x1b[31m (1 messages)")
    chat.wait_for("> ")
    chat.type("two\n")
    chat.wait_for("you said: two\\x1b[31m (4 messages)")
    chat.wait_for("> ")
    chat.type("/reset\n")
    chat.wait_for("> ")
    chat.type("three\n")
    chat.wait_for("(1 messages)")
    chat.type("\x04")
    assert chat.end() == 0


def test_ctrl_c_stops_an_answer_and_the_chat_goes_on(chat: Any) -> None:
    chat.type("wait\n")
    chat.wait_for("I begin")
    os.kill(chat.pid, signal.SIGINT)
    chat.wait_for("cancelled")
    chat.wait_for("> ")
    chat.type("use it\n")
    chat.wait_for("→ clock {}")
    chat.wait_for("you said: noon")
    chat.wait_for("> ")
    chat.type("/exit\n")
    assert chat.end() == 0
