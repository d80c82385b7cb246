"""A history becomes a request that strict servers take, and nothing of it is lost."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.config import GenerateConfig
from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield.request import ChatRequest, ModelFacts
from jackfield_backends.history import NO_RESULT
from jackfield_chat_completions import Dialect
from jackfield_chat_completions.wire import request_body, request_bytes
from jackfield_chat_completions.wire import wire_messages as messages_in

Wire = Mapping[str, Any]

PIXEL = "data:image/png;base64,iVBORw0KGgo="


def wire_messages(messages: Sequence[Message], **dialect: Any) -> list[dict[str, Any]]:
    return messages_in(messages, Dialect(**dialect))


def user(content: Any = "u") -> Message:
    return Message("user", content)


def said(text: str = "", **fields: Any) -> Message:
    return Message("assistant", text, **fields)


def called(name: str, id: str | None = None, arguments: str = "{}") -> Message:  # noqa: A002
    extra = None if id is None else {"function_id": id, "secret": "mine"}
    return Message("assistant", function_call=FunctionCall(name, arguments), extra=extra)


def result(name: str, content: Any = "r", id: str | None = None) -> Message:  # noqa: A002
    return Message("function", content, name=name, extra=None if id is None else {"function_id": id})


def body_of(config: Mapping[str, Any] | None = None, functions: Sequence[Wire] = (), **dialect: Any) -> dict[str, Any]:
    request = ChatRequest("m", (user(),), tuple(functions), GenerateConfig.parse(config))
    return request_body(request, Dialect(**dialect))


def assert_valid(wire: Sequence[Wire]) -> None:
    """Every call has an id of its own and one result right after it, and there is no other result."""
    open_ids: list[str] = []
    seen: set[str] = set()
    for message in wire:
        if message["role"] == "tool":
            assert message["tool_call_id"] in open_ids
            open_ids.remove(message["tool_call_id"])
            assert set(message) == {"role", "tool_call_id", "content"}
            assert isinstance(message["content"], str)
            continue
        assert open_ids == []
        for call in message.get("tool_calls", ()):
            assert call["id"] not in seen
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            seen.add(call["id"])
            open_ids.append(call["id"])
        assert message["role"] in ("system", "user", "assistant")
        assert set(message) <= {"role", "content", "reasoning_content", "tool_calls"}
    assert open_ids == []
    roles = [message["role"] for message in wire]
    assert ("assistant", "assistant") not in list(itertools.pairwise(roles))


# --- the laws ---

ids = st.sampled_from([None, "1", "2", "call_1", "x"])
names = st.sampled_from(["f", "g"])
marks = st.integers(0, 10**9).map(lambda number: f"<{number}>")
items = st.lists(
    st.one_of(
        marks.map(lambda text: ContentItem(text=text)),
        st.just(ContentItem(image=PIXEL)),
        st.just(ContentItem(file="/docs/report.pdf")),
    ),
    max_size=3,
)
contents = st.one_of(marks, items, st.just(""))
messages = st.lists(
    st.one_of(
        st.builds(user, contents),
        st.builds(said, marks),
        st.builds(lambda text, why: Message("assistant", text, reasoning_content=why), contents, marks),
        st.builds(called, names, ids, st.sampled_from(["{}", "", '{"x": 1}', "{broken", "[1]"])),
        st.builds(result, names, contents, ids),
    ),
    max_size=12,
)


def marks_in(value: object) -> list[str]:
    text = json.dumps(value)
    return sorted(part.partition(">")[0] for part in text.split("<")[1:])


@given(messages)
def test_every_history_is_a_valid_request_and_no_text_of_it_is_lost(history: list[Message]) -> None:
    wire = wire_messages(history)
    assert_valid(wire)
    assert marks_in(wire) == marks_in([message.model_dump() for message in history])


@given(messages, messages)
def test_a_longer_history_begins_as_the_shorter_one(history: list[Message], more: list[Message]) -> None:
    # Providers keep a cache of what a request begins with.
    shorter, longer = wire_messages([*history, user("a")]), wire_messages([*history, user("a"), user("b"), *more])
    assert longer[: len(shorter)] == shorter


@given(messages)
def test_the_messages_stay_as_they_were(history: list[Message]) -> None:
    before = [message.model_dump() for message in history]
    wire_messages(history)
    assert [message.model_dump() for message in history] == before


# --- answers ---


def test_the_messages_of_one_answer_are_one_message() -> None:
    wire = wire_messages(
        [
            user(),
            said(reasoning_content="why"),
            said("text"),
            called("f", "a"),
            called("g", "b"),
            result("f", "1", "a"),
            result("g", "2", "b"),
        ]
    )
    assert wire[1] == {
        "role": "assistant",
        "content": "text",
        "reasoning_content": "why",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ],
    }
    assert [(m["tool_call_id"], m["content"]) for m in wire[2:]] == [("a", "1"), ("b", "2")]


def test_reasoning_is_left_out_where_the_server_refuses_it() -> None:
    history = [user(), said("text", reasoning_content="why")]
    assert wire_messages(history, send_reasoning=False)[1] == {"role": "assistant", "content": "text"}


def test_an_image_that_a_model_made_is_told_in_words() -> None:
    history = [said(""), Message("assistant", [{"text": "look"}, {"image": "http://h/cat.png"}]), user()]
    assert wire_messages(history)[0]["content"] == "look\n[image: cat.png]"


# --- calls and results ---


def test_ids_that_repeat_in_every_turn_become_unique_and_stay_paired() -> None:
    turns = [called("f", "1"), called("g", "2"), result("f", "one", "1"), result("g", "two", "2")] * 2
    wire = wire_messages([user(), *turns])
    assert_valid(wire)
    assert [call["id"] for message in wire for call in message.get("tool_calls", ())] == ["1", "2", "call_3", "call_4"]
    assert [message["content"] for message in wire if message["role"] == "tool"] == ["one", "two"] * 2


def test_results_are_matched_by_id_before_name_and_in_the_order_of_the_calls() -> None:
    wire = wire_messages([called("f", "a"), called("f", "b"), result("f", "second", "b"), result("f", "first", "a")])
    assert [(m["tool_call_id"], m["content"]) for m in wire[1:]] == [("a", "first"), ("b", "second")]


def test_a_result_whose_id_was_lost_is_matched_by_name() -> None:
    wire = wire_messages([called("f", "call_A"), called("g", "call_B"), result("g", "2", "1"), result("f", "1")])
    assert [(m["tool_call_id"], m["content"]) for m in wire[1:]] == [("call_A", "1"), ("call_B", "2")]


def test_a_call_without_a_result_is_answered_that_there_is_none() -> None:
    wire = wire_messages([user(), called("f", "a"), called("g", "b"), result("g", "2", "b"), user("go on")])
    assert [m["content"] for m in wire[2:]] == [NO_RESULT, "2", "go on"]


def test_a_result_without_a_call_is_told_by_the_user() -> None:
    wire = wire_messages([user(), result("f", "42", "a")])
    assert wire[1]["role"] == "user"
    assert "42" in wire[1]["content"]
    assert "f" in wire[1]["content"]


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ('{"x": 1}', {"x": 1}),
        ("", {}),
        ("  ", {}),
        ("{'x': 1,}", {"x": 1}),
        ("[1]", {"invalid_arguments": "[1]"}),
        ("plain", {"invalid_arguments": "plain"}),
        ("\ud83d", {"invalid_arguments": "\ud83d"}),
    ],
)
def test_arguments_are_always_an_object(written: str, sent: dict[str, Any]) -> None:
    # Not through pydantic: half a surrogate pair is refused there.
    call = FunctionCall.model_construct(name="f", arguments=written)
    message = Message.model_construct(role="assistant", content="", function_call=call)
    function = wire_messages([message])[0]["tool_calls"][0]["function"]
    assert json.loads(function["arguments"]) == sent


def test_images_of_a_result_follow_all_results_in_a_message_of_the_user() -> None:
    picture = [{"text": "a plot"}, {"image": PIXEL}]
    wire = wire_messages([called("f", "a"), called("g", "b"), result("f", picture, "a"), result("g", "2", "b")])
    assert [message["role"] for message in wire] == ["assistant", "tool", "tool", "user"]
    assert wire[1]["content"] == "a plot"
    assert wire[3]["content"][1] == {"type": "image_url", "image_url": {"url": PIXEL}}
    both = wire_messages([called("f", "a"), called("g", "b"), result("f", picture, "a"), result("g", picture, "b")])
    assert [message["content"][0]["text"] for message in both[3:]] == [
        "Result of the tool f:",
        "Result of the tool g:",
    ]
    stray = wire_messages([called("f", "a"), result("f", picture, "a"), result("h", "of nobody", "c")])
    assert [message["role"] for message in stray] == ["assistant", "tool", "user", "user"]
    assert stray[2]["content"][0]["text"] == "Result of the tool f:"
    assert stray[3]["content"] == "Result of the tool h:\nof nobody"


# --- content ---


def test_content_that_is_all_text_is_one_string() -> None:
    assert wire_messages([user([{"text": "a"}, {"text": "b"}])])[0]["content"] == "a\nb"
    assert isinstance(wire_messages([user([{"text": ""}, {"text": "b"}])])[0]["content"], str)


def test_files_are_notes_with_their_names() -> None:
    content = wire_messages([user([{"text": "read"}, {"file": "/documents/my%20report.pdf"}])])[0]["content"]
    assert content == [{"type": "text", "text": "read"}, {"type": "text", "text": "[file: my report.pdf]"}]


def test_pdfs_are_file_parts_where_the_server_takes_them(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7")
    uri = "data:application/pdf;base64," + base64.b64encode(b"%PDF-1.7").decode()
    message = user([{"file": str(tmp_path / "a.pdf")}, {"file": uri}, {"file": "https://h.test/a.pdf"}])
    request = ChatRequest("m", (message,), facts=ModelFacts(files=True))
    (wire,) = json.loads(request_bytes(request, Dialect()))["messages"]
    assert wire["content"] == [
        {"type": "file", "file": {"filename": "a.pdf", "file_data": uri}},
        {"type": "file", "file": {"filename": "file.pdf", "file_data": uri}},
        {"type": "text", "text": "[file: a.pdf]"},
    ]
    (noted,) = request_body(ChatRequest("m", (message,)), Dialect())["messages"]
    assert {part["type"] for part in noted["content"]} == {"text"}


def test_a_local_image_is_sent_inside_the_request(tmp_path: Path) -> None:
    path = tmp_path / "no-extension"
    path.write_bytes(b"\xff\xd8\xff rest")
    url = wire_messages([user([{"image": str(path)}])])[0]["content"][0]["image_url"]["url"]
    assert url == "data:image/jpeg;base64,/9j/IHJlc3Q="


def test_text_that_no_utf8_has_is_sent_with_a_replacement() -> None:
    broken = Message.model_construct(role="user", content="a\ud83d")
    body = request_bytes(ChatRequest("m", (broken,)), Dialect())
    assert json.loads(body)["messages"][0]["content"] == "a\ufffd"


# --- options ---


def test_a_bare_request_has_no_options() -> None:
    assert body_of() == {
        "model": "m",
        "messages": [{"role": "user", "content": "u"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert "stream_options" not in body_of(stream_usage=False)


def test_options_have_the_names_of_the_wire() -> None:
    config = {
        "temperature": 0.0,
        "top_p": 0.5,
        "top_k": 3,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "repetition_penalty": 1.1,
        "max_tokens": 7,
        "seed": 0,
        "stop": ["a", "b"],
        "response_format": {"type": "json_object"},
        "reasoning_effort": "low",
    }
    body = body_of(config)
    assert {key: body[key] for key in config} == config
    assert body_of({"max_tokens": 7}, max_tokens_key="max_completion_tokens")["max_completion_tokens"] == 7


def test_options_of_the_core_alone_are_not_sent() -> None:
    config = {
        "max_input_tokens": 1,
        "max_retries": 1,
        "lang": "zh",
        "request_timeout": 1,
        "event_timeout": 1,
        "use_raw_api": True,
        "fncall_prompt_type": "nous",
    }
    assert body_of(config) == body_of()


def test_the_extra_body_wins() -> None:
    body = body_of({"temperature": 1, "extra_body": {"temperature": 0, "enable_thinking": False, "n": 2}})
    assert (body["temperature"], body["enable_thinking"], body["n"]) == (0, False, 2)


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ("f", {"type": "function", "function": {"name": "f"}}),
    ],
)
def test_the_choice_of_a_function_is_sent(choice: str, sent: object) -> None:
    schema = {"name": "f", "description": "d", "parameters": {"type": "object"}, "args_format": "private"}
    body = body_of({"function_choice": choice, "parallel_function_calls": False}, [schema])
    assert (body["tool_choice"], body["parallel_tool_calls"]) == (sent, False)
    assert body["tools"] == [
        {"type": "function", "function": {k: schema[k] for k in ("name", "description", "parameters")}}
    ]


def test_without_functions_there_is_nothing_about_tools() -> None:
    assert body_of({"parallel_function_calls": True}) == body_of()


def test_later_parts_of_a_request_win() -> None:
    config = {"temperature": 1.0, "extra_body": {"seed": 9}}
    body = body_of(config | {"seed": 1}, body={"temperature": 0, "stream": False, "seed": 5, "top_k": 2})
    assert (body["temperature"], body["stream"], body["seed"], body["top_k"]) == (1.0, False, 9, 2)


def test_a_strict_schema_stays_strict() -> None:
    schema = {"name": "f", "description": "d", "parameters": {}, "strict": True}
    assert body_of({}, [schema])["tools"][0]["function"] == schema
    assert body_of({}, [{"name": "f"}])["tools"][0]["function"] == {"name": "f"}
    assert "parallel_tool_calls" not in body_of({}, [schema])


def test_a_stray_result_with_media_is_told_by_the_user_with_its_media() -> None:
    wire = wire_messages([user(), result("f", [{"text": "a plot"}, {"image": PIXEL}])])
    assert wire[1] == {
        "role": "user",
        "content": [
            {"type": "text", "text": "Result of the tool f:"},
            {"type": "text", "text": "a plot"},
            {"type": "image_url", "image_url": {"url": PIXEL}},
        ],
    }
    assert wire_messages([result("f", "42")]) == [{"role": "user", "content": "Result of the tool f:\n42"}]


def test_sound_in_a_result_is_sent_as_the_server_wants_it() -> None:
    sound = "data:audio/wav;base64,UklG"
    history = [called("f", "a"), result("f", [{"audio": sound}], "a")]
    assert wire_messages(history, sound_as_uri=True)[2]["content"][1]["input_audio"]["data"] == "data:;base64,UklG"
    assert wire_messages(history)[2]["content"][1]["input_audio"]["data"] == "UklG"
    heard = user([{"audio": sound}])
    assert wire_messages([heard], sound_as_uri=True)[0]["content"][0]["input_audio"]["data"] == "data:;base64,UklG"


def test_the_dialect_names_options_and_adds_to_every_request() -> None:
    body = body_of({"repetition_penalty": 1.1}, repetition_penalty_key="repeat_penalty", body={"modalities": ["text"]})
    assert (body["repeat_penalty"], body["modalities"]) == (1.1, ["text"])
    assert "repetition_penalty" not in body
    assert body_of({"extra_body": {"modalities": []}}, body={"modalities": ["text"]})["modalities"] == []


# --- continuation ---

BEGUN = [user("tell a tale"), said("Once upon")]


def continued(history: Sequence[Message], continuation: Any) -> dict[str, Any]:
    return request_body(ChatRequest("m", tuple(history)), Dialect(continuation=continuation))


def test_an_answer_that_stands_last_is_sent_unmarked_as_it_is() -> None:
    body = continued(BEGUN, "as_is")
    assert body["messages"][-1] == {"role": "assistant", "content": "Once upon"}
    assert body == {**body_of(), "messages": body["messages"]}


def test_an_answer_that_stands_last_is_folded_into_the_question_before_it() -> None:
    assert continued(BEGUN, "fold")["messages"] == [{"role": "user", "content": "tell a tale\n\nOnce upon"}]
    picture = [user([{"text": "look"}, {"image": PIXEL}]), said("I see")]
    assert continued(picture, "fold")["messages"][-1]["content"][-1] == {"type": "text", "text": "\n\nI see"}


@pytest.mark.parametrize("history", [[said("a")], [user(), called("f", "a"), result("f", "r", "a"), said("b")]])
def test_an_answer_without_a_question_before_it_stays_where_it_is(history: list[Message]) -> None:
    assert continued(history, "fold")["messages"] == continued(history, "as_is")["messages"]


@pytest.mark.parametrize("mark", ["partial", "prefix"])
def test_an_answer_that_stands_last_is_marked(mark: str) -> None:
    assert continued(BEGUN, mark)["messages"][-1] == {"role": "assistant", "content": "Once upon", mark: True}


def test_the_final_message_is_continued_without_a_prompt_for_another() -> None:
    body = continued(BEGUN, "continue_final_message")
    assert (body["continue_final_message"], body["add_generation_prompt"]) == (True, False)


@pytest.mark.parametrize("continuation", ["as_is", "fold", "continue_final_message", "partial", "prefix"])
@pytest.mark.parametrize(
    "history",
    [[user()], [user(), said("", reasoning_content="why")], [user(), said("a"), user()], [user(), called("f", "a")]],
)
def test_what_is_no_begun_answer_is_sent_the_same_everywhere(history: list[Message], continuation: str) -> None:
    assert continued(history, continuation) == continued(history, "as_is")


@given(messages, st.sampled_from(["fold", "partial", "continue_final_message"]))
def test_continuing_loses_no_text_and_changes_no_message(history: list[Message], continuation: Any) -> None:
    before = [message.model_dump() for message in history]
    dialect = Dialect(continuation=continuation, send_reasoning=False)
    sent = request_body(ChatRequest("m", tuple(history)), dialect)["messages"]
    assert marks_in(sent) == marks_in(wire_messages(history, send_reasoning=False))
    assert [message.model_dump() for message in history] == before
