"""Messages: what they accept, what they refuse, and how they travel."""

from __future__ import annotations

import copy
import json
import pickle
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ToolArgumentError
from jackfield.messages import (
    ContentItem,
    FunctionCall,
    Message,
    ModelResponse,
    Usage,
    as_message,
    as_messages,
    basename_of,
    want_dicts,
    with_system_text,
)

texts = st.text(max_size=20)
items = st.one_of(
    texts.map(lambda text: ContentItem(text=text)),
    st.sampled_from(["image", "file", "audio", "video"]).map(
        lambda kind: ContentItem(**{kind: f"http://x/{kind}.bin"})
    ),
    st.just(ContentItem(audio={"data": "QUJD", "format": "wav"})),
    st.just(ContentItem(video=["http://x/1.png", "http://x/2.png"])),
)
contents = texts | st.lists(items, max_size=4)
messages = st.one_of(
    st.builds(Message, st.sampled_from(["system", "user", "assistant"]), contents),
    st.builds(Message, st.just("assistant"), st.just(""), reasoning_content=texts),
    st.builds(
        Message,
        st.just("assistant"),
        function_call=st.builds(FunctionCall, st.text(min_size=1, max_size=9), texts),
        extra=st.none() | st.dictionaries(st.just("function_id"), texts),
    ),
    st.builds(Message, st.just("function"), contents, name=st.text(min_size=1, max_size=9)),
)


# --- messages ---


@given(messages)
def test_a_message_survives_the_way_through_a_dict_and_through_json(message: Message) -> None:
    assert as_message(message.model_dump()) == message
    assert as_message(json.loads(message.model_dump_json())) == message
    assert Message.model_validate_json(message.model_dump_json()) == message


@given(messages)
def test_a_message_survives_pickling_and_copying(message: Message) -> None:
    assert pickle.loads(pickle.dumps(message)) == message
    assert copy.deepcopy(message) == message


@given(messages)
def test_replacing_nothing_gives_an_equal_message_that_is_another(message: Message) -> None:
    again = message.replace()
    assert again == message
    assert again is not message


def test_replacing_the_content_keeps_the_name_and_the_id_of_a_result() -> None:
    result = Message("function", "a long text", name="f", extra={"function_id": "call_1"})
    assert result.replace(content="short") == Message("function", "short", name="f", extra={"function_id": "call_1"})
    assert result.content == "a long text"


def test_no_field_that_is_none_is_in_a_dump_unless_asked_for() -> None:
    assert Message("user", "hi").model_dump() == {"role": "user", "content": "hi"}
    assert "name" in Message("user", "hi").model_dump(exclude_none=False)


@pytest.mark.parametrize("role", ["tool", "bogus", "", None, 3, ["user"]])
def test_a_wrong_role_is_refused_and_the_four_are_named(role: Any) -> None:
    with pytest.raises(ValueError, match="use one of system, user, assistant, function"):
        Message(role, "x")


def test_the_role_is_checked_on_assignment_too() -> None:
    message = Message("user", "x")
    with pytest.raises(ValueError, match="system, user, assistant, function"):
        message["role"] = "bogus"
    assert message.role == "user"


def test_a_refused_assignment_leaves_a_message_as_it_was() -> None:
    message = Message("user", "x")
    with pytest.raises(ValueError, match="name"):
        message.role = "function"
    assert message.role == "user"


def test_a_refused_assignment_leaves_an_item_as_it_was() -> None:
    item = ContentItem(text="x")
    with pytest.raises(ValueError, match="can set only one of"):
        item.image = "http://x/y.png"
    assert item == ContentItem(text="x")


@pytest.mark.parametrize("name", [None, ""])
def test_a_function_message_needs_a_name(name: str | None) -> None:
    with pytest.raises(ValueError, match="needs `name`"):
        Message("function", "x", name=name)


def test_no_content_is_an_empty_text() -> None:
    assert Message("user", None).content == ""
    assert Message("user", None).items == []


def test_items_may_be_written_as_dicts() -> None:
    message = Message("user", [{"text": "look"}, {"image": "http://x/a.png"}])
    assert message.content == [ContentItem(text="look"), ContentItem(image="http://x/a.png")]


def test_a_message_is_multimodal_when_anything_but_text_is_in_it() -> None:
    assert not Message("user", "x").is_multimodal()
    assert not Message("user", [{"text": "x"}]).is_multimodal()
    assert Message("user", [{"text": "x"}, {"file": "a.pdf"}]).is_multimodal()


