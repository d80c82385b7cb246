"""An answer goes back exactly as it came, or else as what is seen of it: never in part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.messages import ContentItem, FunctionCall, Message, Origin
from jackfield.models import fold
from jackfield_http import Failures
from jackfield_openai.responses.answer import ResponsesReader
from jackfield_openai.responses.config import ResponsesConfig
from jackfield_openai.responses.wire import input_items

Wire = dict[str, Any]
Told = Any  # of conftest.py, which tests cannot import
Change = Callable[[list[Message]], list[Message]]

HERE = "openai_responses@here"
HELLO = Message("user", "hello")
NEXT = Message("user", "and then?")


def answer(told: Told, output: Sequence[Wire], server: str = HERE, **completed: Any) -> list[Message]:
    reader = ResponsesReader(Failures("openai_responses"), server=server)
    data = told.bytes_of(told.all(output, **completed))
    messages = fold([*reader.feed(data), *reader.finish()], "openai_responses").messages
    # As a caller keeps them who writes his histories into files.
    return [Message.model_validate_json(message.model_dump_json()) for message in messages]


def sent(*messages: Message, server: str = HERE, **config: Any) -> list[Any]:
    return list(input_items(messages, ResponsesConfig(model="m", **config), server))


def results(messages: Sequence[Message]) -> list[Message]:
    return [
        Message("function", "done", name=message.function_call.name, extra=message.extra)
        for message in messages
        if message.function_call is not None
    ]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
KINDS = ("message", "reasoning", "call", "search", "image")


@given(kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=6), texts=st.lists(TEXTS, min_size=6, max_size=6))
def test_an_unchanged_answer_is_sent_back_item_for_item(told: Told, kinds: list[str], texts: list[str]) -> None:
    make: dict[str, Callable[[int], Wire]] = {
        "message": lambda n: {**told.message(texts[n], "!", id=f"m{n}"), "phase": "commentary"},
        "reasoning": lambda n: told.reasoning(texts[n], id=f"rs{n}", encrypted=f"secret {n}"),
        "call": lambda n: told.call("f", '{"n": 1}', call_id=f"c{n}", id=f"fc{n}"),
        "search": lambda n: {
            "id": f"ws{n}",
            "type": "web_search_call",
            "status": "completed",
            "action": {"q": texts[n]},
        },
        "image": lambda n: told.image(id=f"ig{n}", output_format="png", quality="low"),
    }
    output = [make[kind](number) for number, kind in enumerate(kinds)]
    messages = answer(told, output)
    while output and output[-1]["type"] == "reasoning":
        output.pop()
    if not messages:
        return  # nothing to be seen, so nothing that carries the items
    items = sent(HELLO, *messages, *results(messages), NEXT)
    assert items[1 : 1 + len(output)] == output
    answered = [item["call_id"] for item in output if item["type"] == "function_call"]
    rest = items[1 + len(output) : -1]
    assert [(item["type"], item["call_id"]) for item in rest] == [("function_call_output", c) for c in answered]


def test_answers_of_several_turns_are_each_sent_back(told: Told) -> None:
    first = [told.reasoning("r", id="rs1"), told.call("f", call_id="c1")]
    second = [told.reasoning("r", id="rs2"), told.message("done")]
    one, two = answer(told, first), answer(told, second)
    items = sent(HELLO, *one, *results(one), *two, NEXT)
    assert [*items[1:3], *items[4:6]] == [*first, *second]
    assert items[3]["type"] == "function_call_output"


def test_two_answers_without_anything_between_are_each_sent_back(told: Told) -> None:
    first, second = [told.message("one", id="m1")], [told.reasoning("r"), told.message("two", id="m2")]
    changed = answer(told, second)
    changed[1] = changed[1].replace(content="TWO")
    assert sent(HELLO, *answer(told, first), *answer(told, second))[1:] == [*first, *second]
    rendered = {"type": "message", "role": "assistant", "content": "TWO"}
    assert sent(HELLO, *answer(told, first), *changed)[1:] == [*first, rendered]


IDS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True)


@given(answers=st.lists(IDS, min_size=2, max_size=4))
def test_no_id_is_sent_twice_and_no_text_is_lost(told: Told, answers: list[list[str]]) -> None:
    history = [HELLO]
    for ids in answers:
        history += [*answer(told, [told.message(each, id=each) for each in ids]), NEXT]
    items = sent(*history)
    sent_ids = [item["id"] for item in items if "id" in item]
    assert len(sent_ids) == len(set(sent_ids))
    said = [item["content"] for item in items if item["role"] == "assistant"]
    texts = [content if isinstance(content, str) else content[0]["text"] for content in said]
    assert "".join("".join(texts).split()) == "".join("".join(ids) for ids in answers)


def test_an_answer_that_stands_twice_is_sent_as_it_came_only_once(told: Told) -> None:
    output = [told.reasoning("r"), told.message("text")]
    messages = answer(told, output)
    rendered = {"type": "message", "role": "assistant", "content": "text"}
    assert sent(HELLO, *messages, NEXT, *messages)[1:] == [*output, sent(NEXT)[0], rendered]


# --- what changes an answer ---


def _say_otherwise(messages: list[Message]) -> list[Message]:
    return [m.replace(content="[redacted]") if m.content else m for m in messages]


def _think_otherwise(messages: list[Message]) -> list[Message]:
    return [m.replace(reasoning_content="[redacted]") if m.reasoning_content else m for m in messages]


def _call_otherwise(messages: list[Message]) -> list[Message]:
    return [m.replace(function_call=FunctionCall("f", '{"a": 2}')) if m.function_call else m for m in messages]


def _attach(messages: list[Message]) -> list[Message]:
    return [
        m.replace(content=[ContentItem(text=m.get_text_content()), ContentItem(file="a")]) if m.content else m
        for m in messages
    ]


CHANGES: dict[str, Change] = {
    "without its thoughts": lambda messages: messages[1:],
    "without its text": lambda messages: [m for m in messages if not m.content],
    "without its call": lambda messages: messages[:-1],
    "otherwise said": _say_otherwise,
    "otherwise thought": _think_otherwise,
    "otherwise called": _call_otherwise,
    "with a file": _attach,
    "without its origin": lambda messages: [m.replace(origin=None) for m in messages],
    "with another id": lambda messages: [
        m.replace(extra={"function_id": "x"}) if m.function_call else m for m in messages
    ],
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_answer_is_written_anew_without_reasoning_and_ids(told: Told, change: str) -> None:
    output = [told.reasoning("thinking"), told.message("text"), told.call("f", '{"a": 1}', call_id="c1")]
    original = answer(told, output)
    messages = CHANGES[change](list(original))
    assert messages != original
    items = sent(HELLO, *messages, *results(messages), NEXT)
    assert not [item for item in items if item["type"] == "reasoning" or "id" in item]
    seen = "".join(message.get_text_content() for message in messages)
    assert "".join(item["content"] for item in items if item.get("role") == "assistant").startswith(seen)
    calls = [(item["name"], item["arguments"]) for item in items if item["type"] == "function_call"]
    assert calls == [(m.function_call.name, m.function_call.arguments) for m in messages if m.function_call]


def test_content_that_is_only_written_as_items_is_unchanged(told: Told) -> None:
    output = [told.reasoning("r"), told.message("text")]
    messages = [
        m.replace(content=[ContentItem(text=m.get_text_content())], name="Anna") if m.content else m
        for m in answer(told, output)
    ]
    assert sent(HELLO, *messages)[1:] == output


@pytest.mark.parametrize("server", ["openai_responses", "openai_responses@elsewhere", ""])
def test_another_server_gets_what_is_seen_alone(told: Told, server: str) -> None:
    messages = answer(told, [told.reasoning("r"), told.message("text")])
    rendered = {"type": "message", "role": "assistant", "content": "text"}
    assert sent(HELLO, *messages, server=server)[1:] == [rendered]


def test_who_wants_no_reasoning_sent_gets_what_is_seen_alone(told: Told) -> None:
    messages = answer(told, [told.reasoning("r"), told.message("text")])
    assert [item["type"] for item in sent(HELLO, *messages, send_reasoning=False)] == ["message", "message"]


# --- what cannot be sent ---


def test_reasoning_that_is_only_an_id_is_not_sent_nor_what_belongs_to_it(told: Told) -> None:
    output = [told.reasoning(encrypted=None), told.call("f", call_id="c1")]
    messages = answer(told, output)
    items = sent(HELLO, *messages, *results(messages))
    assert [item["type"] for item in items] == ["message", "function_call", "function_call_output"]
    assert "id" not in items[1]


def test_reasoning_in_plain_text_is_sent_to_the_server_that_gave_it(told: Told) -> None:
    output = [told.reasoning(content=["so be it"], encrypted=None), told.message("text")]
    assert sent(HELLO, *answer(told, output))[1:] == output


@pytest.mark.parametrize("thoughts", [1, 2, 3])
def test_an_answer_that_was_cut_off_while_thinking_is_sent_without_its_last_thoughts(told: Told, thoughts: int) -> None:
    last = [told.reasoning("let me", id=f"rs_{number}") for number in range(thoughts)]
    output = [told.message("I shall look."), *last]
    messages = answer(told, output, status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    assert sent(HELLO, *messages, NEXT)[1:-1] == output[:1]


def test_a_call_that_was_cut_off_is_mended(told: Told) -> None:
    output = [told.reasoning("r"), told.call("f", '{"place": "Ber', call_id="c1")]
    messages = answer(told, output, status="incomplete")
    call = sent(HELLO, *messages, NEXT)[1]
    assert "reasoning" not in str(call)
    assert call["arguments"].endswith("}")


def test_two_calls_of_one_id_get_different_ones(told: Told) -> None:
    output = [told.call("f", call_id="same", id="a")]
    one, two = answer(told, output), answer(told, output)
    items = sent(HELLO, *one, *results(one), NEXT, *two, *results(two))
    ids = [item["call_id"] for item in items if item["type"] == "function_call"]
    assert len(set(ids)) == 2


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"server": HERE},
        {"server": HERE, "output": None},
        {"server": HERE, "output": "abc"},
        {"server": HERE, "output": {"a": 1}},
        {"server": HERE, "output": [None]},
        {"server": HERE, "output": [{}]},
        {"server": HERE, "output": [{"type": "message", "content": 1}]},
        {"server": HERE, "output": [{"type": "function_call"}]},
        {"server": HERE, "output": [{"type": "message", "content": [5]}]},
        {"server": HERE, "output": [{"type": "reasoning", "summary": ["thought"]}]},
    ],
)
def test_an_origin_that_was_edited_costs_nothing_but_the_items(data: Wire) -> None:
    message = Message("assistant", "text", origin=Origin(backend="openai_responses", data=data))
    assert sent(HELLO, message)[1:] == [{"type": "message", "role": "assistant", "content": "text"}]
