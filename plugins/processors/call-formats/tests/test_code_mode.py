"""Code apart from the JSON: nothing in it must be escaped, and nothing in it is taken for a tag."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jackfield.messages import FunctionCall, Message
from jackfield_call_formats.nous import CODE_MODE_VARIABLE, NousFormat

CODE = {
    "name": "my_code_interpreter",
    "description": "Runs code.",
    "parameters": {"type": "object", "properties": {"code": {"type": "string"}}},
}
OTHER = {**CODE, "name": "run"}
USER = Message("user", "Go.")
PROGRAM = 'def f():\n    return "\\n</tool_call>" + \'"\'\n'


def _call(code: str, name: str = "my_code_interpreter") -> Message:
    return Message("assistant", "", function_call=FunctionCall(name, json.dumps({"code": code, "n": 1})))


def _written(request_of: Any, call: Message, *, code_mode: bool | None = True) -> str:
    rendered = NousFormat(code_mode=code_mode).render(request_of(USER, call, functions=[CODE, OTHER]))
    return rendered.messages[-1].get_text_content()


def test_code_of_the_past_stands_behind_the_json_as_it_is(request_of: Any) -> None:
    assert _written(request_of, _call("x = 1\nprint(x)")) == (
        '<tool_call>\n{"name": "my_code_interpreter", "arguments": {"code": "", "n": 1}}\n'
        "<code>\nx = 1\nprint(x)\n</code>\n</tool_call>"
    )


def test_code_that_could_be_taken_for_a_tag_stays_in_the_json(request_of: Any) -> None:
    for code in ("print('</code>')", PROGRAM):
        assert "\n<code>\n" not in _written(request_of, _call(code))


def test_other_tools_have_their_code_in_the_json(request_of: Any) -> None:
    assert "\n<code>\n" not in _written(request_of, _call("x", "run"))


def test_without_code_mode_it_stays_in_the_json(request_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\n<code>\n" not in _written(request_of, _call("x"), code_mode=False)
    monkeypatch.delenv(CODE_MODE_VARIABLE, raising=False)
    assert "\n<code>\n" not in _written(request_of, _call("x"), code_mode=None)


def test_the_environment_switches_it_on(request_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("true", " TRUE ", "1"):
        monkeypatch.setenv("SPECIAL_CODE_MODE", value)
        assert "\n<code>\n" in _written(request_of, _call("x"), code_mode=None)
        assert "\n<code>\n" not in _written(request_of, _call("x"), code_mode=False)


def test_other_arguments_come_back_with_the_code(request_of: Any, read: Any) -> None:
    (call,) = read(_written(request_of, _call("x = 1"))).get_function_calls()
    assert json.loads(call.arguments) == {"code": "x = 1", "n": 1}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_prompt_shows_how_where_a_tool_runs_code(request_of: Any, lang: str) -> None:
    def prompt(function: Any) -> str:
        request = request_of(USER, functions=[function], lang=lang)
        return NousFormat(code_mode=True).render(request).messages[0].get_text_content()

    assert "<code>" in prompt(CODE)
    assert "<code>" not in prompt(OTHER)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ('{"arguments": {"code": ""}}\n<code>\nx = 1\n</code>\n', "x = 1"),
        ('{"arguments": {}}<code>x = 1</code>', "x = 1"),
        ('{"arguments": {"code": ""}}\n<code>\nprint("<tool_call> and </tool_call>")\n</code>\n', None),
        ('{"arguments": {"code": ""}}\n<code>\nprint("</code>")\n</code>\n', 'print("</code>")'),
        ('{"arguments": {"code": "a<code>b</code>"}}', "a<code>b</code>"),
        ("{'arguments': {'code': '',}}\n<code>\nx = 1\n</code>\n", "x = 1"),
    ],
)
@pytest.mark.parametrize("size", [1, 10_000])
def test_code_is_read_whether_or_not_the_mode_is_on(read: Any, body: str, code: str | None, size: int) -> None:
    text = f"<tool_call>\n{body.replace('{', _NAMED[body[1]], 1)}</tool_call>!"
    answer = read(*[text[start : start + size] for start in range(0, len(text), size)])
    (call,) = answer.get_function_calls()
    assert call.name == "my_code_interpreter"
    assert json.loads(call.arguments)["code"] == (code or 'print("<tool_call> and </tool_call>")')
    assert answer.get_content() == "!"


_NAMED = {'"': '{"name": "my_code_interpreter", ', "'": "{'name': 'my_code_interpreter', "}


def test_code_that_was_cut_off_is_not_run(read: Any) -> None:
    text = '<tool_call>\n{"name": "code_interpreter", "arguments": {"code": ""}}\n<code>\nremove("/home/me'
    (call,) = read(text, reason="length").get_function_calls()
    assert call.arguments.startswith("unfinished")
    (call,) = read(text + '/old")\n</code>', reason="length").get_function_calls()
    assert json.loads(call.arguments) == {"code": 'remove("/home/me/old")'}
