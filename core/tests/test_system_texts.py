"""A text that is added to the system message of a history can be taken out again."""

from __future__ import annotations

import pytest

from jackfield.messages import ContentItem, Message, with_system_text, without_system_text

SYSTEM_ITEMS = Message("system", [ContentItem(text="a")])


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    "history",
    [
        (),
        (Message("user", "q"),),
        (Message("system", "a"), Message("user", "q")),
        (Message("user", "q"), Message("system", "a")),
        (SYSTEM_ITEMS, Message("user", "q")),
    ],
    ids=["nothing", "no system message", "text", "later", "items"],
)
def test_a_system_text_can_be_taken_out_again(history: tuple[Message, ...], first: bool) -> None:
    added = with_system_text(history, "b", first=first)
    assert with_system_text(history, "", first=first) == without_system_text(history, "") == history
    system = next(message for message in added if message.role == "system")
    texts = "b" if not any(one.role == "system" for one in history) else ("b\n\na" if first else "a\n\nb")
    assert system.get_text_content().replace("\n\n\n", "\n\n") == texts
    if first:
        assert without_system_text(added, "b") == history
    assert without_system_text(history, "b") == history


def test_a_system_message_without_text_gets_one_and_a_message_of_nothing_stays() -> None:
    empty = (Message("system", ""), Message("user", "q"))
    assert with_system_text(empty, "b", first=True)[0].content == "b"
    assert without_system_text(empty, "b") == empty
    assert without_system_text((Message("system", "bc"),), "b") == (Message("system", "bc"),)