def test_the_text_of_a_message_is_its_texts_joined_by_newlines() -> None:
    message = Message("user", [{"text": "a"}, {"image": "http://x/a.png"}, {"text": "b"}])
    assert message.get_text_content() == "a\nb"
    assert Message("user", "a").get_text_content() == "a"


def test_a_message_reads_like_a_dict() -> None:
    message = Message("user", "")
    assert message["role"] == "user"
    assert message.get("content", "nothing") == "nothing"
    assert message.get("never_heard_of", 3) == 3
    assert "content" in message
    assert "name" not in message
    assert "model_dump" not in message
    with pytest.raises(AttributeError):
        message["never_heard_of"]
    message["content"] = "hello"
    assert message.content == "hello"


def test_changing_the_list_a_message_was_made_of_changes_no_message() -> None:
    content = [ContentItem(text="a")]
    message = Message("user", content)
    content.append(ContentItem(text="b"))
    assert message.get_text_content() == "a"


def test_an_unknown_key_is_refused_and_told_where_own_data_go() -> None:
    with pytest.raises(ValueError, match=r"no key 'tool_call_id'.*'extra'"):
        as_message({"role": "assistant", "content": "x", "tool_call_id": "1"})


@pytest.mark.parametrize(
    "value",
    [
        {"content": "x"},
        {"role": "user", "content": 3},
        {"role": "user", "content": ["x"]},
        {"role": "assistant", "function_call": {"name": "f"}},
        {"role": "assistant", "function_call": {"arguments": "{}"}},
        {"role": "assistant", "function_call": {"name": "", "arguments": "{}"}},
        {"role": "assistant", "function_call": {"name": "f", "arguments": {}}},
        "user: x",
        None,
        ["user", "x"],
    ],
)
def test_whatever_is_no_message_is_a_value_error(value: Any) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        as_message(value)


def test_a_message_given_is_the_message_got() -> None:
    message = Message("user", "x")
    assert as_messages([message, {"role": "user", "content": "x"}]) == (message, message)
    assert as_messages([message])[0] is message


def test_dicts_are_wanted_back_only_by_who_sends_nothing_but_dicts() -> None:
    as_dict = {"role": "user", "content": "x"}
    assert want_dicts([as_dict])
    assert not want_dicts([as_dict, Message("user", "x")])
    assert not want_dicts([])


# --- the system message ---


def test_a_system_text_goes_before_the_one_that_is_there() -> None:
    history = (Message("system", "USR"), Message("user", "q"))
    assert with_system_text(history, "AG", first=True)[0] == Message("system", "AG\n\nUSR")
    assert with_system_text(history, "AG", first=False)[0] == Message("system", "USR\n\nAG")
    assert history[0].content == "USR"


def test_a_system_text_goes_to_the_front_where_there_is_none() -> None:
    history = [Message("user", "q")]
    assert with_system_text(history, "AG", first=False) == (Message("system", "AG"), Message("user", "q"))
    assert with_system_text(history, "", first=True) == tuple(history)


def test_a_system_text_joins_a_message_of_items() -> None:
    history = [Message("system", [{"image": "http://x/a.png"}, {"text": "USR"}])]
    (joined,) = with_system_text(history, "AG", first=True)
    assert joined.get_text_content().startswith("AG")
    assert joined.is_multimodal()


# --- items ---


def test_an_item_holds_exactly_one_thing_and_the_two_errors_differ() -> None:
    with pytest.raises(ValueError, match="must set one of"):
        ContentItem()
    with pytest.raises(ValueError, match="only one of text and image"):
        ContentItem(text="a", image="http://x/b.png")


@pytest.mark.parametrize("kind", ["image", "file", "audio", "video"])
def test_an_empty_medium_is_refused(kind: str) -> None:
    with pytest.raises(ValueError, match=f"the {kind} of a content item is empty"):
        ContentItem(**{kind: ""})


def test_an_empty_text_is_an_item() -> None:
    assert ContentItem(text="").get_type_and_value() == ("text", "")


@given(items)
def test_type_and_value_agree_with_the_field(item: ContentItem) -> None:
    kind, value = item.get_type_and_value()
    assert (item.type, item.value) == (kind, value)
    assert item.model_dump() == {kind: value}
    assert item.is_media_content() == (kind in ("image", "audio", "video"))


@pytest.mark.parametrize(
    ("location", "extension"),
    [
        ("http://x/a/b.PNG?size=3#top", "png"),
        ("/a/b.tar.gz", "gz"),
        ("C:\\docs\\report.PDF", "pdf"),
        ("report", ""),
        (".profile", ""),
        ("http://x.org", ""),
        ("a#b.pdf", "pdf"),
        ("%E6%96%87%E4%BB%B6.docx", "docx"),
        ("http://x/a%2Epdf", "pdf"),
        ("data:image/png;base64,AAAA", ""),
    ],
)
def test_the_extension_of_a_path_or_url(location: str, extension: str) -> None:
    assert ContentItem(file=location).get_file_extension() == extension


