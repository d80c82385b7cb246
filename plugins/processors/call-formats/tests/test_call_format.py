"""The format where it stands: found by its entry point, in front of a model, under an agent."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from jackfield import FnCallAgent, tool
from jackfield.config import LLMConfig
from jackfield.errors import ModelRequestError
from jackfield.events import FunctionCallDelta, ModelFinished, TextDelta
from jackfield.request import ModelFacts
from jackfield.testing import ScriptedModel, answer

CALL = '<tool_call>\n{"name": "double", "arguments": {"number": 21}}\n</tool_call>'
ASK = [{"role": "user", "content": "Double 21."}]


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def _model(*script: Any, native: bool = False, **generate: Any) -> ScriptedModel:
    config = LLMConfig(model="m", generate_cfg=generate)
    return ScriptedModel(list(script), facts=ModelFacts(native_tools=native), config=config)


def test_a_model_without_native_tools_uses_a_tool_and_is_shown_its_result() -> None:
    model = _model(answer("I will.\n" + CALL), answer("It is 42."))
    messages = FnCallAgent([double], model).run_nonstream(ASK)
    assert [message["role"] for message in messages] == ["assistant", "assistant", "function", "assistant"]
    assert messages[-1]["content"] == "It is 42."
    asked = model.requests[1].messages
    assert asked[2].content == "I will.\n" + CALL
    assert asked[3].content == "<tool_response>\n42\n</tool_response>"
    assert not model.requests[1].functions


def test_a_model_with_native_tools_uses_the_format_when_it_is_asked_for() -> None:
    model = _model(answer(CALL), answer("42"), native=True, fncall_prompt_type="nous")
    assert FnCallAgent([double], model).run_nonstream(ASK)[-1]["content"] == "42"
    assert "# Tools" in model.requests[0].messages[0].content


@pytest.mark.parametrize(
    ("name", "call", "result"),
    [
        ("nous", CALL, "<tool_response>\n42\n</tool_response>"),
        ("qwen", '✿FUNCTION✿: double\n✿ARGS✿: {"number": 21}', "✿RESULT✿: 42\n✿RETURN✿:"),
        (
            "qwen3_coder",
            "<tool_call>\n<function=double>\n<parameter=number>\n21\n</parameter>\n</function>\n</tool_call>",
            "<tool_response>\n42\n</tool_response>",
        ),
        ("react", 'Action: double\nAction Input: {"number": 21}', "Observation: 42"),
    ],
)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_each_format_runs_a_tool_and_shows_its_result(name: str, call: str, result: str, lang: str) -> None:
    model = _model(answer(f"So.\n{call}"), answer("42"), native=True, fncall_prompt_type=name, lang=lang)
    messages = FnCallAgent([double], model).run_nonstream(ASK)
    assert [message["role"] for message in messages] == ["assistant", "assistant", "function", "assistant"]
    asked = model.requests[1].messages
    assert asked[2].content == f"So.\n{call}"
    assert asked[3].content == result
    assert not model.requests[1].functions


def test_a_server_that_parses_calls_itself_ends_the_run_with_an_error_that_says_what_to_do() -> None:
    model = _model([ModelFinished("tool_calls")], fncall_prompt_type="nous")
    with pytest.raises(ModelRequestError, match="use native calls"):
        FnCallAgent([double], model).run_nonstream(ASK)


def test_a_native_call_is_honoured_while_the_format_is_active() -> None:
    native = [FunctionCallDelta(0, id="c", name="double", arguments='{"number": 4}'), ModelFinished("tool_calls")]
    messages = FnCallAgent([double], _model(native, answer("8"))).run_nonstream(ASK)
    assert [message["role"] for message in messages] == ["assistant", "function", "assistant"]
    assert messages[1]["content"] == "8"


def test_an_empty_call_ends_the_run_as_text_and_calls_nothing() -> None:
    model = _model([TextDelta("<tool_call></tool_call>"), ModelFinished("stop")])
    messages = FnCallAgent([double], model).run_nonstream(ASK)
    assert [message["content"] for message in messages] == ["<tool_call></tool_call>"]


def test_describing_the_format_imports_neither_it_nor_the_models() -> None:
    code = (
        "import sys, jackfield_call_formats.plugin as plugin; print(len(plugin.call_formats())); "
        "assert not {'jackfield_call_formats.nous', 'jackfield.processors', 'pydantic'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("4\n", "")
