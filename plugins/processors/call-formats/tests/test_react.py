"""The format of plain words: its prompt, its history, and what its reader makes of replies."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.events import FunctionCallDelta, ModelFinished, ReasoningDelta, TextDelta
from jackfield.messages import FunctionCall, Message

F = {
    "name": "f",
    "description": "Does 什么.",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
}
USER = Message("user", "Go.")
CALL = 'Action: f\nAction Input: {"a": 1}'
A1 = ("f", '{"a": 1}')

REPLIES: dict[str, tuple[str, str | None, list[Any]]] = {
    "a call alone": (CALL, None, [A1]),
    "a thought, then a call": (f"Thought: I must ask f.\n{CALL}\n", "I must ask f.", [A1]),
    "a thought of several lines": (f"Thought:\nOne.\n\nTwo.\n\n{CALL}", "One.\n\nTwo.", [A1]),
    "words, then a call": (f"I will.\n{CALL}", None, ["I will.\n", A1]),
    "two calls": (f"{CALL}\nAction: g\nAction Input: {{}}", None, [A1, ("g", "{}")]),
    "a thought between calls": (f"Thought: A.\n{CALL}\nThought: B.\n{CALL}", "A.\nB.", [A1, A1]),
    "an observation of its own": (f"{CALL}\nObservation: sunny\nFinal Answer: It is sunny.", None, [A1]),
    "the answer": ("Thought: I know.\nFinal Answer: It is 42.", "I know.", ["It is 42."]),
    "an answer of several lines": ("Final Answer:\n\nIt is\n42.\n", None, ["It is\n42.\n"]),
    "labels in the answer": (f"Final Answer: write\n{CALL}\nObservation: x", None, [f"write\n{CALL}\nObservation: x"]),
    "an answer without labels": ("It is 42.", None, ["It is 42."]),
    "a thought that is the answer": ("Thought: It is 42.", "It is 42.", ["It is 42."]),
    "labels in bold": ('**Thought:** So.\n**Action**: f\n**Action Input:** {"a": 1}', "So.", [A1]),
    "labels with a Chinese colon, indented": ('  Action： f\n  Action Input：{"a": 1}', None, [A1]),
    "a name in backticks, lines between": ('Action: `f`\n\n\nAction Input: {"a": 1}', None, [A1]),
    "a name on the next line": ('Action:\nf\nAction Input:\n{"a": 1}', None, [A1]),
    "slips of JSON": ("Action: f\nAction Input: {'a': 1,}", None, [A1]),
    "JSON of several lines": ('Action: f\nAction Input: {\n  "a": 1\n}', None, [A1]),
    "JSON in a fence": ('Action: f\nAction Input:\n```json\n{"a": 1}\n```\n', None, [A1]),
    "code in a fence": ("Action: f\nAction Input: ```py\nx\n\ny\n```\nso", None, ["\nso", ("f", "```py\nx\n\ny\n```")]),
    "words for arguments": ("Action: f\nAction Input: the weather\n", None, [("f", "the weather")]),
    "no arguments behind the label": ("Action: f\nAction Input:", None, [("f", "{}")]),
    "an offered name without arguments": ("Action: f", None, [("f", "{}")]),
    "an offered name, then an observation": ("Action: f\nObservation: x", None, [("f", "{}")]),
    "an offered name, then words": ("Action: f\nso", None, ["so", ("f", "{}")]),
    "a list of things to do": ("Action: call\nReason: fire", None, ["Action: call\nReason: fire"]),
    "an action in a thought": (
        "Thought: Well.\nAction: think\nharder\nFinal Answer: 42",
        "Well.\nAction: think\nharder",
        ["42"],
    ),
    "an action without a name": ("Action:\n\nAction Input: {}", None, ["Action:\n\nAction Input: {}"]),
    "labels in the middle of lines": (f"See Action: f, {CALL}", None, [f"See {'Action: f, ' + CALL}"]),
    "an observation first": ("Observation: the sky is blue", None, ["Observation: the sky is blue"]),
    "words for a second action": (f"{CALL}\nAction: call\nso", None, ["Action: call\nso", A1]),
    "a label indented by eight": (" " * 8 + "**Final Answer**: 42", None, ["42"]),
    "a label indented by nine": (" " * 9 + "Final Answer: 42", None, [" " * 9 + "Final Answer: 42"]),
    "half a label": ("So.\nAction Inp", None, ["So.\nAction Inp"]),
    "a list in bold": ("**Active**: yes\n**Thou**", None, ["**Active**: yes\n**Thou**"]),
}


@pytest.mark.parametrize(("reply", "thought", "expected"), REPLIES.values(), ids=REPLIES.keys())
def test_a_reply_is_read_the_same_in_pieces_of_any_size(
    read: Any, told: Any, reply: str, thought: str | None, expected: list[Any]
) -> None:
    for size in (1, 3, 10_000):
        pieces = [reply[start : start + size] for start in range(0, len(reply), size)]
        answer = read(*pieces, fmt="react", functions=[F])
        messages = answer.messages
        assert (messages[0].reasoning_content if thought else None) == thought
        assert told(answer.model_copy(update={"messages": messages[bool(thought) :]})) == expected


def test_an_observation_after_a_thought_ends_the_answer(read: Any) -> None:
    answer = read("Thought: Hm.\nObservation: x\nFinal Answer: y", fmt="react", functions=[F])
    assert [(message.reasoning_content, message.content) for message in answer.messages] == [("Hm.", "")]


@pytest.mark.parametrize(
    ("reply", "expected"), [('Action Input: {"a": 1}', [A1]), (f"{CALL}\nThought: B.\n{CALL}", [A1, A1])]
)
def test_an_input_without_an_action_is_that_of_the_chosen_function(read: Any, reply: str, expected: list[Any]) -> None:
    calls = read(reply, fmt="react", functions=[F], function_choice="f").get_function_calls()
    assert [(call.name, call.arguments) for call in calls] == expected
    thought = read('Thought: Hm.\nAction Input: {"a": 1}', fmt="react", functions=[F], function_choice="f")
    assert thought.get_function_calls() == []


def test_an_action_that_was_cut_off_calls_nothing(read: Any, told: Any) -> None:
    assert told(read("Action: f", fmt="react", functions=[F], reason="length")) == ["Action: f"]


def test_a_name_of_a_tool_may_have_the_characters_of_markdown(read: Any, told: Any) -> None:
    functions = [F, {**F, "name": "`f`"}]
    assert told(read('Action: `f`\nAction Input: {"a": 1}', fmt="react", functions=functions)) == [("`f`", '{"a": 1}')]


@pytest.mark.parametrize("text", ["Action:" + " " * 300, "x\n" + " " * 9 + "Act", "Action: " + "x" * 300])
def test_no_more_is_held_back_than_a_label_and_a_name_need(feed: Any, text: str) -> None:
    events = feed([TextDelta(text)], "react", functions=[F])
    assert "".join(event.text for event in events).rstrip() == text.rstrip()


def test_a_name_shows_as_soon_as_the_arguments_begin(feed: Any) -> None:
    assert feed(map(TextDelta, "Action: f\nAction Input"), "react") == []
    assert feed(map(TextDelta, "Action: f\nAction Input:"), "react") == [FunctionCallDelta(0, id="1", name="f")]


@pytest.mark.parametrize("before", [[], [TextDelta("Well.\n")]], ids=["at the start", "after text"])
def test_a_thought_streams_as_reasoning(feed: Any, before: list[TextDelta]) -> None:
    pieces = [TextDelta(piece) for piece in ("Tho", "ught: I", " think", " \n", "so\nAct")]
    thought = [ReasoningDelta("I"), ReasoningDelta(" think"), ReasoningDelta(" \nso")]
    assert feed([*before, *pieces], "react") == [*before, *thought]


def test_an_answer_that_ran_past_a_stop_word_ended_there(feed: Any) -> None:
    events = feed([TextDelta(f"{CALL}\nObservation: invented, at great"), ModelFinished("length")], "react")
    assert events[-1] == ModelFinished("tool_calls")


@pytest.mark.parametrize(("lang", "heading"), [("en", "You can use"), ("zh", "你可以使用")])
def test_the_prompt_tells_names_schemas_the_grammar_and_where_to_stop(
    request_of: Any, formats: Any, lang: str, heading: str
) -> None:
    rendered = formats["react"].render(request_of(USER, functions=[F], lang=lang))
    text = rendered.messages[0].get_text_content()
    assert heading in text
    assert "f: Does 什么. " in text
    assert "[f]" in text
    for label in ("Thought", "Action", "Action Input", "Observation", "Final Answer"):
        assert f"\n{label}: " in text
    assert rendered.config.stop == ("\nObservation:",)


def test_reasoning_that_led_to_calls_is_told_as_a_thought_and_other_reasoning_is_not(
    request_of: Any, formats: Any
) -> None:
    messages = [
        USER,
        Message("assistant", "", reasoning_content="I must ask f."),
        Message("assistant", "Wait."),
        Message("assistant", "", function_call=FunctionCall("f", '{"a":1}')),
        Message("assistant", "Now."),
        Message("function", "sun", name="f"),
        Message("assistant", "", reasoning_content="I know."),
        Message("assistant", "Sun."),
        USER,
    ]
    told = formats["react"].render(request_of(*messages, functions=[F])).messages[2:-1]
    assert [(message.role, message.content, message.reasoning_content) for message in told] == [
        ("assistant", f"Thought: I must ask f.\nWait.\n{CALL}\nNow.", None),
        ("user", "Observation: sun", None),
        ("assistant", "Sun.", "I know."),
    ]