@given(st.text(min_size=1) | st.sampled_from(["http://[x/y.png", "//[", "http://a]b/c"]))
def test_every_location_has_a_basename_and_an_extension(location: str) -> None:
    assert isinstance(basename_of(location), str)
    assert ContentItem(file=location).get_file_extension() == ContentItem(file=location).get_file_extension().lower()


# --- calls ---


json_objects = st.dictionaries(
    st.text(max_size=5),
    st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.lists(st.integers()),
    max_size=4,
)


@given(json_objects)
def test_arguments_come_back_as_they_were_written(arguments: dict[str, Any]) -> None:
    assert FunctionCall("f", json.dumps(arguments)).get_parsed_arguments() == arguments


@given(json_objects, st.text(max_size=5), st.integers())
def test_adding_an_argument_gives_a_new_call_and_leaves_the_old(
    arguments: dict[str, Any], key: str, value: int
) -> None:
    call = FunctionCall("f", json.dumps(arguments))
    assert call.add_argument(key, value).get_parsed_arguments() == {**arguments, key: value}
    assert call.arguments == json.dumps(arguments)


@pytest.mark.parametrize("arguments", ["[1]", "3", '"x"', "null", "not json", '{"a": [' * 3000])
def test_arguments_that_are_no_object_are_an_error_that_names_the_tool(arguments: str) -> None:
    with pytest.raises(ToolArgumentError, match="'add'"):
        FunctionCall("add", arguments).get_parsed_arguments()


@pytest.mark.parametrize("arguments", ["", "  \n", "{}"])
def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    assert FunctionCall("f", arguments).get_parsed_arguments() == {}


def test_unfinished_arguments_can_be_represented() -> None:
    assert FunctionCall("f", '{"a": "x').arguments == '{"a": "x'


# --- usage ---

usages = st.builds(
    Usage,
    prompt_tokens=st.integers(0, 99),
    completion_tokens=st.integers(0, 99),
    cached_tokens=st.integers(0, 9),
    cost=st.none() | st.integers(0, 9).map(Decimal),
    currency=st.sampled_from(["USD", "CNY"]),
)


@given(usages, usages)
def test_the_tokens_of_a_sum_are_the_sums_of_tokens(a: Usage, b: Usage) -> None:
    total = a + b
    assert total.prompt_tokens == a.prompt_tokens + b.prompt_tokens
    assert total.total_tokens == total.prompt_tokens + total.completion_tokens


@given(usages, usages, usages)
def test_it_does_not_matter_in_which_order_costs_are_summed(a: Usage, b: Usage, c: Usage) -> None:
    assert ((a + b) + c).cost == (a + (b + c)).cost


def test_one_unknown_cost_or_two_currencies_make_the_sum_unknown() -> None:
    known = Usage(prompt_tokens=1, cost=Decimal(1), currency="USD")
    assert (known + known).cost == Decimal(2)
    assert (known + Usage(prompt_tokens=1)).cost is None
    assert (known + Usage(prompt_tokens=1, cost=Decimal(1), currency="CNY")).cost is None
    assert (Usage() + known).cost == Decimal(1)


def test_a_total_that_is_given_is_kept() -> None:
    assert Usage(prompt_tokens=1, completion_tokens=2).total_tokens == 3
    assert (Usage(completion_tokens=2).total_tokens, Usage(prompt_tokens=2).total_tokens) == (2, 2)
    assert Usage(prompt_tokens=1, completion_tokens=2, total_tokens=9).total_tokens == 9


def test_a_response_gives_its_text_and_its_calls() -> None:
    call = FunctionCall("f", "{}")
    response = ModelResponse(
        messages=[
            Message("assistant", "", reasoning_content="hmm"),
            Message("assistant", "Hello"),
            Message("assistant", "", function_call=call),
        ]
    )
    assert response.get_content() == "Hello"
    assert response.get_function_calls() == [call]


def test_a_name_of_a_server_has_no_password() -> None:
    assert basename_of("https://user:secret@host.example/") == "host.example"


@pytest.mark.parametrize(("call_id", "text"), [(None, None), ("", ""), (0, "0"), (7, "7"), ("c", "c")])
def test_the_id_of_a_call_is_a_text_whatever_a_program_wrote(call_id: Any, text: str | None) -> None:
    assert Message("function", "r", name="f", extra={"function_id": call_id}).function_id == text
