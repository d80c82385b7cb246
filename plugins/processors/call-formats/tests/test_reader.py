"""What the reader makes of replies, and that it makes the same of them however they are cut."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield.errors import ToolArgumentError
from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    TextDelta,
    UsageReported,
)
from jackfield.messages import ContentItem, FunctionCall, Usage
from jackfield.models import fold

CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
F = ("f", '{"a": 1}')

REPLIES: dict[str, tuple[str, list[Any]]] = {
    "a call alone": (CALL, [F]),
    "text, then a call": ("I will call.\n" + CALL, ["I will call.\n", F]),
    "two calls": (CALL + "\n" + CALL.replace('"f"', '"g"'), [F, ("g", '{"a": 1}')]),
    "text after the call": (CALL + "\nDone.", ["\nDone.", F]),
    "blank text around a call": ("\n\n" + CALL + "\n \n", [F]),
    "single quotes and a trailing comma": ("<tool_call>{'name': 'f', 'arguments': {'a': 1,}}</tool_call>", [F]),
    "a code fence": ('<tool_call>```json\n{"name": "f", "arguments": {"a": 1}}\n```</tool_call>', [F]),
    "a brace too many": ('<tool_call>{"name": "f", "arguments": {"a": 1}}}</tool_call>', [F]),
    "a raw newline in a string": (
        '<tool_call>{"name": "f", "arguments": {"a": "x\ny"}}</tool_call>',
        [("f", '{"a": "x\\ny"}')],
    ),
    "parameters for arguments": ('<tool_call>{"name": "f", "parameters": {"a": 1}}</tool_call>', [F]),
    "the name last": ('<tool_call>{"arguments": {"a": 1}, "name": "f"}</tool_call>', [F]),
    "arguments beside the name": ('<tool_call>{"name": "f", "a": 1}</tool_call>', [F]),
    "no arguments": ('<tool_call>{"name": "f"}</tool_call>', [("f", "{}")]),
    "null arguments": ('<tool_call>{"name": "f", "arguments": null}</tool_call>', [("f", "{}")]),
    "arguments as a JSON string": ('<tool_call>{"name": "f", "arguments": "{\\"a\\": 1}"}</tool_call>', [F]),
    "the shape of the schema": (
        '<tool_call>{"type": "function", "function": {"name": "f", "arguments": {"a": 1}}}</tool_call>',
        [F],
    ),
    "a list of calls": (
        '<tool_call>[{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}]</tool_call>',
        [F, ("g", "{}")],
    ),
    "two objects in one tag": (
        '<tool_call>{"name": "f", "arguments": {"a": 1}}\n{"name": "g", "arguments": {}}</tool_call>',
        [F, ("g", "{}")],
    ),
    "quotes that break a string": (
        '<tool_call>\n{"name": "f", "arguments": {"a": "x"y"}}\n</tool_call>',
        [("f", '{"a": "x"y"}')],
    ),
    "a broken call, text, a good call": (
        '<tool_call>\n{"name": "f", "arguments": {"a": "x"y"}}\n</tool_call> so\n' + CALL + " end",
        [" so\n end", ("f", '{"a": "x"y"}'), F],
    ),
    "a broken call, and an end tag too many": (
        '<tool_call>\n{"name": "f", "arguments": {"a": "x"y"}}\n</tool_call></tool_call> so',
        ["</tool_call> so", ("f", '{"a": "x"y"}')],
    ),
    "a broken call, and a tag with words": (
        '<tool_call>\n{"name": "f", "arguments": {"a": "x"y"}}\n</tool_call> so <tool_call>words</tool_call>',
        [" so <tool_call>words</tool_call>", ("f", '{"a": "x"y"}')],
    ),
    "no arguments where some were to come": (
        '<tool_call>so: {"name": "f", "arguments": }</tool_call>',
        [("f", 'so: {"name": "f", "arguments": }')],
    ),
    "tags in a string": (
        '<tool_call>{"name": "f", "arguments": {"a": "<tool_call>\\"x\\"</tool_call>"}}</tool_call>!',
        ["!", ("f", '{"a": "<tool_call>\\"x\\"</tool_call>"}')],
    ),
    "an escaped backslash ends a string": (
        '<tool_call>{"name": "f", "arguments": {"a": "C:\\\\"}}</tool_call>!',
        ["!", ("f", '{"a": "C:\\\\"}')],
    ),
    "no end tag": ('<tool_call>\n{"name": "f", "arguments": {"a": 1}}', [F]),
    "half an end tag": ('<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_c', [F]),
    "no end tag before the next call": (
        '<tool_call>{"name": "g", "arguments": {}}\n' + CALL,
        [("g", "{}"), F],
    ),
    "an empty call": ("<tool_call></tool_call>", ["<tool_call></tool_call>"]),
    "an empty call in text": ("a <tool_call> \n</tool_call> b", ["a <tool_call> \n</tool_call> b"]),
    "a call without a name": (
        '<tool_call>{"name": "", "arguments": {}}</tool_call>',
        ['<tool_call>{"name": "", "arguments": {}}</tool_call>'],
    ),
    "a name that is no text": ('<tool_call>{"name": 5}</tool_call>', ['<tool_call>{"name": 5}</tool_call>']),
    "words in the tag": ("<tool_call>f please</tool_call>", ["<tool_call>f please</tool_call>"]),
    "an end tag alone": ("a </tool_call> b", ["a </tool_call> b"]),
    "half a tag at the end": ("a <tool_c", ["a <tool_c"]),
    "a tag of another kind": ("a <tool> b < c <tool_callx>", ["a <tool> b < c <tool_callx>"]),
    "a call in thoughts": (f"<think>maybe {CALL}</think>ok", [f"<think>maybe {CALL}</think>ok"]),
    "a call after thoughts": (f"<think>hmm</think>\n{CALL}", ["<think>hmm</think>", F]),
    "thoughts without an end": (f"<think>hmm {CALL}", [f"<think>hmm {CALL}"]),
    "thoughts between calls": (f"{CALL}<think>{CALL}</think>{CALL}", [f"<think>{CALL}</think>", F, F]),
    "XML": ("<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>", [F]),
    "XML on one line": ("<tool_call><function=f><parameter=a>1</parameter></function></tool_call>", [F]),
    "XML with a quote and a tag in a value": (
        '<tool_call><function=f><parameter=a>say "<tool_call>" aloud\n</parameter></function></tool_call>!',
        ["!", ("f", '{"a": "say \\"<tool_call>\\" aloud"}')],
    ),
    "XML without closing tags": (
        "<tool_call>\n<function=f>\n<parameter=a>\n1\n<parameter=b>\nx",
        [("f", '{"a": 1, "b": "x"}')],
    ),
    "XML without parameters": ("<tool_call><function=f></function></tool_call>", [("f", "{}")]),
    "a parameter of no function before a call": (
        "<tool_call><parameter=a>1</tool_call> so " + CALL,
        ["<tool_call><parameter=a>1</tool_call> so ", F],
    ),
    "white space only": (" \n", [" \n"]),
    "nothing": ("", [""]),
}


def _cuts(text: str, places: list[int]) -> list[str]:
    edges = [0, *sorted({place % (len(text) + 1) for place in places}), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(edges)]


@pytest.mark.parametrize(("reply", "expected"), REPLIES.values(), ids=REPLIES.keys())
def test_a_reply_is_read_the_same_in_pieces_of_any_size(read: Any, told: Any, reply: str, expected: list[Any]) -> None:
    for size in (1, 3, 10_000):
        pieces = [reply[start : start + size] for start in range(0, len(reply), size)]
        assert told(read(*pieces)) == expected


_FRAGMENTS = st.sampled_from(
    [
        *[
            "<tool_call>",
            "</tool_call>",
            "<think>",
            "</think>",
            "<tool_",
            "</",
            "<",
            CALL,
            "\n",
            " ",
            "words",
            '"',
            "\\",
        ],
        *[
            '{"name": "f", "arguments": ',
            '{"a": "',
            '"}}',
            "}",
            "{",
            "'",
            "<function=f>",
            "<parameter=a>",
            "</function>",
        ],
        *['{"name": "g"}', '[{"name": "h", "parameters": []}]', "```", "1", "，好", "\\u00e9", '\\"', "<tool_call>\n{"],
    ]
)
_TEXTS = st.lists(_FRAGMENTS, max_size=14).map("".join)


@given(text=_TEXTS, places=st.lists(st.integers(0, 400), max_size=12), thinks=st.booleans())
@example(text='<tool_call>{"name": "f", "arguments": {"a": "\\\\"}}</tool_call>', places=[43, 44], thinks=False)
def test_cutting_the_stream_elsewhere_never_changes_the_answer(
    read: Any, text: str, places: list[int], thinks: bool
) -> None:
    whole = read(text, begins_in_thought=thinks)
    assert read(*_cuts(text, places), begins_in_thought=thinks) == whole
    assert read(*text, begins_in_thought=thinks) == whole


@given(text=_TEXTS, reason=st.sampled_from(["stop", "length"]))
def test_every_call_has_a_name_and_arguments(feed: Any, text: str, reason: str) -> None:
    deltas = [
        event for event in feed([*map(TextDelta, text), ModelFinished(reason)]) if isinstance(event, FunctionCallDelta)
    ]
    indices = {delta.index for delta in deltas}
    assert indices == set(range(len(indices)))
    assert indices == {delta.index for delta in deltas if delta.name.strip()}
    assert indices == {delta.index for delta in deltas if delta.arguments}


@given(
    text=st.text(max_size=60).filter(lambda text: text.strip() and "<" not in text),
    call=st.tuples(
        st.text("abcdef_", min_size=1, max_size=8), st.dictionaries(st.text(max_size=5), st.text(max_size=20))
    ),
    after=st.text(max_size=20).filter(lambda text: "<" not in text),
)
def test_neither_text_nor_arguments_are_lost(
    read: Any, told: Any, text: str, call: tuple[str, dict[str, str]], after: str
) -> None:
    name, arguments = call
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    answer = read(f"{text}<tool_call>\n{body}\n</tool_call>{after}")
    kept = after if after.strip() else ""
    assert answer.messages[0].content == text + kept
    assert answer.messages[1].function_call.name == name
    assert json.loads(answer.messages[1].function_call.arguments) == arguments
    assert len(answer.messages) == 2


@given(text=st.text(max_size=80))
def test_a_reply_without_tags_passes_as_it_is(read: Any, text: str) -> None:
    answer = read(*text)
    assert answer.get_content() == text
    assert answer.finish_reason == "stop"


def test_calls_are_numbered_from_one_and_change_the_reason_to_tool_calls(read: Any) -> None:
    answer = read(CALL + CALL)
    assert [message.function_id for message in answer.messages] == ["1", "2"]
    assert answer.finish_reason == "tool_calls"


@pytest.mark.parametrize(
    ("partial", "name"),
    [
        ('<tool_call>\n{"name": "f', None),
        ('<tool_call>\n{"name": "f", "', "f"),
        ("<tool_call>\n<function=f", None),
        ("<tool_call>\n<function=f>", "f"),
    ],
)
def test_a_name_shows_as_soon_as_it_is_whole(feed: Any, partial: str, name: str | None) -> None:
    events = feed([TextDelta(character) for character in partial])
    assert events == ([] if name is None else [FunctionCallDelta(0, id="1", name=name)])


@pytest.mark.parametrize("tag", ["<tool_call>", "<think>"])
def test_a_half_tag_is_held_back_and_let_go_when_it_is_none(feed: Any, tag: str) -> None:
    for length in range(1, len(tag)):
        half = tag[:length]
        assert feed([TextDelta("so " + half)]) == [TextDelta("so ")]
        assert feed([TextDelta("so " + half), TextDelta("!")]) == [TextDelta("so "), TextDelta(half + "!")]
        assert feed([TextDelta("so " + half), ModelFinished("stop")])[1] == TextDelta(half)


@given(st.lists(st.sampled_from(["<tool_call", "<", "</think", "a", "b c", "<thin", "\n"]), max_size=20))
def test_no_more_than_a_tag_is_ever_held_back_of_text(feed: Any, pieces: list[str]) -> None:
    fed = "x"
    events: list[Any] = [TextDelta("x")]
    for piece in pieces:
        events.append(TextDelta(piece))
        fed += piece
        said = "".join(event.text for event in feed(events))
        assert fed.startswith(said)
        assert len(fed) - len(said) < len("</tool_call>")


def test_a_call_cut_off_by_the_length_limit_has_arguments_no_tool_takes(read: Any) -> None:
    answer = read('<tool_call>{"name": "remove", "arguments": {"path": "/home/me', reason="length")
    call = answer.messages[0].function_call
    assert answer.finish_reason == "length"
    assert '"/home/me' in call.arguments
    with pytest.raises(ToolArgumentError):
        FunctionCall(call.name, call.arguments).get_parsed_arguments()


def test_a_call_that_was_whole_when_the_limit_came_is_a_call(read: Any, told: Any) -> None:
    assert told(read('<tool_call>{"name": "f", "arguments": {"a": 1}}\n</tool', reason="length")) == [F]


def test_an_answer_that_begins_in_thought_has_no_call_before_its_end(read: Any, told: Any) -> None:
    assert told(read(f"{CALL}</think>{CALL}", begins_in_thought=True)) == [f"{CALL}</think>", F]
    assert told(read(CALL, begins_in_thought=True)) == [CALL]


def test_a_server_that_takes_thoughts_out_itself_may_be_told_that_the_answer_begins_in_thought(feed: Any) -> None:
    events = [ReasoningDelta("hmm"), TextDelta("\n"), TextDelta(CALL), ModelFinished("stop")]
    answer = fold(feed(events, begins_in_thought=True))
    assert answer.messages[0].reasoning_content == "hmm"
    assert [call.name for call in answer.get_function_calls()] == ["f"]


def test_reasoning_beside_a_thought_in_the_text_does_not_end_it(feed: Any) -> None:
    events = [TextDelta("hmm "), ReasoningDelta("r"), TextDelta(f"{CALL}</think>ok"), ModelFinished("stop")]
    answer = fold(feed(events, begins_in_thought=True))
    assert answer.get_function_calls() == []
    assert answer.get_content() == f"hmm {CALL}</think>ok"


def test_a_server_that_parsed_the_call_of_an_answer_with_media_is_reported_and_no_error(feed: Any) -> None:
    picture = MediaDelta(ContentItem(image="http://localhost/p.png"))
    events = feed([picture, UsageReported(Usage()), ModelFinished("tool_calls")])
    (report,) = [event for event in events if isinstance(event, PluginEvent)]
    assert report.name == "jackfield-call-formats.missing_call"


def test_a_second_call_is_left_out_as_a_whole_if_calls_may_not_be_parallel(feed: Any) -> None:
    events = feed([TextDelta(CALL + CALL.replace('"f"', '"g"')), ModelFinished("stop")], parallel_function_calls=False)
    assert {event.index for event in events if isinstance(event, FunctionCallDelta)} == {0}
    (report,) = [event for event in events if isinstance(event, PluginEvent)]
    assert report.data["names"] == ("g",)


def test_native_calls_pass_and_do_not_collide_with_calls_in_the_text(feed: Any) -> None:
    usage = UsageReported(Usage(prompt_tokens=1))
    events = feed(
        [
            FunctionCallDelta(0, id="call_x", name="native", arguments='{"b"'),
            TextDelta(CALL),
            FunctionCallDelta(0, arguments=": 2}"),
            FunctionCallDelta(1, name="other", arguments='{"c"'),
            FunctionCallDelta(1, arguments=": 3}"),
            usage,
            ModelFinished("stop"),
        ]
    )
    answer = fold(events)
    calls = [(call.name, call.arguments) for call in answer.get_function_calls()]
    assert calls == [("native", '{"b": 2}'), F, ("other", '{"c": 3}')]
    assert [message.function_id for message in answer.messages] == ["call_x", "2", "3"]
    assert answer.finish_reason == "tool_calls"
    assert usage in events


def test_the_schema_says_which_values_of_xml_are_texts(read: Any, told: Any) -> None:
    properties = {
        "text": {"type": "string"},
        "perhaps": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "count": {"type": "integer"},
        "tags": {"type": "array"},
    }
    schema = {"name": "f", "parameters": {"type": "object", "properties": properties}}
    values = "".join(
        f"<parameter={key}>\n{value}\n</parameter>\n"
        for key, value in {"text": "12", "perhaps": "[1]", "count": "12", "tags": '["x"]'}.items()
    )
    answer = read(f"<tool_call>\n<function=f>\n{values}</function>\n</tool_call>", functions=[schema])
    expected = {"text": "12", "perhaps": "[1]", "count": 12, "tags": ["x"]}
    assert json.loads(told(answer)[0][1]) == expected


def test_arguments_can_always_be_sent(read: Any) -> None:
    answer = read('<tool_call>{"name": "f", "arguments": {"a": "\\ud800"}}</tool_call>')
    assert answer.messages[0].function_call.arguments.encode() == b'{"a": "\\ud800"}'
