"""What chat templates are given."""

from __future__ import annotations

from jackfield.messages import ASSISTANT, FUNCTION, SYSTEM, USER, ContentItem, FunctionCall, Message
from jackfield_transformers.prompt import template_messages, template_tools

CALL = FunctionCall("weather", '{"city": "北京"}')


def test_an_answer_is_one_message_and_its_results_follow() -> None:
    history = [
        Message(SYSTEM, "Be brief."),
        Message(USER, "Weather?"),
        Message(ASSISTANT, "", reasoning_content="Look it up."),
        Message(ASSISTANT, "One moment."),
        Message(ASSISTANT, "", function_call=CALL, extra={"function_id": "c1"}),
        Message(FUNCTION, "sunny", name="weather", extra={"function_id": "c1"}),
    ]
    assert template_messages(history) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": "One moment.",
            "reasoning_content": "Look it up.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": {"city": "北京"}}}
            ],
        },
        {"role": "tool", "name": "weather", "tool_call_id": "c1", "content": "sunny"},
    ]


def test_a_result_that_nobody_asked_for_is_told_by_the_user() -> None:
    assert template_messages([Message(USER, "Hi"), Message(FUNCTION, "sunny", name="weather")]) == [
        {"role": "user", "content": "Hi"},
        {"role": "user", "content": "Result of the tool weather:\nsunny"},
    ]


def test_what_is_no_text_is_a_note_with_its_name_alone() -> None:
    message = Message(USER, [ContentItem(text="Read it."), ContentItem(file="/home/me/plan.pdf")])
    assert template_messages([message]) == [{"role": "user", "content": "Read it.\n[file: plan.pdf]"}]


def test_for_models_that_see_every_content_is_a_list_of_parts() -> None:
    history = [
        Message(USER, [ContentItem(image="a.png"), ContentItem(text="What is it?"), ContentItem(file="b.txt")]),
        Message(ASSISTANT, "", function_call=CALL),
        Message(FUNCTION, [ContentItem(image="c.png")], name="weather"),
    ]
    user, answer, result, picture = template_messages(history, in_parts=True)
    assert user["content"] == [
        {"type": "image", "image": "a.png"},
        {"type": "text", "text": "What is it?"},
        {"type": "text", "text": "[file: b.txt]"},
    ]
    assert answer["content"] == [{"type": "text", "text": ""}]
    assert result["role"] == "tool"
    assert picture["role"] == "user"
    assert picture["content"][1] == {"type": "image", "image": "c.png"}


def test_all_results_of_an_answer_come_before_their_images() -> None:
    history = [
        Message(USER, "Look."),
        *(Message(ASSISTANT, "", function_call=CALL, extra={"function_id": id_}) for id_ in "ab"),
        *(Message(FUNCTION, [ContentItem(image="c.png")], name="weather", extra={"function_id": id_}) for id_ in "ab"),
    ]
    messages = template_messages(history, in_parts=True)
    assert [message["role"] for message in messages[2:]] == ["tool", "tool", "user", "user"]
    assert messages[-1]["content"][0] == {"type": "text", "text": "Result of the tool weather:"}


def test_a_tool_is_what_its_schema_says() -> None:
    schema = {"name": "weather", "description": "d", "parameters": {"type": "object", "properties": {}}}
    assert template_tools([schema]) == [{"type": "function", "function": schema}]


def test_a_message_without_a_text_has_an_empty_one_which_templates_read() -> None:
    history = [Message(USER, ""), Message(ASSISTANT, "", function_call=CALL), Message(FUNCTION, "", name="weather")]
    assert [message["content"] for message in template_messages(history)] == ["", "", ""]
