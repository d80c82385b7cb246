"""A turn begins with the last message of the user; without one, there is no question."""

from __future__ import annotations

from jackfield.messages import Message
from jackfield.request import ChatRequest
from jackfield_offline.turn import read_turn


def test_the_question_is_that_of_the_last_message_of_the_user() -> None:
    said = [("system", "Be brief."), ("user", "one?"), ("assistant", "1"), ("user", "two?"), ("assistant", "2")]
    messages = tuple(Message(role, text) for role, text in said)
    assert read_turn(ChatRequest("m", messages)).question == "two?"
    assert read_turn(ChatRequest("m", messages[:3])).question == "one?"


def test_without_a_message_of_the_user_nothing_is_asked() -> None:
    assert read_turn(ChatRequest("m", (Message("system", "Be brief."),))).question == ""
