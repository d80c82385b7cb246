"""The format of flowers: its prompt, its history, and what its reader makes of replies."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.events import FunctionCallDelta, ModelFinished, TextDelta
from jackfield.messages import FunctionCall, Message

F = {
    "name": "f",
    "description": "Does 什么.",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
}
CODE = {"name": "code_interpreter", "description": "Runs code.", "parameters": {}}
USER = Message("user", "Go.")
CALL = '✿FUNCTION✿: f\n✿ARGS✿: {"a": 1}'
A1 = ("f", '{"a": 1}')

REPLIES: dict[str, tuple[str, list[Any]]] = {
    "a call alone": (CALL, [A1]),
    "text, then a call": (f"I will.\n{CALL}", ["I will.\n", A1]),
    "two calls": (f'{CALL}\n✿FUNCTION✿: g\n✿ARGS✿: {{"b": 2}}', [A1, ("g", '{"b": 2}')]),
    "one name, two arguments": (f'{CALL}\n✿ARGS✿: {{"a": 2}}', [A1, ("f", '{"a": 2}')]),
    "no white space, no colons": ('✿FUNCTION✿f✿ARGS✿{"a": 1}', [A1]),
    "Chinese colons": ('✿FUNCTION✿：f\n✿ARGS✿：{"a": 1}', [A1]),
    "a comment behind the arguments": (f"{CALL} <!-- c -->", [" <!-- c -->", A1]),
    "a brace too many": (f"{CALL}}}\n", [A1]),
    "slips of JSON": ("✿FUNCTION✿: f\n✿ARGS✿: {'a': 1,}\n", [A1]),
    "slips, and words behind": ("✿FUNCTION✿: f\n✿ARGS✿: {'a': 1,} so", [" so", A1]),
    "quotes that break a string": ('✿FUNCTION✿: f\n✿ARGS✿: {"a": "x"y"}', [("f", '{"a": "x"y"}')]),
    "code in a fence": (
        "✿FUNCTION✿: code_interpreter\n✿ARGS✿: ```py\nprint(1)\n``` trailing",
        [" trailing", ("code_interpreter", "```py\nprint(1)\n```")],
    ),
    "JSON in a fence": ('✿FUNCTION✿: f\n✿ARGS✿:\n```json\n{"a": 1}\n```', [A1]),
    "words for arguments": ("✿FUNCTION✿: f\n✿ARGS✿: the weather", [("f", "the weather")]),
    "empty arguments": ("✿FUNCTION✿: f\n✿ARGS✿: ", [("f", "{}")]),
    "an offered name without arguments": ("✿FUNCTION✿: f", [("f", "{}")]),
    "an offered name, then words": ("✿FUNCTION✿: f\nso", ["so", ("f", "{}")]),
    "an offered name, then another call": (f"✿FUNCTION✿: f\n{CALL}", [("f", "{}"), A1]),
    "another name without arguments": ("✿FUNCTION✿: x", ["✿FUNCTION✿: x"]),
    "no name": ('✿FUNCTION✿: \n✿ARGS✿: {"a": 1}', ['✿FUNCTION✿: \n✿ARGS✿: {"a": 1}']),
    "words in place of a name": ("the ✿FUNCTION✿ token\nis a flower", ["the ✿FUNCTION✿ token\nis a flower"]),
    "half a token": ("so ✿FUNC", ["so ✿FUNC"]),
    "half a token behind arguments": (f"{CALL}\n✿RES", [A1]),
    "a result of its own": (f"{CALL}\n✿RESULT✿: sunny\n✿RETURN✿: It is sunny.", [A1]),
    "an answer of its own right behind the call": (f"{CALL}\n✿RETURN✿: It is sunny.", [A1]),
    "text, then a stop word": ("So.\n✿RETURN✿: and on", ["So.\n"]),
    "the answer behind its label": ("✿RETURN✿: It is 42.", ["It is 42."]),
    "the answer behind two labels": ("\n✿RESULT✿\n✿RETURN✿： It is 42.", ["It is 42."]),
    "a call behind the label of the answer": (f"✿RETURN✿: {CALL}", [A1]),
    "a flower": ("a ✿ b ✿✿", ["a ✿ b ✿✿"]),
}


@pytest.mark.parametrize(("reply", "expected"), REPLIES.values(), ids=REPLIES.keys())
def test_a_reply_is_read_the_same_in_pieces_of_any_size(read: Any, told: Any, reply: str, expected: list[Any]) -> None:
    for size in (1, 3, 10_000):
        pieces = [reply[start : start + size] for start in range(0, len(reply), size)]
        assert told(read(*pieces, fmt="qwen", functions=[F, CODE])) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('✿ARGS✿: {"a": 1}', [A1]),
        ('So: ✿ARGS✿: {"a": 1}', ['So: ✿ARGS✿: {"a": 1}']),
        (f'{CALL}\n✿RETURN✿\n✿ARGS✿: {{"a": 1}}', [A1]),
    ],
)
def test_arguments_without_a_name_are_those_of_the_chosen_function(
    read: Any, told: Any, reply: str, expected: list[Any]
) -> None:
    assert told(read(reply, fmt="qwen", functions=[F], function_choice="f")) == expected
    assert told(read('✿ARGS✿: {"a": 1}', fmt="qwen", functions=[F], function_choice="gone")) == ['✿ARGS✿: {"a": 1}']


def test_a_name_that_was_cut_off_calls_nothing(read: Any, told: Any) -> None:
    assert told(read("✿FUNCTION✿: f", fmt="qwen", functions=[F], reason="length")) == ["✿FUNCTION✿: f"]


def test_a_name_of_more_than_256_characters_is_text_at_once(feed: Any) -> None:
    text = "✿FUNCTION✿ " + "x" * 300
    assert feed([TextDelta(text)], "qwen", functions=[F]) == [TextDelta("✿FUNCTION✿"), TextDelta(" " + "x" * 300)]


def test_a_name_shows_as_soon_as_the_arguments_begin(feed: Any) -> None:
    assert feed(map(TextDelta, "✿FUNCTION✿: f\n✿ARGS"), "qwen") == []
    assert feed(map(TextDelta, "✿FUNCTION✿: f\n✿ARGS✿"), "qwen") == [FunctionCallDelta(0, id="1", name="f")]


def test_an_answer_that_ran_past_a_stop_word_ended_there(feed: Any) -> None:
    events = feed([TextDelta(f"{CALL}\n✿RESULT✿: invented, at great"), ModelFinished("length")], "qwen")
    assert events[-1] == ModelFinished("tool_calls")
    assert feed([TextDelta("So.✿RESULT✿: x"), ModelFinished("length")], "qwen")[-1] == ModelFinished("stop")


def test_the_stop_words_are_added_but_the_answer_to_results_may_begin_with_its_label(
    request_of: Any, formats: Any
) -> None:
    asked = formats["qwen"].render(request_of(USER, functions=[F], stop="x"))
    assert asked.config.stop == ("x", "✿RESULT✿", "✿RETURN✿")
    call = Message("assistant", "", function_call=FunctionCall("f", "{}"))
    answered = request_of(USER, call, Message("function", "1", name="f"), functions=[F])
    assert formats["qwen"].render(answered).config.stop == ("✿RESULT✿",)
    none = formats["qwen"].render(request_of(USER, functions=[F], function_choice="none"))
    assert none.config.stop == ()


@pytest.mark.parametrize(("lang", "heading"), [("en", "# Tools"), ("zh", "# 工具")])
def test_the_prompt_tells_names_schemas_and_the_grammar(request_of: Any, formats: Any, lang: str, heading: str) -> None:
    def prompt(**config: Any) -> str:
        rendered = formats["qwen"].render(request_of(USER, functions=[F, CODE], lang=lang, **config))
        return rendered.messages[0].get_text_content()

    text = prompt()
    assert text.startswith(heading)
    assert "### f\n\nf: Does 什么. " in text
    assert '{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}' in text
    assert "[f, code_interpreter]" in text
    assert text.count("✿FUNCTION✿: ") == 2
    assert prompt(parallel_function_calls=False).count("✿FUNCTION✿: ") == 1


def test_a_schema_may_bring_a_heading_and_a_format_of_arguments_of_its_own(request_of: Any, formats: Any) -> None:
    own = {**F, "name_for_human": "The F", "args_format": "As YAML."}
    text = formats["qwen"].render(request_of(USER, functions=[own])).messages[0].get_text_content()
    assert "### The F\n\nf: Does" in text
    assert "As YAML." in text


def test_calls_stand_in_one_answer_and_their_results_in_one_message(request_of: Any, formats: Any) -> None:
    calls = [
        Message("assistant", "I will."),
        Message("assistant", "", function_call=FunctionCall("f", '{"a":1}')),
        Message("assistant", "", function_call=FunctionCall("code_interpreter", "```py\n1\n```")),
    ]
    results = [Message("function", "sun", name="f"), Message("function", "1", name="code_interpreter")]
    told = formats["qwen"].render(request_of(USER, *calls, *results, functions=[F, CODE])).messages[2:]
    assert [(message.role, message.content) for message in told] == [
        ("assistant", f"I will.\n{CALL}\n✿FUNCTION✿: code_interpreter\n✿ARGS✿: \n```py\n1\n```"),
        ("user", "✿RESULT✿: sun\n✿RESULT✿: 1\n✿RETURN✿:"),
    ]
