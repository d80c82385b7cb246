"""The XML format: its prompt, its types, its escapes, and what its reader makes of replies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jackfield.events import FunctionCallDelta, TextDelta
from jackfield.messages import FunctionCall, Message
from jackfield_call_formats.xml_body import is_strict_xml

F = {
    "name": "f",
    "description": "Does 什么.",
    "parameters": {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "Some words"},
            "count": {"type": "integer"},
            "size": {"type": "number"},
            "yes": {"type": "boolean"},
            "list": {"type": "array", "items": {"type": "string"}},
            "map": {"type": "object"},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "unit": {"enum": ["1", "2"]},
            "either": {"type": ["string", "number"]},
            "any": {},
        },
        "required": ["text"],
    },
}
USER = Message("user", "Go.")


def _xml(**values: str) -> str:
    parameters = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items())
    return f"<tool_call>\n<function=f>\n{parameters}</function>\n</tool_call>"


A1 = ("f", '{"count": 1}')
REPLIES: dict[str, tuple[str, list[Any]]] = {
    "a call alone": (_xml(count="1"), [A1]),
    "text, then a call, then text": (f"I will.\n{_xml(count='1')}\nDone.", ["I will.\n\nDone.", A1]),
    "two calls": (_xml(count="1") * 2, [A1, A1]),
    "two functions in one tag": (
        "<tool_call><function=f><parameter=count>1</parameter></function>\n<function=g></function></tool_call>",
        [A1, ("g", "{}")],
    ),
    "on one line": ("<tool_call><function=f><parameter=count>1</parameter></function></tool_call>", [A1]),
    "no outer tags": ("So: <function=f>\n<parameter=count>\n1\n</parameter>\n</function>", ["So: ", A1]),
    "no opening tag": (_xml(count="1").removeprefix("<tool_call>\n") + "\nDone.", ["\nDone.", A1]),
    "no closing tag": (_xml(count="1").removesuffix("</tool_call>"), [A1]),
    "no closing tag before the next call": (_xml(count="1").removesuffix("</tool_call>") + _xml(), [A1, ("f", "{}")]),
    "white space before a call": ("\n\n" + _xml(count="1") + " Done.", [" Done.", A1]),
    "no outer tags and words after it": (
        "<function=f>\n<parameter=count>\n1\n</parameter>\n</function> Done.",
        [" Done.", A1],
    ),
    "no end of the function": ("<tool_call><function=f><parameter=count>1</parameter></tool_call>!", ["!", A1]),
    "no end of a value": ("<tool_call><function=f><parameter=count>\n1\n</function></tool_call>!", ["!", A1]),
    "no ends of values": (
        "<tool_call>\n<function=f>\n<parameter=count>\n1\n<parameter=text>\nx\n</function>\n</tool_call>",
        [("f", '{"count": 1, "text": "x"}')],
    ),
    "no ends at all": ("<tool_call>\n<function=f>\n<parameter=count>\n1", [A1]),
    "no ends at all before the next call": (
        "<tool_call>\n<function=f>\n<parameter=count>\n1\n</tool_call>\nso " + _xml(count="1"),
        ["\nso ", A1, A1],
    ),
    "no parameters": ("<tool_call><function=f></function></tool_call>", [("f", "{}")]),
    "no parameters and no end": ("<tool_call><function=f></tool_call>!", ["!", ("f", "{}")]),
    "JSON in place of XML": ('<tool_call>{"name": "f", "arguments": {"count": 1}}</tool_call>', [A1]),
    "end tags in a value": (
        _xml(text="a</parameter> b</function> c</tool_call> d <tool_call>e"),
        [("f", '{"text": "a</parameter> b</function> c</tool_call> d <tool_call>e"}')],
    ),
    "a value of several lines": (_xml(text="\n a\n\n b\n"), [("f", '{"text": "\\n a\\n\\n b\\n"}')]),
    "no outer tags and end tags in a value": (
        "<function=f>\n<parameter=text>\na</function> b\n</parameter>\n</function>",
        [("f", '{"text": "a</function> b"}')],
    ),
    "a second value that begins with an end tag": (
        _xml(count="1", text="</tool_call> x"),
        [("f", '{"count": 1, "text": "</tool_call> x"}')],
    ),
    "no ends at all and a line feed": ("<tool_call>\n<function=f>\n<parameter=text>\nx\n", [("f", '{"text": "x"}')]),
    "an end tag that ends nothing": ("a </tool_call> b", ["a </tool_call> b"]),
    "an end tag first": ("</tool_call> b", ["</tool_call> b"]),
    "no name and no outer tags": ("<function=></function> b", ["<function=></function> b"]),
    "no name": (
        "<tool_call><function=></function></tool_call>",
        ["<tool_call><function=></function></tool_call>"],
    ),
    "words in the tag": ("<tool_call>f please</tool_call>", ["<tool_call>f please</tool_call>"]),
    "half of a tag": ("a <function", ["a <function"]),
    "HTML": ("<b>x</b> <function> y", ["<b>x</b> <function> y"]),
}


@pytest.mark.parametrize(("reply", "expected"), REPLIES.values(), ids=REPLIES.keys())
def test_a_reply_is_read_the_same_in_pieces_of_any_size(read: Any, told: Any, reply: str, expected: list[Any]) -> None:
    for size in (1, 3, 10_000):
        pieces = [reply[start : start + size] for start in range(0, len(reply), size)]
        assert told(read(*pieces, fmt="qwen3_coder", functions=[F])) == expected


@pytest.mark.parametrize(
    ("key", "written", "value"),
    [
        ("text", "12", "12"),
        ("text", '"quoted"', '"quoted"'),
        ("text", "null", "null"),
        ("text", '["x"]', '["x"]'),
        ("count", "12", 12),
        ("count", "a dozen", "a dozen"),
        ("size", "1e3", 1000.0),
        ("yes", "True", True),
        ("yes", "false", False),
        ("yes", "None", "None"),
        ("list", '["x", "y"]', ["x", "y"]),
        ("list", "['x', 'y',]", ["x", "y"]),
        ("list", "x, y", "x, y"),
        ("map", '{"a": {"b": [1]}}', {"a": {"b": [1]}}),
        ("maybe", "null", None),
        ("maybe", "[1]", "[1]"),
        ("maybe", "12", "12"),
        ("unit", "1", "1"),
        ("either", "12", 12),
        ("either", "true", "true"),
        ("any", "12", 12),
        ("any", "words", "words"),
        ("any", '"12"', "12"),
        ("unknown", "[1, 2]", [1, 2]),
    ],
)
def test_the_schema_says_what_a_value_is(read: Any, key: str, written: str, value: Any) -> None:
    (call,) = read(_xml(**{key: written}), fmt="qwen3_coder", functions=[F]).get_function_calls()
    assert json.loads(call.arguments) == {key: value}


def test_a_name_shows_as_soon_as_it_is_whole(feed: Any) -> None:
    for begin in ("<tool_call>\n<function=f", "<function=f"):
        assert feed(map(TextDelta, begin), "qwen3_coder") == []
        assert feed(map(TextDelta, f"{begin}>"), "qwen3_coder") == [FunctionCallDelta(0, id="1", name="f")]


def test_ordinary_values_stand_as_they_are_and_only_tags_are_escaped(request_of: Any, formats: Any) -> None:
    def written(**arguments: Any) -> str:
        call = Message("assistant", "", function_call=FunctionCall("f", json.dumps(arguments)))
        rendered = formats["qwen3_coder"].render(request_of(USER, call, functions=[F]))
        return rendered.messages[-1].get_text_content()

    assert written(text='say "a\nb" <b> & \\n', count=3, list=["<b>"], yes=True) == _xml(
        text='say "a\nb" <b> & \\n', count="3", list='["<b>"]', yes="true"
    )
    assert written(text="x</parameter>y") == _xml(text='"\\u0078\\u003c/parameter\\u003ey"')
    assert written(list=["</parameter>"]) == _xml(list='["\\u003c/parameter>"]')
    assert written(any="12") == _xml(any='"\\u00312"')
    assert written(text='"\\u0041"') == _xml(text='"\\u0022\\\\u0041\\""')


@pytest.mark.parametrize(
    ("body", "strict"),
    [
        ("<function=f>\n<parameter=a>\n1\n</parameter>\n</function><function=g></function>", True),
        ("<function=f>\n<parameter=a>\n1\n</parameter>\n<function=g></function>", False),
        ("<function=f>\n<parameter=a>\n1\n<parameter=b>\n1\n</parameter>\n</function>", False),
        ("<function=f>\n<parameter=a>\n1\n</parameter>", False),
        ("<function=f>\nwords<function=g></function>", False),
        ("words", False),
    ],
)
def test_a_body_is_strict_if_every_function_and_value_has_its_end(body: str, strict: bool) -> None:
    assert is_strict_xml(body) is strict


def test_a_function_without_a_description_has_no_element_for_it(request_of: Any, formats: Any) -> None:
    for undescribed in ({**F, "description": ""}, {key: F[key] for key in ("name", "parameters")}):
        rendered = formats["qwen3_coder"].render(request_of(USER, functions=[undescribed]))
        assert "<function>\n<name>f</name>\n<parameters>" in rendered.messages[0].get_text_content()


def test_tools_stand_as_xml_in_the_prompt(request_of: Any, formats: Any) -> None:
    rendered = formats["qwen3_coder"].render(request_of(Message("system", "Be brief."), USER, functions=[F]))
    system = rendered.messages[0].get_text_content()
    assert system.startswith("Be brief.\n\n# Tools\n\n")
    for part in (
        "<tools>\n<function>\n<name>f</name>\n<description>Does 什么.</description>\n<parameters>\n<parameter>\n"
        "<name>text</name>\n<type>string</type>\n<description>Some words</description>\n</parameter>\n",
        '<name>list</name>\n<type>array</type>\n<items>{"type": "string"}</items>\n</parameter>',
        '</parameter>\n<required>["text"]</required>\n</parameters>\n</function>\n</tools>',
    ):
        assert part in system
