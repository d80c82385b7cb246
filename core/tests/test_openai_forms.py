"""Messages as OpenAI's clients write them are understood wherever messages are taken."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield import FnCallAgent, Message
from jackfield.errors import InvalidMessageError
from jackfield.messages import ContentItem, FunctionCall, as_messages
from jackfield.testing import ScriptedModel, answer


def paint(prompt: str) -> str:
    """Paint."""
    return f"painted {prompt}"


PICTURE = "data:image/png;base64,AAAA"
PARTS: list[tuple[dict[str, Any], ContentItem]] = [
    ({"type": "text", "text": "hi"}, ContentItem(text="hi")),
    ({"type": "input_text", "text": ""}, ContentItem(text="")),
    ({"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}}, ContentItem(image=PICTURE)),
    ({"type": "image_url", "image_url": PICTURE}, ContentItem(image=PICTURE)),
    (
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        ContentItem(audio={"data": "AAAA", "format": "wav"}),
    ),
    ({"type": "file", "file": {"file_data": "data:x", "filename": "a.pdf"}}, ContentItem(file="data:x")),
    (
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA", "filename": "a b.pdf"}},
        ContentItem(file="data:application/pdf;name=a%20b.pdf;base64,AAAA"),
    ),
    (
        {"type": "file", "file": {"file_data": "DATA:application/pdf;name=old.pdf;base64,AAAA", "filename": "new.pdf"}},
        ContentItem(file="DATA:application/pdf;name=new.pdf;base64,AAAA"),
    ),
    (
        {"type": "file", "file": {"file_data": "data:application/pdf;name=a.pdf;base64,AAAA", "filename": ""}},
        ContentItem(file="data:application/pdf;name=a.pdf;base64,AAAA"),
    ),
    (
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA", "filename": "a/b;c.pdf"}},
        ContentItem(file="data:application/pdf;name=a%2Fb%3Bc.pdf;base64,AAAA"),
    ),
    ({"type": "video_url", "video_url": {"url": "https://x.test/a.mp4"}}, ContentItem(video="https://x.test/a.mp4")),
]


@pytest.mark.parametrize(("part", "item"), PARTS)
def test_a_part_of_openais_is_a_content_item_wherever_messages_are(part: dict[str, Any], item: ContentItem) -> None:
    assert Message("user", [part]).content == [item]
    assert as_messages([{"role": "user", "content": [part, {"text": "ours"}]}])[0].content == [
        item,
        ContentItem(text="ours"),
    ]
    message = Message("user", "x")
    message.content = [part]  # type: ignore[list-item]
    assert message.content == [item]


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ({"type": "hologram", "hologram": 1}, "'hologram'"),
        ({"type": "file", "file": {"file_id": "f"}}, "file_id"),
        ({"type": "file", "file": {"file_data": "/etc/passwd"}}, "must be a data: URI"),
    ],
)
def test_a_part_without_a_counterpart_is_refused_by_its_name(part: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Message("user", [part])


def test_a_history_of_openais_is_understood_by_an_agent_and_a_model() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "paint", "arguments": '{"prompt": "x"}'}}
    history: list[dict[str, Any]] = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Paint."}]},
        {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "painted"}]},
        {"role": "assistant", "content": "There.", "tool_calls": None},
        {"role": "user", "content": "Thanks."},
    ]
    expected = (
        Message("system", "Be brief."),
        Message("user", [ContentItem(text="Paint.")]),
        Message("assistant", "", function_call=FunctionCall("paint", '{"prompt": "x"}'), extra={"function_id": "c1"}),
        Message("function", [ContentItem(text="painted")], name="paint", extra={"function_id": "c1"}),
        Message("assistant", "There."),
        Message("user", "Thanks."),
    )
    assert as_messages(history) == expected
    model = ScriptedModel([answer("You are welcome.")] * 2)
    assert FnCallAgent([paint], model).run_nonstream(history)[-1]["content"] == "You are welcome."
    assert model.requests[-1].messages == expected
    assert model.ask(history).text == "You are welcome."


def test_reasoning_refusals_and_several_calls_of_openais_are_messages_of_their_own() -> None:
    def calling(call_id: str, name: str) -> dict[str, Any]:
        return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}

    history: list[dict[str, Any]] = [
        {"role": "user", "content": "Go."},
        {
            "role": "assistant",
            "reasoning": "Hm.",
            "content": None,
            "tool_calls": [calling("c1", "a"), calling("c2", "b")],
        },
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
        {"role": "tool", "tool_call_id": "c1", "name": "own", "content": "one"},
        {"role": "tool", "tool_call_id": "c9", "content": "nine"},
        {"role": "assistant", "content": None, "refusal": "I may not."},
        {"role": "assistant", "reasoning_content": "So.", "content": "", "tool_calls": []},
        {"role": "assistant", "content": None, "annotations": []},
    ]
    shown = [
        (message.role, message.name, message.content, message.reasoning_content, message.function_id)
        for message in as_messages(history)
    ]
    assert shown == [
        ("user", None, "Go.", None, None),
        ("assistant", None, "", "Hm.", None),
        ("assistant", None, "", None, "c1"),
        ("assistant", None, "", None, "c2"),
        ("function", "b", "two", None, "c2"),
        ("function", "own", "one", None, "c1"),
        ("function", "tool", "nine", None, "c9"),
        ("assistant", None, "I may not.", None, None),
        ("assistant", None, "", "So.", None),
        ("assistant", None, "", None, None),
    ]


def test_our_own_messages_are_as_strict_as_before() -> None:
    with pytest.raises(ValueError, match="no key 'contnet'"):
        as_messages([{"role": "user", "contnet": "x"}])


def test_each_message_of_an_answer_has_the_speaker_and_only_its_own_part() -> None:
    call = {"function": {"name": "paint", "arguments": "{}"}}
    answered = {
        "role": "assistant", "name": "clerk", "content": "Yes.", "reasoning_content": "Hm.",
        "tool_calls": [{**call, "id": 7}, call],
    }  # fmt: skip
    reasoning, text, first, second = as_messages([{"role": "user", "content": "q"}, answered])[1:]
    assert [one.name for one in (reasoning, text, first, second)] == ["clerk"] * 4
    assert [one.reasoning_content for one in (reasoning, text, first, second)] == ["Hm.", None, None, None]
    assert [one.content for one in (reasoning, text, first, second)] == ["", "Yes.", "", ""]
    assert (first.extra, second.extra) == ({"function_id": "7"}, None)


@pytest.mark.parametrize("call_id", [1 << 64, -(1 << 64), 1.5, ["c"]])
def test_an_id_that_is_no_text_or_number_is_refused(call_id: Any) -> None:
    with pytest.raises(InvalidMessageError, match="'tool_call_id' must be a string"):
        as_messages([{"role": "tool", "tool_call_id": call_id, "content": "r"}])
